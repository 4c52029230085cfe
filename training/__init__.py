"""Fit a small model to merchant dialogues: data, SFT, throughput benchmark and export."""

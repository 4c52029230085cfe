"""Fit a small model to merchant dialogues: data, SFT, throughput benchmark and export."""

from haggle.weights.threads import wait_briefly

wait_briefly()  # read when torch is loaded

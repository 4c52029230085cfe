"""Fit a small model to merchant dialogues: data, SFT, throughput benchmark and export."""

import os

# Threads that spin while they wait starve each other on a machine that does anything else: beside
# one busy program 75 tokens/s against 161 (docs/training.md). Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

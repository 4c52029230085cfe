"""Fit a small model to merchant dialogues: data, SFT, throughput benchmark and export."""

import os

# Threads that spin while they wait starve each other on a machine that does anything else. Read
# when torch is loaded. Beside another job it was 205 tokens/s against 122 in one pair of runs;
# on an idle machine it has not been measured.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

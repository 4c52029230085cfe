"""Freed memory is used again, instead of being mapped anew for each tensor."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
{first}
import torch
sizes = [8_000_000, 12_000_000, 10_000_000]
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def work():
    for size in sizes:
        torch.zeros(size)
work()
before = faults()
for _ in range(10):
    work()
print(faults() - before)
"""


def faults(first: str) -> int:
    """Page faults of three tensors (120 MB) made ten times, in a process that begins so."""
    said = subprocess.run(
        [sys.executable, "-c", FAULTS.format(first=first)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(said.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_freed_memory_is_not_mapped_again() -> None:
    kept = faults("from training.heap import keep_freed_memory\nassert keep_freed_memory()")
    assert kept * 3 < faults("")


GIVEN_BACK = """
import psutil
import torch
from training.heap import give_back_memory, keep_freed_memory
assert keep_freed_memory()
def used():
    return psutil.Process().memory_info().rss
for _ in range(3):
    tensors = [torch.ones(500_000) for _ in range(100)]  # 200 MB
del tensors
kept = used()
give_back_memory()
print(kept - used())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_what_a_run_has_kept_is_given_back_to_the_next() -> None:
    said = subprocess.run(
        [sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) > 150e6

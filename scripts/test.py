"""All checks and tests, in one command:

    python scripts/test.py [--long] [arguments of pytest]

Sets up `.venv` the first time, then runs ruff, mypy, import-linter and pytest, all of them even
when an early one fails. The tests run side by side, a file at a time on each of up to four cores.
`--long` adds the tests marked `long` and those marked `postgres` (skipped where no PostgreSQL
server is installed), one after the other since many of them load the machine themselves, and those
that need Ray or TensorBoard, which it installs. Tests marked `gpu` or
`network` are left out unless chosen with -m; those marked `vllm` run where vLLM is installed
(scripts/setup_vllm_cpu.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bootstrap import ALL_EXTRAS, ROOT, ensure, run_script

LONG = "--long"
MOST_WORKERS = 4  # each may hold a model
NO_TESTS = 5  # pytest's answer where the arguments choose none
MORE = ("ray>=2.50", "tensorboard>=2.20")
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "import-linter": ["lint-imports", "--no-logo"],
}


def main() -> int:
    """Runs every check, then pytest; 0 only when all passed."""
    arguments = [argument for argument in sys.argv[1:] if argument != LONG]
    long = len(arguments) < len(sys.argv) - 1
    folder = ensure(ALL_EXTRAS).parent
    if long:
        _install_more(folder)
    failed = [name for name, command in CHECKS.items() if _run(folder, name, command)]
    here = "not gpu and not network"
    beside = ["-n", str(min(os.cpu_count() or 1, MOST_WORKERS)), "--dist", "loadfile"]
    runs = {"tests": ["-m", f"{here} and not long and not postgres", *beside]}
    if long and "-m" not in arguments:
        runs["long tests"] = ["-m", f"{here} and (long or postgres)"]
    codes = [_run(folder, name, ["pytest", *run, *arguments]) for name, run in runs.items()]
    fine = {0, NO_TESTS} if long else {0}
    code = next((code for code in codes if code not in fine), 0)
    if failed:
        print(f"\nfailed besides the tests: {', '.join(failed)}", flush=True)
    return code or int(bool(failed))


def _install_more(folder: Path) -> None:
    """Ray and TensorBoard, which are in no lock file; without them their tests are skipped."""
    python = str(folder / ("python.exe" if os.name == "nt" else "python"))
    locked = ["-c", str(ROOT / "requirements" / "lock.txt")]
    command = [python, "-m", "pip", "install", "-q", *locked, *MORE]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        print(f"{', '.join(MORE)} could not be installed: their tests are skipped", flush=True)


def _run(folder: Path, name: str, command: list[str]) -> int:
    print(f"\n--- {name}", flush=True)
    started = time.monotonic()
    environment = os.environ | {"PYTHONUTF8": "1"}
    program = str(folder / command[0])
    code = subprocess.run([program, *command[1:]], cwd=ROOT, env=environment, check=False)
    print(f"--- {name}: {'failed' if code.returncode else 'ok'}, ", end="")
    print(f"{time.monotonic() - started:.1f} s", flush=True)
    return code.returncode


if __name__ == "__main__":
    sys.exit(run_script(main))

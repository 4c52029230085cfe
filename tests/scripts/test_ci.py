"""What CI installs, and that it goes on where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from haggle.core.config import ROOT

PACKAGES = {"Chromium": "chromium", "Mono": "mono-mcs", "PostgreSQL": "postgresql"}
pytestmark = pytest.mark.skipif(os.name != "posix", reason="CI runs a shell script")


def ran_with(folder: Path, apt: str | None) -> tuple[str, list[str]]:
    """What `.ci/run` prints, and the programs it started, on a machine that has nothing but Python
    and an `apt-get` that ends like `apt`."""
    log = folder / "log"
    stubs = {"python3": "exit 0"} | ({"apt-get": apt} if apt else {})
    for name, end in stubs.items():
        stub = folder / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{end}\n', encoding="utf-8")
        stub.chmod(0o755)
    for name in ("bash", "sh", "dirname", "uname"):
        (folder / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run")], env={"PATH": str(folder)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, log.read_text(encoding="utf-8").splitlines()


def missing() -> set[str]:
    """What is not on such a machine; PostgreSQL lies outside PATH."""
    there = any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return PACKAGES.keys() - ({"PostgreSQL"} if there else set())


def test_what_is_missing_is_installed_and_then_all_is_tested(tmp_path: Path) -> None:
    printed, started = ran_with(tmp_path, "exit 0")
    asked = [line for line in started if line.startswith("apt-get install")]
    assert started[0] == "apt-get update -q" and len(asked) == len(missing())
    assert {
        name for name in PACKAGES if any(PACKAGES[name] in line.split() for line in asked)
    } == missing()
    assert started[-1] == "python3 scripts/test.py --long" and "skipped" not in printed


@pytest.mark.parametrize("apt", [None, "exit 100"])
def test_without_packages_it_says_so_and_goes_on(tmp_path: Path, apt: str | None) -> None:
    printed, started = ran_with(tmp_path, apt)
    assert all(f"no {name}: its tests are skipped" in printed for name in missing())
    assert started[-1] == "python3 scripts/test.py --long"

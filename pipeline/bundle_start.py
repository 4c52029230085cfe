"""Unpack a bundle and train: the `run.py` of what `haggle bundle` writes.

    python run.py --minutes 20

Needs Python 3.11 or later with PyTorch and transformers; all else is in the parts beside it. The
same command again goes on where a run stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
MARK = ".manifest.sha256"  # in an unpacked bundle: of which manifest it is
BLOCK = 1 << 20


class BundleError(Exception):
    """Something about the bundle that a person can act on."""


def file_sum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(bundle: Path) -> dict[str, Any]:
    """The manifest of a bundle. Raises BundleError without a whole one."""
    path = bundle / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        manifest["parts"], manifest["pythons"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{path}: no manifest of a bundle ({error}); copy it again") from None
    return manifest


def problems(bundle: Path, manifest: dict[str, Any]) -> list[str]:
    """What is wrong with the parts: each that is missing, cut off or altered."""
    found = []
    for part in manifest["parts"]:
        path = bundle / part["name"]
        if not path.is_file():
            found.append(f"{part['name']}: missing")
        elif path.stat().st_size != part["bytes"]:
            found.append(f"{part['name']}: {path.stat().st_size:,} of {part['bytes']:,} bytes")
        elif file_sum(path) != part["sha256"]:
            found.append(f"{part['name']}: altered")
    return found


def check(bundle: Path, manifest: dict[str, Any]) -> None:
    """Raise BundleError naming each part that is not as it was written."""
    if found := problems(bundle, manifest):
        raise BundleError("\n  ".join([f"{bundle}: copy these parts again:", *found]))


class Joined(io.RawIOBase):
    """Files one after the other, as one to read."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.blocks = self._all(paths)
        self.rest = b""

    def _all(self, paths: Sequence[Path]) -> Iterator[bytes]:
        for path in paths:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.rest = self.rest or next(self.blocks, b"")
        taken = self.rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self.rest = self.rest[len(taken) :]
        return len(taken)


def unpack(bundle: Path, manifest: dict[str, Any], work: Path) -> bool:
    """Unpack the parts into `work`, whole or not at all; False where that was done before."""
    mark = file_sum(bundle / MANIFEST)
    if (work / MARK).is_file() and (work / MARK).read_text(encoding="utf-8") == mark:
        return False
    check(bundle, manifest)
    part = work.with_name(f".{work.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    joined = io.BufferedReader(Joined([bundle / p["name"] for p in manifest["parts"]]), BLOCK)
    with tarfile.open(fileobj=joined, mode="r|gz") as archive:
        archive.extractall(part, filter="data")
    (part / MARK).write_text(mark, encoding="utf-8")
    shutil.rmtree(work, ignore_errors=True)
    os.replace(part, work)
    return True


def python_tag() -> str:
    """What compiled packages for this Python are filed under: cp312."""
    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def check_machine(manifest: dict[str, Any]) -> None:
    """Raise BundleError where this Python lacks what the bundle does not bring."""
    from importlib.util import find_spec

    if missing := [name for name in ("torch", "transformers") if find_spec(name) is None]:
        raise BundleError(f"{sys.executable} has no {' and no '.join(missing)}: install it first")
    if python_tag() not in manifest["pythons"]:
        raise BundleError(
            f"the bundle's compiled packages are for {', '.join(manifest['pythons'])}, this is "
            f"{python_tag()}: make the bundle with --python "
            f"{sys.version_info[0]}.{sys.version_info[1]}"
        )


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command is told."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--minutes", type=float, help="training time in all, over all calls")
    add("--stop-after", type=float, help="minutes after which this call saves and ends")
    add("--run", type=Path, default=here / "run", help="directory of checkpoints and results")
    add("--work", type=Path, default=here / "work", help="directory to unpack into")
    add("--results", type=Path, help="directory for a copy of the results, in small files")
    add("--workers", type=int, help="processes that make data (a core each but one)")
    add("--cpu", action="store_true", help="leave a GPU alone")
    add("--check", action="store_true", help="look whether all parts are whole, no more")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, unpack, train; the exit status."""
    bundle, told = Path(__file__).resolve().parent, options(arguments)
    try:
        manifest = read_manifest(bundle)
        if told.check:
            check(bundle, manifest)
            print(f"{len(manifest['parts'])} parts, all whole")
            return 0
        check_machine(manifest)
        if unpack(bundle, manifest, told.work):
            print(f"Unpacked into {told.work}", flush=True)
    except BundleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    work = told.work.resolve()
    sys.path[:0] = [str(work / "code"), str(work / "site" / python_tag()), str(work / "site/any")]
    from pipeline.bundle_run import main as run

    return run(work, told)


if __name__ == "__main__":
    sys.exit(main())

"""A directory as parts of bounded size with a manifest, and the packages that go in."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, BinaryIO

from haggle.core.errors import HaggleError

MB = 1_000_000
# What data generation and training need beyond what PyTorch and transformers bring along.
PURE = (
    "annotated-types", "gguf", "inflection", "platformdirs", "pydantic", "typing_extensions",
    "typing-inspection",
)  # fmt: skip
COMPILED = ("pydantic_core", "RapidFuzz")
GLIBCS = ("2_17", "2_24", "2_27", "2_28", "2_31", "2_34")  # that wheels for Linux are named after


class Parts:
    """A file to write that is cut into files of at most `size` bytes, `name` with a number."""

    def __init__(self, folder: Path, name: str, size: int) -> None:
        self.folder, self.name, self.size = folder, name, size
        self.parts: list[dict[str, Any]] = []
        self._file: BinaryIO | None = None
        self._room = 0
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Append bytes, as a file does."""
        view = memoryview(data)
        while len(view):
            if not self._room:
                self._begin()
            assert self._file is not None
            now, view = view[: self._room], view[self._room :]
            self._file.write(now)
            self._digest.update(now)
            self._room -= len(now)
        return len(data)

    def flush(self) -> None:
        """Nothing to do: gzip asks for it."""

    def close(self) -> list[dict[str, Any]]:
        """End the last part; returns name, bytes and sum of each."""
        if self._file is not None:
            self._file.close()
            self.parts[-1]["bytes"] = self.size - self._room
            self.parts[-1]["sha256"] = self._digest.hexdigest()
            self._file = None
        return self.parts

    def _begin(self) -> None:
        self.close()
        name = f"{self.name}-{len(self.parts):03d}"
        self._file = (self.folder / name).open("wb")
        self._room, self._digest = self.size, hashlib.sha256()
        self.parts.append({"name": name})


def pack(source: Path, folder: Path, name: str, size: int) -> list[dict[str, Any]]:
    """A directory as a compressed tar archive in parts; the same files give the same bytes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    parts = Parts(folder, name, size)
    with (
        gzip.GzipFile("", "wb", 6, parts, mtime=0) as packed,  # type: ignore[arg-type]
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for path in sorted(source.rglob("*")):
            archive.add(path, path.relative_to(source).as_posix(), recursive=False, filter=plain)
    return parts.close()


def copy_packages(site: Path, pythons: Sequence[str], wheels: Path | None) -> None:
    """Put the packages under `site`: `any` for all, `cp312` and so on for each Python named.

    They are those installed here. Compiled ones for another Python come from wheels in the
    directory given, else pip fetches them. Raises HaggleError where one is not to be had.
    """
    for name in PURE:
        _copy_installed(name, site / "any")
    for python in pythons:
        target = site / tag_of(python)
        for name in COMPILED:
            if python == running_python():
                _copy_installed(name, target)
            else:
                _unpack_wheel(name, python, wheels, target)


def running_python() -> str:
    """The version of this Python: 3.12."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def tag_of(python: str) -> str:
    """What wheels call a version of Python: cp312. Raises HaggleError for what is none."""
    major, _, minor = python.partition(".")
    if major != "3" or not minor.isdigit() or int(minor) < 11:
        raise HaggleError(f"{python!r} is no version of Python from 3.11 on", where="--python")
    return f"cp3{minor}"


def _installed(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except PackageNotFoundError:
        raise HaggleError(
            f"the package {name} is not installed here", hint=f"pip install {name}"
        ) from None


def _copy_installed(name: str, target: Path) -> None:
    """Copy an installed package with its metadata, byte code left out."""
    for file in _installed(name).files or ():
        if ".." in file.parts or "__pycache__" in file.parts:  # programs of bin/, byte code
            continue
        to = target / str(file)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(file.locate()), to)


def _unpack_wheel(name: str, python: str, wheels: Path | None, target: Path) -> None:
    """Unpack a compiled package's wheel for another Python."""
    version = _installed(name).version
    stem = f"{name.lower()}-{version}-{tag_of(python)}-"
    with tempfile.TemporaryDirectory() as folder:
        if wheels is None:
            _fetch(name, version, python, Path(folder))
        where = wheels or Path(folder)
        found = [p for p in sorted(where.glob("*.whl")) if p.name.lower().startswith(stem)]
        if not found:
            raise HaggleError(
                f"no wheel of {name} {version} for Python {python}",
                where=str(wheels) if wheels else "--python",
                hint=f"put {stem}*.whl into a directory and name it as --wheels",
            )
        with zipfile.ZipFile(found[0]) as wheel:
            wheel.extractall(target)


def _fetch(name: str, version: str, python: str, folder: Path) -> None:
    """Have pip fetch a wheel for Linux machines of this kind; what it cannot is told later."""
    kinds = [f"manylinux_{glibc}_{platform.machine()}" for glibc in GLIBCS]
    kinds.append(f"manylinux2014_{platform.machine()}")
    command = [sys.executable, "-m", "pip", "download", "-qqq", "--no-deps"]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python]
    command += [f"--platform={kind}" for kind in kinds]
    subprocess.run([*command, "--dest", str(folder), f"{name}=={version}"], check=False)

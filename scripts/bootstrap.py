"""Sets up the environment in `.venv` that the other scripts run in; standard library only.

    python scripts/bootstrap.py              # everything that demo.py and test.py need
    python scripts/bootstrap.py vllm         # and an extra of pyproject.toml beside it

A stamp in `.venv`, written last, holds a hash of pyproject.toml, the lock files and the Python
version. While it matches, `ensure` returns at once; when it is missing or old, pip runs again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
DEMO_EXTRAS = ("data", "embeddings", "eval", "llamacpp", "serve", "train")
ALL_EXTRAS = ("api", "dev", "http", "postgres", "sentences", *DEMO_EXTRAS)
LOCK = Path("requirements/lock.txt")
BASE_MODEL = Path("requirements/base-model.txt")
FINGERPRINTED = (Path("pyproject.toml"), LOCK, BASE_MODEL)
STAMP = "haggle-stamp.json"
UNFINISHED = "haggle-unfinished"
PIP_LOG = "haggle-pip.log"

_OFFLINE = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|Read timed out|ProxyError|Max retries exceeded"
    r"|Temporary failure in name resolution|Name or service not known|getaddrinfo failed"
    r"|nodename nor servname|Network is unreachable|Connection refused|Connection reset"
)
_SIZE = re.compile(r"Downloading (\S+?)(?:\.metadata)? \(([\d.]+) ([kMG]B)\)")


class SetupError(Exception):
    """Something the person has to act on; printed without a traceback."""


class PipError(SetupError):
    """pip ended with an error; `output` is what it printed."""

    def __init__(self, output: str, log: Path) -> None:
        self.output = output
        errors = [line for line in output.splitlines() if line.startswith("ERROR:")]
        shown = errors or output.splitlines()[-10:]
        hint = "\nDelete .venv and run the same again." if "No module named pip" in output else ""
        super().__init__("pip failed:\n  " + "\n  ".join(shown) + f"\nAll it said: {log}{hint}")

    @property
    def offline(self) -> bool:
        """Whether pip could not reach the place packages come from."""
        return bool(_OFFLINE.search(self.output))


def say(text: str) -> None:
    """One progress line, shown at once even when the output is piped."""
    print(f"[setup] {text}", flush=True)


def venv_python(root: Path = ROOT) -> Path:
    """The interpreter of the project's environment, whether it exists yet or not."""
    folder = root / ".venv"
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def check_host() -> None:
    """Raises SetupError where no build of the locked dependencies exists."""
    if sys.version_info < OLDEST:
        found, needed = platform.python_version(), ".".join(map(str, OLDEST))
        example = "py -3.12" if os.name == "nt" else "python3.12"
        raise SetupError(
            f"Haggle needs Python {needed} or newer; this is Python {found} ({sys.executable}).\n"
            f"Start the script with a newer one, for example: {example} {sys.argv[0]}"
        )
    if sys.maxsize < 2**32:
        raise SetupError("Haggle needs a 64-bit Python: PyTorch has no 32-bit builds.")
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        raise SetupError(
            "PyTorch is no longer built for Intel Macs, nor for an Intel Python on Apple silicon.\n"
            "On Apple silicon start the script with an arm64 Python."
        )


def fingerprint(root: Path, python_version: str) -> str:
    """A hash of all that decides what is installed; line endings do not count."""
    digest = hashlib.sha256(python_version.encode())
    for name in FINGERPRINTED:
        digest.update(f"\0{name.as_posix()}\0".encode())
        digest.update("\n".join((root / name).read_text(encoding="utf-8").splitlines()).encode())
    return digest.hexdigest()


def python_version(python: Path) -> str:
    """The version of an interpreter, "" if it does not run."""
    command = [str(python), "-c", "import platform; print(platform.python_version())"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def installed_extras(root: Path, print_: str) -> frozenset[str]:
    """The extras that a finished set-up with this fingerprint has installed."""
    try:
        stamp = json.loads((root / ".venv" / STAMP).read_text(encoding="utf-8"))
        return frozenset(stamp["extras"]) if stamp["fingerprint"] == print_ else frozenset()
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def ensure(extras: tuple[str, ...], root: Path = ROOT) -> Path:
    """Makes `.venv` hold the locked dependencies of these extras; its interpreter.

    Raises SetupError when that cannot be done, saying what is missing.
    """
    check_host()
    python, started = venv_python(root), time.monotonic()
    version = python_version(python)
    if version and set(extras) <= installed_extras(root, fingerprint(root, version)):
        return python

    version = _make_venv(root, version)
    print_ = fingerprint(root, version)
    wanted = sorted(set(extras) | installed_extras(root, print_))
    (root / ".venv" / STAMP).unlink(missing_ok=True)
    say("Installing the locked dependencies; the first time takes a few minutes ...")
    try:
        with changing(root):
            _install(root, wanted)
    except PipError as error:
        if error.offline:
            raise SetupError(_offline_message(root, wanted)) from None
        raise
    stamp = json.dumps({"fingerprint": print_, "extras": wanted, "python": version}, indent=2)
    (root / ".venv" / STAMP).write_text(stamp + "\n", encoding="utf-8")
    say(f"Ready after {time.monotonic() - started:.0f} s.")
    return python


@contextmanager
def changing(root: Path) -> Iterator[None]:
    """Marks `.venv` as half-changed while the body runs; the mark outlives an interruption."""
    mark = root / ".venv" / UNFINISHED
    mark.touch()
    try:
        yield
    except PipError:
        # pip came to its own end: the environment is whole and the next try can build on it.
        mark.unlink()
        raise
    mark.unlink()


def pip(root: Path, *arguments: str) -> None:
    """Runs pip in the environment, shows its large downloads; raises PipError when it fails."""
    python, log = venv_python(root), root / ".venv" / PIP_LOG
    environment = os.environ | {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",
        "PYTHONUTF8": "1",
        "PYTHONUNBUFFERED": "1",
    }
    environment.pop("PYTHONHOME", None)
    output: list[str] = []
    command = [str(python), "-m", "pip", *arguments, "--progress-bar", "off"]
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ pip {' '.join(arguments)}\n")
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                file.write(line)
                output.append(line)
                _show(line.strip())
        except BaseException:
            process.terminate()
            raise
        finally:
            process.stdout.close()
            process.wait()
    if process.returncode:
        raise PipError("".join(output), log)


def installed_versions(root: Path = ROOT) -> dict[str, str]:
    """Normalised name and version of every distribution in the environment."""
    script = (
        "import json, importlib.metadata as m; "
        "print(json.dumps({d.name: d.version for d in m.distributions()}))"
    )
    run = subprocess.run(
        [str(venv_python(root)), "-c", script], capture_output=True, text=True, check=True
    )
    return {normalise(name): version for name, version in json.loads(run.stdout).items()}


def locked_versions(path: Path) -> dict[str, str]:
    """Normalised name and version of each line `name==version` of a lock file."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {normalise(name): version for name, version in found}


def normalise(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def has_gpu() -> bool:
    """Whether an NVIDIA driver answers with at least one device."""
    if shutil.which("nvidia-smi") is None:
        return False
    run = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return run.returncode == 0 and "GPU" in run.stdout


def hand_over(command: list[str]) -> int:
    """Runs a command in place of this process where the system can; its exit code elsewhere."""
    environment = os.environ | {"PYTHONUTF8": "1"}
    sys.stdout.flush()
    if os.name != "nt":
        os.execve(command[0], command, environment)
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    except KeyboardInterrupt:  # the command has had it too, and has said what it had to say
        return 130


def run_script(body: Callable[[], int]) -> int:
    """Runs a script's body with its errors and Ctrl-C as short messages; the exit code."""
    try:
        return body()
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to go on.", file=sys.stderr, flush=True)
        return 130


def _make_venv(root: Path, version: str) -> str:
    """Makes `.venv` unless a usable one is there; the version of its Python."""
    folder = root / ".venv"
    old = bool(version) and tuple(map(int, version.split(".")[:2])) < OLDEST
    broken = (folder / UNFINISHED).exists()
    if version and not old and not broken:
        return version
    if folder.exists():
        if broken:
            say("The last set-up was interrupted; starting afresh.")
        else:
            say(f"Replacing .venv: its Python is {version or 'gone'}.")
        if Path(sys.prefix).resolve() == folder.resolve():
            raise SetupError(
                "Start this script with a Python outside .venv, or delete .venv first."
            )
        shutil.rmtree(folder)
    say(f"Making .venv with Python {platform.python_version()} ...")
    folder.mkdir()
    (folder / UNFINISHED).touch()
    run = subprocess.run(
        [sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SetupError(
            f"{sys.executable} could not make a virtual environment:\n"
            f"{(run.stdout + run.stderr).strip()}\n"
            "On Debian and Ubuntu the package python3-venv provides what is missing."
        )
    return python_version(venv_python(root))


def _install(root: Path, extras: list[str]) -> None:
    lock = ["-c", str(root / LOCK)]
    pinned = locked_versions(root / LOCK)
    # The project itself is built with the locked setuptools instead of one fetched for the build.
    pip(root, "install", *lock, f"setuptools=={pinned['setuptools']}")
    if {"train", "serve"} & set(extras):
        _install_torch(root, lock, pinned["torch"])
    target = f"{root}[{','.join(extras)}]"
    pip(root, "install", *lock, "--no-build-isolation", "-e", target)
    pip(root, "install", "--no-deps", "-r", str(root / BASE_MODEL))


def _install_torch(root: Path, lock: list[str], version: str) -> None:
    """The CPU build on a Linux machine without a GPU, where pip can find it; else the plain one."""
    if installed_versions(root).get("torch", "").split("+")[0] == version:
        return
    if sys.platform == "linux" and not has_gpu():
        say(f"No GPU found; looking for the CPU build of PyTorch {version} ...")
        try:
            pip(root, "install", *lock, f"torch=={version}+cpu")
            return
        except PipError as error:
            if error.offline or "No matching distribution" not in error.output:
                raise
        say(
            "pip knows no place with the CPU build, so the one for GPUs is taken: it works on a "
            "CPU as well, but is a download of several GB. To avoid that, let your pip settings "
            "name an index that has the CPU builds."
        )
    pip(root, "install", *lock, f"torch=={version}")


def _offline_message(root: Path, extras: list[str]) -> str:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    wanted += locked_versions(root / BASE_MODEL)
    names = {normalise(re.split(r"[^\w.-]", line.strip())[0]) for line in wanted}
    missing = sorted(names - installed_versions(root).keys())
    what = ", ".join(missing) or "newer versions of what is installed, as in requirements/lock.txt"
    return (
        "The package index could not be reached, and the first set-up needs it once.\n"
        f"Still missing: {what}.\n"
        "Connect to a network (or name your mirror in pip's settings) and run the same again."
    )


def _show(line: str) -> None:
    match = _SIZE.match(line)
    if match and (match[3] == "GB" or (match[3] == "MB" and float(match[2]) >= 10)):
        say(f"  downloading {match[1].rsplit('/')[-1]} ({match[2]} {match[3]})")
    elif line.startswith("Installing collected packages"):
        say(f"  unpacking {line.count(',') + 1} packages ...")


def main() -> int:
    """Sets everything up and says where."""
    print(ensure((*ALL_EXTRAS, *sys.argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))

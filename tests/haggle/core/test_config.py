"""Configs: a mistake is answered with file, place and the nearest right word."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cached_property
from pathlib import Path

import pytest

from haggle.core.config import (
    CONFIGS,
    ROOT,
    Record,
    install_hint,
    load_config,
    named_config,
    read_text,
)
from haggle.core.errors import HaggleError, nearest
from serving.engines import _MODULES


class Stove(Record):
    heat: int = 1
    timer: float | None = None


class Kitchen(Record):
    name: str
    stoves: list[Stove] = []
    oven: Stove = Stove()


@pytest.fixture
def complaint(tmp_path: Path):
    def read(text: str | bytes, name: str = "kitchen.yaml") -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        with pytest.raises(HaggleError) as refused:
            load_config(path, Kitchen)
        assert name in str(refused.value)
        return str(refused.value)

    return read


def test_yaml_and_json_read_the_same(tmp_path):
    data = {"name": "mine", "stoves": [{"heat": 3}], "oven": {"timer": 1.5}}
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(
        "name: mine\nstoves: [{heat: 3}]\noven: {timer: 1.5}\n", encoding="utf-8"
    )
    assert load_config(tmp_path / "a.json", Kitchen) == load_config(tmp_path / "a.yaml", Kitchen)


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("nam: x\n", "nam", "did you mean 'name'?"),
        ("name: x\nstoves: [{heat: 1}, {haet: 2}]\n", "stoves.1.haet", "did you mean 'heat'?"),
        ("name: x\noven: {tmer: 2}\n", "oven.tmer", "did you mean 'timer'?"),
        ("name: x\nzzz: 1\n", "zzz", "known: name, oven, stoves"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest_right_one(complaint, text, where, hint):
    said = complaint(text)
    assert f"'{where}'" in said and hint in said


def test_a_missing_key_is_named(complaint):
    assert "missing key 'name'" in complaint("oven: {heat: 2}\n")


def test_a_wrong_value_is_shown_with_its_field_and_the_number_of_further_problems(complaint):
    said = complaint("name: x\noven: {heat: hot}\nstoves: [{heat: cold}]\n")
    assert "heat" in said and "'cold'" in said and "1 more problem)" in said
    assert "..." in complaint(f"name: x\noven: {{heat: {'a' * 200}}}\n")


def test_broken_files_are_named_with_the_line(complaint):
    assert "kitchen.yaml:2" in complaint("name: x\n  oven: : :\n")
    assert "kitchen.json:2" in complaint('{"name": "x",\n nope}', "kitchen.json")
    assert "no mapping" in complaint("- a\n- b\n")
    assert "no mapping" in complaint("")
    assert "not UTF-8" in complaint(b"name: \xff\xfe\n")


def test_missing_files_and_directories_are_told_apart(tmp_path):
    with pytest.raises(HaggleError, match="no such file"):
        read_text(tmp_path / "none.yaml")
    with pytest.raises(HaggleError, match=r"is a directory|cannot be read"):
        read_text(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert load_config(path, Kitchen).name == "x"


def test_a_config_is_found_by_name_or_by_path():
    assert named_config("worlds", "frontier_shop") == CONFIGS / "worlds" / "frontier_shop.yaml"
    assert named_config("worlds", "my/own.json") == Path("my/own.json")
    with pytest.raises(HaggleError, match="did you mean 'frontier_shop'"):
        named_config("worlds", "fronteer_shop")


def test_nearest_names_all_when_none_is_near():
    assert nearest("zzz", ["b", "a"]) == "known: a, b"


def test_an_error_says_where_what_and_what_to_do():
    error = HaggleError("is wrong", where="shop.yaml:3", hint="fix it")
    assert str(error) == "shop.yaml:3: is wrong\n  hint: fix it"
    assert str(HaggleError("is wrong")) == "is wrong"


def test_every_missing_extra_is_told_in_the_same_words_and_is_one_that_exists():
    project = tomllib.loads(read_text(ROOT / "pyproject.toml"))["project"]
    asked = {extra for _, _, extra in _MODULES.values() if extra}
    for room in ("haggle", "serving", "data_gen", "eval"):
        for path in (ROOT / room).rglob("*.py"):
            text = read_text(path)
            assert "pip install -e" not in text or path.name == "config.py", path
            asked |= set(re.findall(r"""install_hint\(["'](\w+)""", text))
    assert {"api", "data", "llamacpp", "ray", "train"} <= asked
    assert asked <= set(project["optional-dependencies"])
    assert install_hint("api").endswith('pip install -e ".[api]"')


def test_from_a_wheel_the_extra_is_installed_by_name(monkeypatch):
    monkeypatch.setattr("haggle.core.config.IN_WHEEL", True)
    assert install_hint("llamacpp") == 'pip install "haggle[llamacpp]"'


class Told(Record):
    """A record that works something out."""

    words: tuple[str, ...]

    @cached_property
    def count(self) -> int:
        """How many words there are."""
        return len(self.words)


def test_a_copy_works_out_anew_what_follows_from_its_fields():
    told = Told(words=("a", "b"))
    assert told.count == 2
    assert told.model_copy(update={"words": ("a",)}).count == 1
    assert told.count == 2 and told.model_copy() == told

"""A language is data and a folder of its own: no other code of trade and language knows its words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from haggle.core.config import ROOT
from haggle.trade.language import FOLDER, patterns

ROOMS = ("haggle/trade", "haggle/language")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).glob("*.py"))
NO_WORDS = re.compile(  # escapes, names and flags of groups, classes of characters
    r"\\.|\(\?P[<=]\w+[>)]|\(\?[a-z]+[:)]|\[(?:\\.|[^\]\\])+\]|\{[a-z_]+\}"
)
LOOKS_SO = re.compile(r"\\[bBsSdDwW]|\(\?|\[\^|[)\]][?*+]|\.[*+]")


def english(source: str) -> list[str]:
    """The patterns of a source that have two letters in a row: what is given to `re`, and texts that
    look like a part of a regular expression."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = {
        id(part)
        for call in calls
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re"
        for argument in call.args[:1]
        for part in ast.walk(argument)
    }
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = {
        id(node): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    told = [t for i, t in texts.items() if i not in docs and (i in given or LOOKS_SO.search(t))]
    return [text for text in told if re.search(r"[a-z]{2,}", NO_WORDS.sub(" ", text))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_pattern_outside_a_language_has_words(path):
    assert english(path.read_text(encoding="utf-8")) == []


def test_patterns_with_words_are_found():
    told = [r'A = re.compile(r"\b(?:and|but)\b")', 'B = re.sub("of", "", x)', r'C = r"(?:no|ye)\b"']
    told.append(r'D = rf"\b(?:{C}) any (?P<name>.+)"')
    assert all(english(line) for line in told)
    assert english(r'E = re.compile(r"(?P<name>[^a-zü]+)\bx(?i:\w)")') == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_words_are_read_without_the_fast_loader_too(path):
    assert yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)


def test_every_list_of_words_is_used():
    code = Path(patterns.__file__).read_text(encoding="utf-8")
    code += "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    names = patterns._LISTS
    assert all(isinstance(phrase, str) for told in names.values() for phrase in told)  # no: false
    assert [name for name in names if not re.search(rf"[{{\"']{name}[}}\"']", code)] == []


@pytest.mark.parametrize(
    ("phrase", "said", "not_said"),
    [
        ("take|put it", ["take it", "put it"], ["take", "take put it"]),
        ("the~ lot", ["lot", "the lot"], ["the"]),
        (
            "this one please|now~",
            ["this one", "this one now"],
            ["this one please now", "this one "],
        ),
        ("hm+ no", ["hm no", "hmmm no"], ["h no"]),
    ],
)
def test_phrases_are_written_plainly(monkeypatch, phrase, said, not_said):
    monkeypatch.setitem(patterns._LISTS, "phrase", [phrase])
    pattern = re.compile(patterns.filled("{phrase}"))
    assert all(map(pattern.fullmatch, said)) and not any(map(pattern.fullmatch, not_said))


def test_the_words_lie_in_one_folder():
    assert {path.name for path in FOLDER.glob("*.yaml")} >= {
        "words.yaml",
        "knowledge.yaml",
        "lines.yaml",
    }


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.name)
def test_no_list_of_words_is_there_twice(path: Path) -> None:
    node = yaml.compose(path.read_text(encoding="utf-8"))
    assert isinstance(node, yaml.MappingNode)
    keys = [key.value for key, _ in node.value]
    assert sorted(keys) == sorted(set(keys))

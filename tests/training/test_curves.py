"""Curves of training runs: a picture and a page that stand by themselves."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from haggle.core.errors import HaggleError
from haggle.core.storage import write_json, write_jsonl

pytest.importorskip("matplotlib")

from haggle.cli import app
from training.curves import read_curve, write_curves

PNG = b"\x89PNG\r\n\x1a\n"


def make_run(folder: Path, *, held_out: bool = True, finished: bool = True) -> Path:
    """A run's directory as a training leaves it behind."""
    lines: list[dict[str, Any]] = []
    for step in range(1, 9):
        figures = {"step": step, "tokens": 1000 * step, "elapsed_s": 4.0 * step}
        lines.append({**figures, "loss": 2 / step, "lr": 1e-3, "tokens_per_s": 250.0})
        if held_out and step % 4 == 0:
            joint = 0.5 if step == 4 else 0.25
            score = {"joint": joint, "state": 0.75, "cart": None, "bid": None, "last": 1.0}
            score |= {"valid": 1.0, "n": 4, "low": joint - 0.2, "high": joint + 0.2}
            lines.append({**figures, "heldout": score | {"seconds": 1.5}})
    folder.mkdir(parents=True)
    write_jsonl(folder / "metrics.jsonl", lines)
    if finished:
        result = {"base": "tiny", "total_steps": 8, "stopped": "finished"}
        write_json(folder / "result.json", result)
    return folder


class Page(HTMLParser):
    """Texts and outward references of a page; raises where tags do not match."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.references: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        names = ("src", "href", "xlink:href", "srcset", "data")
        self.references += [value for name, value in attrs if name in names]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_a_run_is_drawn_as_a_picture_and_a_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one")
    png, html = write_curves([run], run)
    assert png == run / "curves.png" and html == run / "curves.html"
    assert png.read_bytes().startswith(PNG) and png.stat().st_size > 10_000
    text = html.read_text(encoding="utf-8")
    page = Page(text)
    for words in ("loss", "learning rate", "tokens/s", "held-out accuracy in %", "best"):
        assert words in page.texts
    assert "50.0%" in page.texts and "8 of 8" in page.texts and "finished" in page.texts
    assert page.texts.count("–") == 4  # no turn had a cart or a bid
    svg = re.search(r"<svg.*</svg>", text, re.DOTALL)
    assert svg is not None
    ElementTree.fromstring(svg.group())


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    _, html = write_curves([make_run(tmp_path / "one")], tmp_path)
    text = html.read_text(encoding="utf-8")
    assert all(reference.startswith("#") for reference in Page(text).references)
    assert "<script" not in text and "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_runs_lie_over_each_other_under_names_that_tell_them_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name / "run", held_out=name == "a") for name in ("a", "b")]
    _, html = write_curves(runs, tmp_path / "out")
    text = html.read_text(encoding="utf-8")
    page = Page(text)
    assert {"a/run", "b/run"} <= set(page.texts)
    assert "Held out: a/run" in page.texts and "Held out: b/run" not in page.texts
    alone, _ = write_curves(runs[:1], tmp_path / "alone")
    assert alone.read_bytes() != (tmp_path / "out" / "curves.png").read_bytes()


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    names = ["_<b>$x$ & y", "$5 & up"]
    runs = [make_run(tmp_path / name) for name in names]
    _, html = write_curves(runs, tmp_path / "out")
    text = html.read_text(encoding="utf-8")
    page = Page(text)
    assert "<b>" not in text
    for name in names:  # in the legend and in the table
        assert page.texts.count(name) == 2


def test_the_best_is_the_first_of_several_as_good(tmp_path: Path) -> None:
    best = read_curve(make_run(tmp_path / "one")).best
    assert best is not None and best["step"] == 4
    assert read_curve(make_run(tmp_path / "two", held_out=False)).best is None


def test_a_run_that_is_under_way_can_be_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", finished=False)
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step":9,"tok')  # killed in the middle of a line
    _, html = write_curves([run], run)
    assert "not finished" in Page(html.read_text(encoding="utf-8")).texts


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(HaggleError, match=r"no metrics\.jsonl") as caught:
        write_curves([tmp_path], tmp_path)
    assert "output_dir" in caught.value.hint and caught.value.where == str(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(HaggleError, match="nothing was logged"):
        write_curves([tmp_path], tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"loss":1}\n', encoding="utf-8")
    with pytest.raises(HaggleError, match="no line of a training run") as caught:
        write_curves([tmp_path], tmp_path)
    assert caught.value.where.endswith("metrics.jsonl:1")
    assert not (tmp_path / "curves.png").exists()


def test_the_command_writes_beside_the_run_or_where_it_is_told(tmp_path: Path) -> None:
    runs = [str(make_run(tmp_path / name)) for name in ("one", "two")]
    done = CliRunner().invoke(app, ["curves", runs[0]])
    assert done.exit_code == 0 and (tmp_path / "one" / "curves.html").is_file()
    done = CliRunner().invoke(app, ["curves", *runs, "--out", str(tmp_path / "both")])
    assert done.exit_code == 0 and (tmp_path / "both" / "curves.png").is_file()

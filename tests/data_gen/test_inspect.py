"""Reading dialogues: in the terminal, and in a page that is safe and filters."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from data_gen.dataset.browse import Wanted, render_page, select, view
from data_gen.generate import DataConfig, make_dialogue, to_row
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import write_jsonl

NASTY = '<script>alert("x")</script><img src=x onerror=alert(1)> [bold]not markup[/bold] & "quoted"'
CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    config = DataConfig(train=60)
    return [to_row(*make_dialogue(config, "train", index)) for index in range(60)]


@pytest.fixture(scope="module")
def data(rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "small"
    write_jsonl(out / "train.jsonl", rows)
    return out


class Page(HTMLParser):
    """What a browser would find in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in {"meta", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "option" and self.open[-1] != "option":
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def nasty_row(row: dict[str, Any]) -> dict[str, Any]:
    turns = [
        {**turn, "player": NASTY, "npc_dialogue": NASTY, "act": NASTY} for turn in row["turns"]
    ]
    messages = [{"role": "system", "content": NASTY}, *row["messages"][1:]]
    return {**row, "id": NASTY, "world": NASTY, "turns": turns, "messages": messages}


# Choosing


def test_without_a_seed_the_first_ones_are_shown_with_one_others_but_always_the_same(data) -> None:
    first = select(data, "train", Wanted(), 4)
    assert [row["id"].split("-")[1] for row in first] == ["0", "1", "2", "3"]
    drawn = [[row["id"] for row in select(data, "train", Wanted(), 4, seed=s)] for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_act_and_state_must_be_of_the_same_turn(rows, data) -> None:
    wanted = Wanted(act="accept", state="COMMIT_SALE")
    found = {row["id"] for row in select(data, "train", wanted, 100)}
    assert found and found == {
        row["id"]
        for row in rows
        if any(t["act"] == "accept" and t["state"] == "COMMIT_SALE" for t in row["turns"])
    }


def test_a_shop_is_found_by_its_name_and_by_its_genre(rows, data) -> None:
    world = rows[0]["world"]
    genre = re.sub(r"_[0-9a-f]{6}$", "", world)
    assert [r["id"] for r in select(data, "train", Wanted(world=world), 9)] == [rows[0]["id"]]
    found = select(data, "train", Wanted(world=genre), 100)
    assert len(found) > 1 and all(r["world"].startswith(genre) for r in found)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Wanted(act="acept"), "did you mean 'accept'"),
        (Wanted(state="final_chek"), "did you mean 'FINAL_CHECK'"),
        (Wanted(world="moonbase_of_nobody"), "no dialogue in a shop or genre"),
        (Wanted(act="greet", state="COMMIT_SALE"), "no dialogue fits all of the filters"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest_name(data, wanted, says) -> None:
    with pytest.raises(HaggleError, match=re.escape(says)):
        select(data, "train", wanted, 5)


def test_an_empty_or_missing_data_set_is_told_apart_from_filters_without_hits(tmp_path) -> None:
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(HaggleError, match="is empty"):
        select(tmp_path / "empty.jsonl", "empty", Wanted(act="greet"), 5)
    with pytest.raises(HaggleError, match="no such dataset"):
        select(tmp_path / "nowhere", "train", Wanted(), 5)


# What is shown


def test_carts_are_shown_by_name_and_price_as_the_ledger_has_them(rows) -> None:
    for row in rows:
        for exchange, after in zip(view(row).exchanges, row["messages"][3::2], strict=False):
            note = after["content"].partition("\n")[0]
            if note == "cart []":
                continue
            assert exchange.cart.endswith(f"= {note.rpartition(' price ')[2]}")
            for name, number in re.findall(r'\["([^"]+)",(\d+)\]', note):
                assert f"{number} x {name}" in exchange.cart


def test_a_cart_made_in_the_last_round_is_shown_by_name_too() -> None:
    asked = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",9],["?elven sword",1]],"say":"x"}'
    last = {"messages": [{"role": "user", "content": "cart []\nplayer: nine axes"},
                         {"role": "assistant", "content": asked}],
            "turns": [{"player": "nine axes", "state": "OFFER_SELL", "npc_dialogue": "x", "cart": '{"axe_01":3}'}]}  # fmt: skip
    assert view(last).exchanges[0].cart == "3 x Sharp Axe"


def test_a_row_of_another_format_is_shown_as_far_as_it_goes(rows) -> None:
    bare = {"messages": [{"role": "user", "content": "hello"}],
            "turns": [{"player": "hi", "state": "CASUAL", "npc_dialogue": "Hm.", "cart": "{oops"}]}  # fmt: skip
    shown = view(bare)
    assert shown.voice == "not recorded" and shown.exchanges[0].cart == "{oops"
    assert "hi" in render_page([bare], "x")


# The page


def test_the_page_is_whole_needs_nothing_else_and_holds_every_dialogue(rows) -> None:
    text = render_page(rows, "train")
    page = Page(text)
    assert page.open == []
    assert len(page.all("article")) == len(rows)
    assert len([t for t in page.all("div") if t.get("class") == "turn"]) == sum(
        len(r["turns"]) for r in rows
    )
    assert not re.search(r"""(src|href)\s*=|url\(|@import|https?:""", text)


def test_the_page_offers_the_acts_states_scenarios_and_voices_it_has(rows) -> None:
    text = render_page(rows, "train")
    selects = dict(re.findall(r'<select name="(\w+)">(.*?)</select>', text, re.S))
    assert set(selects) == {"act", "state", "scenario", "voice"}
    acts = set(re.findall(r"<option>(.*?)</option>", selects["act"]))
    assert acts == {turn["act"] for row in rows for turn in row["turns"]}
    assert "<option>recommendation</option>" in selects["scenario"]


def test_nothing_that_was_said_becomes_markup_or_script(rows) -> None:
    page = Page(render_page([nasty_row(rows[0])], NASTY))
    assert len(page.all("script")) == 1 and not page.all("img")
    assert "".join(page.text).count(NASTY) > 2
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_filters_work_in_a_browser(rows, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_page(rows, "train"), encoding="utf-8")
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
    ]

    def shown(fragment: str) -> tuple[int, int]:
        done = subprocess.run(
            [*command, path.as_uri() + fragment], capture_output=True, timeout=90, check=True
        )
        dom = done.stdout.decode("utf-8")
        counted = re.search(r'<b id="shown">(\d+)</b>', dom)
        assert counted
        visible = [a for a in re.findall(r"<article[^>]*>", dom) if "hidden" not in a]
        assert len(visible) == int(counted[1])
        return int(counted[1]), dom.count('class="turn hit"')

    def expected(act: str, state: str) -> tuple[int, int]:
        hits = [sum(t["act"] == act and t["state"] == state for t in r["turns"]) for r in rows]
        return sum(map(bool, hits)), sum(hits)

    assert shown("") == (len(rows), 0)
    assert shown("#act=accept&state=COMMIT_SALE") == expected("accept", "COMMIT_SALE")
    scenario = sum(row["scenario"] == "recommendation" for row in rows)
    assert shown("#scenario=recommendation") == (scenario, 0)


# The command


def run(*arguments: object) -> str:
    runner = CliRunner(env={"COLUMNS": "400"})
    result = runner.invoke(app, ["inspect", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.output


def test_inspect_prints_dialogues_with_what_was_meant_and_marks_what_was_asked_for(
    data, rows
) -> None:
    shown = run(data, "--n", 2)
    assert rows[0]["id"] in shown and rows[1]["id"] in shown and rows[2]["id"] not in shown
    assert f"-> {rows[0]['turns'][0]['state']}" in shown and "<--" not in shown
    marked = [line for line in run(data, "--act", "accept", "--n", 3).splitlines() if "<--" in line]
    assert marked and all("accept" in line for line in marked)


def test_inspect_prints_brackets_as_they_were_typed(rows, tmp_path) -> None:
    write_jsonl(tmp_path / "train.jsonl", [nasty_row(rows[0])])
    assert "[bold]not markup[/bold]" in run(tmp_path)


def test_inspect_writes_a_page(data, tmp_path) -> None:
    page = tmp_path / "new" / "page.html"
    assert "60 dialogues" in run(data, "--html", page)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_wrong_act_on_the_command_line_names_the_nearest(data) -> None:
    with pytest.raises(HaggleError, match="did you mean 'greet'"):
        run(data, "--act", "gret")

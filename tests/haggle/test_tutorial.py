"""docs/tutorial.md: its mistakes are told in its words, its shops and cases can be read, its Python
runs, as the README's does; its requests are answered with the fields that it shows."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import haggle
from eval.cases import load_cases
from haggle.cli import main
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.trade.world_io import load_world, load_worlds
from serving.engines.scripted import ScriptedEngine
from serving.http.app import make_app

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
YAML, EXPLICIT = [text for kind, text in BLOCKS if kind == "yaml"]
(CSV,) = [text for kind, text in BLOCKS if kind == "csv"]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
ANSWER, REFUSALS, CASES = [text for kind, text in BLOCKS if kind == "json"]
PLAIN = [text for kind, text in BLOCKS if not kind]
# A command that fails, and what is told then.
MISTAKES = re.findall(r"^\$ haggle (.+)\n((?:(?!\$).+\n)+)", "\n".join(PLAIN), re.MULTILINE)
RAISED = [text.partition(": ")[2].strip() for text in PLAIN if text.startswith("haggle.core")]
SALES = re.compile(r"\[Sale\((.*), review='[\w-]{8}'\)\]")  # the id is another each time
OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Reading Lamp",2]],"say":"__CART__: __PRICE__."}'
MORE = OFFER.replace('"last":""', '"last":"OFFER_SELL"').replace("2]", "3]")
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__, yes?"}'
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Sold."}'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tutorial's shop, in the folder where its commands are typed."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my_shop.yaml"
    path.write_text(YAML, encoding="utf-8")
    return path


def test_the_shop_is_the_same_as_yaml_and_as_a_spreadsheet(shop: Path):
    table = shop.with_suffix(".csv")
    table.write_text(CSV, encoding="utf-8")
    one, two = load_world(shop), load_world(table)
    assert one.items == two.items and [item.for_sale for item in one.items] == [True, True, False]
    assert (one.merchant, one.currency) == (two.merchant, two.currency)
    shop.write_text(YAML + EXPLICIT, encoding="utf-8")
    assert load_world(shop).confirmation == "explicit" != one.confirmation


def test_the_tutorial_shows_the_mistakes_of_five_commands():
    assert len(MISTAKES) == 5 and len(RAISED) == 2


@pytest.mark.parametrize(("command", "told"), MISTAKES, ids=[words for words, _ in MISTAKES])
def test_a_mistake_of_the_tutorial_is_told_in_its_words(
    command: str, told: str, shop: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    shop.write_text(YAML.replace("price: 48", "prise: 48"), encoding="utf-8")
    shop.with_suffix(".csv").write_text(CSV.replace(",48,", ",forty,"), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["haggle", *command.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code and capsys.readouterr().err == told


def test_a_wrong_option_of_the_demo_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (words, told) = re.search(r"\$ python scripts/demo\.py (.+)\n(.+)\n", TUTORIAL).groups()  # type: ignore[union-attr]
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.argv", ["haggle", "demo", *words.split()])
    with pytest.raises(SystemExit):
        main()
    assert told in capsys.readouterr().err


def test_what_python_raises_is_what_the_tutorial_shows():
    path, review = RAISED
    with pytest.raises(HaggleError) as missing:
        haggle.open_shop("my_shp.yaml")
    assert str(missing.value) == path
    opened = haggle.open_shop("my_shop.yaml", engine=ScriptedEngine([]))
    with pytest.raises(HaggleError) as early:
        opened.confirm()
    assert str(early.value) == review


@pytest.mark.parametrize(
    ("code", "answers", "pieces"),
    [(PYTHON[0], [OFFER, MORE, REVIEW, SALE], 3), (PYTHON[1], [OFFER, REVIEW, SALE], 2)],
)
def test_the_python_of_the_tutorial_runs_and_prints_the_sale_that_it_shows(
    code: str, answers: list[str], pieces: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    open_shop = partial(haggle.open_shop, engine=ScriptedEngine(answers))
    monkeypatch.setattr(haggle, "open_shop", open_shop)
    exec(compile(code, "tutorial", "exec"), {})
    (sale,) = SALES.findall(capsys.readouterr().out)
    assert f"{{'lamp': {pieces}}}" in sale and sale in SALES.findall(TUTORIAL)


def test_the_python_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )
    open_shop = partial(haggle.open_shop, engine=ScriptedEngine([OFFER]))
    monkeypatch.setattr(haggle, "open_shop", open_shop)
    exec(compile(code, "README", "exec"), {})
    assert "OFFER_SELL {'Reading Lamp': 2} 96.0 []" in capsys.readouterr().out


def test_its_requests_are_answered_with_the_fields_that_it_shows(shop: Path):
    bodies = re.findall(r"^curl localhost:8000(\S+) .* -d '(.*)'$", TUTORIAL, re.MULTILINE)
    world, engine = load_world(shop), ScriptedEngine([OFFER, REVIEW])
    shown, refusals = json.loads(ANSWER), [json.loads(line) for line in REFUSALS.splitlines()]
    with TestClient(make_app(engine, {world.name: world}, "state")) as client:
        (opened, first, second) = bodies
        session = client.post(opened[0], json=json.loads(opened[1])).json()["session"]
        for path, body in (first, second):
            answer = client.post(path.replace("ID", session), json=json.loads(body)).json()
        assert shown.keys() <= answer.keys() and shown["cart"][0].keys() <= answer["cart"][0].keys()
        for key in ("last", "state", "cart", "price", "sale"):
            assert answer[key] == shown[key]
        assert len(answer["review"]) == len(shown["review"])
        told = [
            client.post("/v1/sessions", json={"shop": "my_shp"}).json(),
            client.post(f"/v1/sessions/{session}/confirm", json={"review": "nope"}).json(),
        ]
        assert told == refusals


def test_its_cases_can_be_read_and_a_misspelt_state_is_told_in_its_words(shop: Path):
    Path("my_worlds").mkdir()
    shop.rename(Path("my_worlds") / shop.name)
    worlds = load_worlds("my_worlds")
    Path("my_cases.jsonl").write_text(CASES, encoding="utf-8")
    assert len(load_cases("my_cases.jsonl", worlds)) == 2
    (told,) = [text for text in PLAIN if text.startswith("error: bad_cases")]
    Path("bad_cases.jsonl").write_text(CASES.replace("SELL", "SEL", 1), encoding="utf-8")
    with pytest.raises(HaggleError) as wrong:
        load_cases("bad_cases.jsonl", worlds)
    assert f"error: {wrong.value}\n" == told

"""The hand-written corpus: whole, in many voices, apart by split, and not from the benchmark."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from data_gen import corpus_io
from data_gen.corpus_io import CORPUS, CorpusFile, corpus_rows, corpus_worlds
from haggle.core.config import ROOT, load_config
from haggle.core.errors import HaggleError
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCENARIOS
from haggle.trade.wire import decode_compact
from haggle.trade.world_io import load_worlds

from .conftest import grams

FILES = sorted(CORPUS.glob("*.yaml"))
LOADED = {path.stem: load_config(path, CorpusFile) for path in FILES}
SHOP = "a_clover_gate"
TURNS = """\
      - {player: "seeds?", state: SHOW_ITEMS, show: [Pumpkin Seeds], say: "I have __ITEMS__."}
      - {player: "two", state: OFFER_SELL, cart: {Pumpkin Seeds: 2}, say: "__CART__, __PRICE__ __CURRENCY__."}
      - {player: "less?", state: NEGOTIATE, bid: "5%", say: "__PRICE__, then."}
      - {player: "ok", state: FINAL_CHECK, say: "__CART__ for __PRICE__?"}
      - {player: "yes", state: COMMIT_SALE, say: "Done."}
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_dialogue_of_a_file_passes_the_checks(path: Path):
    rows = list(corpus_rows(files=[path]))
    dialogues = LOADED[path.stem].dialogues
    typed = sum(len(dialogue.turns) for dialogue in dialogues)
    righted = sum(turn.did is not None for dialogue in dialogues for turn in dialogue.turns)
    assert len(rows) == len(dialogues) + righted and (len(dialogues) >= 10 or typed >= 20)
    procedure = load_procedure()
    for row in rows:
        answers = [
            m["content"]
            for m in row["messages"]
            if m["role"] == "assistant" and m.get("weight", 1) != 0
        ]
        assert len(answers) == len(row["turns"])
        for answer, turn in zip(answers, row["turns"], strict=True):
            proposal = decode_compact(answer, procedure)
            assert (proposal.last, proposal.state) == (turn["last"], turn["state"])
            assert "__" not in turn["npc_dialogue"]


def test_there_are_enough_dialogues_voices_and_shops():
    assert len(LOADED) >= 12
    assert sum(len(file.dialogues) for file in LOADED.values()) >= 400
    assert len(corpus_worlds()) >= 10
    played = {d.world for file in LOADED.values() for d in file.dialogues}
    assert played == set(corpus_worlds()), "every shop is played in"


def test_a_voice_is_one_file_and_of_one_split():
    assert [file.voice for file in LOADED.values()] == list(LOADED)
    assert {file.split for file in LOADED.values()} == {"train", "test"}


def test_train_and_test_share_no_shop_merchant_or_item_list():
    shops: dict[str, set[str]] = defaultdict(set)
    for file in LOADED.values():
        shops[file.split] |= {dialogue.world for dialogue in file.dialogues}
    assert shops["train"] and shops["test"] and not shops["train"] & shops["test"]
    worlds = corpus_worlds()
    for test in shops["test"]:
        for train in shops["train"]:
            assert worlds[test].merchant.name != worlds[train].merchant.name
            both = set(worlds[test].sellable_names) & set(worlds[train].sellable_names)
            assert len(both) <= 2, f"{test} and {train} both sell {both}"


def test_rows_of_a_split_are_those_of_its_voices():
    for split in ("train", "test"):
        voices = {row["id"].split("-")[1] for row in corpus_rows(split)}
        assert voices == {file.voice for file in LOADED.values() if file.split == split}
    ids = [row["id"] for row in corpus_rows()]
    assert len(set(ids)) == len(ids)


def test_every_state_and_scenario_is_met_in_both_splits():
    for split in ("train", "test"):
        files = [file for file in LOADED.values() if file.split == split]
        dialogues = [dialogue for file in files for dialogue in file.dialogues]
        assert {d.scenario for d in dialogues} == set(SCENARIOS)
        assert {t.state for d in dialogues for t in d.turns} == set(load_procedure().states)


def with_a_cart(line: str) -> list[tuple[str, str, str, bool]]:
    """(place, line, state, whether the cart stays) of turns with a cart whose line matches."""
    found = []
    for row in corpus_rows():
        cart = "{}"
        for number, turn in enumerate(row["turns"], start=1):
            if cart != "{}" and re.search(line, turn["player"], re.IGNORECASE):
                same = turn["cart"] == cart
                found.append((f"{row['id']}/{number}", turn["player"], turn["state"], same))
            cart = turn["cart"]
    return found


def test_a_question_about_the_total_is_answered_with_the_cart_as_it_is():
    asked = with_a_cart(r"what('s| is| was) the (total|sum)|say the sum|in my (cart|order)\b")
    assert asked and {(state, same) for _, _, state, same in asked} == {("OFFER_SELL", True)}, asked


def test_a_question_whether_something_is_sold_is_no_order():
    asked = with_a_cart(
        r"\bin stock\?|\b(do|did) (you|ye|u) (sell|have|carry|do)\b|\bwould there be an?\b"
        r"|\bcould an? \w+ be found|^(?!total|sum|and\b)\w+\?( \w+){0,3}$"
    )
    orders = [turn for turn in asked if turn[2] == "OFFER_SELL" and turn[3]]
    assert len(asked) > 10 and not orders, orders


def test_no_two_players_of_the_splits_share_a_long_run_of_words():
    said: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file in LOADED.values():
        for dialogue in file.dialogues:
            for turn in dialogue.turns:
                said[file.split] |= grams(turn.player)
    assert not said["train"] & said["test"]


def test_labelled_talk_to_measure_on_is_all_of_held_out_voices():
    said = {
        turn.player
        for file in LOADED.values()
        if file.split == "test"
        for dialogue in file.dialogues
        for turn in dialogue.turns
    }
    text = (ROOT / "eval" / "benchmarks" / "talked.jsonl").read_text(encoding="utf-8")
    cases = [json.loads(line) for line in text.splitlines()]
    assert len(cases) == 778 and {case["player"] for case in cases} <= said


@pytest.mark.parametrize(("name", "count"), [("talked-2", 587), ("talked-3", 457)])
def test_later_labelled_talk_shares_no_shop_and_no_six_words_with_training(name, count):
    folder = ROOT / "eval" / "benchmarks" / name
    train = [file for file in LOADED.values() if file.split == "train"]
    said = set[tuple[str, ...]]()
    for file in train:
        said |= {run for d in file.dialogues for turn in d.turns for run in grams(turn.player)}
    text = (folder / "cases.jsonl").read_text(encoding="utf-8")
    cases = [json.loads(line) for line in text.splitlines()]
    shared = [case["id"] for case in cases if grams(case["player"]) & said]
    assert len(cases) == count and not shared
    worlds, shops = corpus_worlds(), {d.world for file in train for d in file.dialogues}
    for shop_name, world in load_worlds(folder / "worlds").items():
        assert shop_name not in shops
        for shop in shops:
            both = set(world.sellable_names) & set(worlds[shop].sellable_names)
            assert len(both) <= 2, f"{shop_name} and {shop} both sell {both}"


def test_no_player_of_the_corpus_says_six_words_of_the_benchmark():
    benchmark: dict[tuple[str, ...], str] = {}
    sets = [ROOT / "eval" / "benchmarks" / f"{name}.jsonl" for name in ("dev", "held")]
    for line in chain.from_iterable(p.read_text(encoding="utf-8").splitlines() for p in sets):
        case = json.loads(line)
        lines = [case["player"]]
        for past in case["history"]:
            lines += [past["player"], past["npc"]["npc_dialogue"]]
        for text in lines:
            benchmark |= dict.fromkeys(grams(text), case["id"])
    assert len(benchmark) > 500
    for voice, file in LOADED.items():
        for number, dialogue in enumerate(file.dialogues, start=1):
            for turn in dialogue.turns:
                for text in (turn.player, turn.say):
                    shared = {benchmark[g] for g in grams(text) if g in benchmark}
                    assert not shared, f"{voice} {number}: {text!r} shares six words with {shared}"


def test_what_the_merchant_got_wrong_is_gone_on_from_and_learned_right(written):
    old = '__PRICE__ __CURRENCY__."'
    did = 'did: {state: OFFER_SELL, cart: {Pumpkin Seeds: 5}, say: "__CART__ for __PRICE__."}'
    _, whole, right = corpus_rows(files=[written(old, f"{old}, {did}")])
    answers = [m for m in whole["messages"] if m["role"] == "assistant"]
    assert [m.get("weight", 1) for m in answers] == [1, 0, 1, 1, 1]
    assert [t["state"] for t in whole["turns"]] == [
        "SHOW_ITEMS", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE",
    ]  # fmt: skip
    assert list(json.loads(whole["turns"][1]["cart"]).values()) == [5]
    assert right["id"].endswith("/2") and len(right["turns"]) == 1
    assert [m.get("weight", 1) for m in right["messages"] if m["role"] == "assistant"] == [0, 1]
    assert list(json.loads(right["turns"][0]["cart"]).values()) == [2]


@pytest.fixture
def written(tmp_path: Path):
    """Writes a corpus file of two dialogues with one text of the second replaced."""

    def write(old: str = "", new: str = "") -> Path:
        second = f"  - world: {SHOP}\n    turns:\n{TURNS}"
        assert old in second
        text = f"voice: odd\ndialogues:\n{second}{second.replace(old, new, 1) if old else second}"
        path = tmp_path / "odd.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_formula_in_a_cart_is_told_in_order_and_a_wrong_one_by_its_place(written):
    two = "cart: {Pumpkin Seeds: 2}"
    rows = list(corpus_rows(files=[written(two, 'cart: {Pumpkin Seeds: "4*3+1"}')]))
    assert '["Pumpkin Seeds","3*4+1"]' in rows[1]["messages"][-7]["content"]
    with pytest.raises(HaggleError, match="'3\\*0' is none of: a\\*b") as refused:
        list(corpus_rows(files=[written(two, 'cart: {Pumpkin Seeds: "3*0"}')]))
    assert "dialogues.1.turns.1.cart.Pumpkin Seeds" in str(refused.value)


def test_a_file_of_ones_own_becomes_rows(written):
    rows = list(corpus_rows(files=[written()]))
    assert [row["id"] for row in rows] == ["corpus-odd-001", "corpus-odd-002"]
    assert [turn["state"] for turn in rows[0]["turns"]][-1] == "COMMIT_SALE"
    assert list(corpus_rows("test", [written()])) == []


@pytest.mark.parametrize(
    ("old", "new", "turn", "complaint"),
    [
        ("state: OFFER_SELL", "state: OFER_SELL", 2, "did you mean 'OFFER_SELL'"),
        ("show: [Pumpkin Seeds]", "show: [Pumpkin Seed]", 1, "did you mean 'Pumpkin Seeds'"),
        ("show: [Pumpkin Seeds], ", "", 1, "a show goes with SHOW_ITEMS"),
        ("bid: \"5%\"", "show: [Pumpkin Seeds]", 3, "a show goes with SHOW_ITEMS"),
        ("cart: {Pumpkin Seeds: 2}", "cart: {Pumpkinseed: 2}", 2, "did you mean 'Pumpkin Seeds'"),
        ("cart: {Pumpkin Seeds: 2}", "cart: {pumpkin seeds: 2}", 2, "is not in the inventory"),
        ("cart: {Pumpkin Seeds: 2}", 'cart: {"?Pumpkin Seeds": 2}', 2, "is sold here"),
        ("cart: {Pumpkin Seeds: 2}", "cart: {}", 2, "empty_cart"),
        ("cart: {Pumpkin Seeds: 2}, ", "", 2, "a cart goes with OFFER_SELL"),
        ("state: FINAL_CHECK", "state: FINAL_CHECK, cart: {Pumpkin Seeds: 2}", 4, "a cart goes with"),
        ("state: FINAL_CHECK", "state: FINAL_CHECK, bid: 3", 4, "a bid goes with NEGOTIATE"),
        ('bid: "5%"', 'bid: "half"', 3, "format"),
        ("state: FINAL_CHECK", "state: COMMIT_SALE", 4, "transition"),
        ("state: COMMIT_SALE", "state: CASUAL, cart: {Pumpkin Seeds: 1}", 5, "a cart goes with"),
        ('"__PRICE__, then."', '"Only 999, then."', 3, "numbers"),
    ],
)  # fmt: skip
def test_a_wrong_label_is_told_with_file_dialogue_and_turn(written, old, new, turn, complaint):
    with pytest.raises(HaggleError) as refused:
        list(corpus_rows(files=[written(old, new)]))
    assert f"odd.yaml: dialogue 2, turn {turn}: " in str(refused.value)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (f"world: {SHOP}", "world: a_clover_gat", ["odd.yaml: dialogue 2", f"did you mean {SHOP!r}"]),
        ("say: \"Done.\"", "sya: \"Done.\"", ["odd.yaml", "dialogues.1.turns.4.sya", "did you mean 'say'"]),
        ("cart: {Pumpkin Seeds: 2}", "cart: {Pumpkin Seeds: two}", ["odd.yaml", "dialogues.1.turns.1.cart"]),
        ("    turns:", "    scenario: gift\n    turns:", ["odd.yaml", "dialogues.1.scenario", "'gift'"]),
        ('say: "Done."}', 'say: "Done."', ["odd.yaml:", "not YAML"]),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_told_with_file_and_field(written, old, new, told):
    with pytest.raises(HaggleError) as refused:
        list(corpus_rows(files=[written(old, new)]))
    for words in told:
        assert words in str(refused.value)


def test_the_check_lists_every_problem_and_counts_what_is_right(written, capsys, monkeypatch):
    def run(*paths: Path) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["corpus_io", *map(str, paths)])
        with pytest.raises(SystemExit) as stop:
            corpus_io.main()
        return stop.value.code, capsys.readouterr().out

    code, out = run(written(), FILES[0])
    assert code == 0 and "odd.yaml: odd, train, 2 dialogues, 10 turns" in out
    assert f"{FILES[0].name}: " in out
    code, out = run(written("state: FINAL_CHECK", "state: COMMIT_SALE"), FILES[0])
    assert code == 1 and "odd.yaml: dialogue 2, turn 4" in out and f"{FILES[0].name}: " in out

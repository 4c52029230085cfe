"""Turn cases: one hand-written line, one answer, held against its gold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.cases import load_cases, run_cases
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.grammar.json_text import to_json
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.session_record import to_record
from haggle.trade.world_io import load_worlds

KEYS = {
    "n", "state_accuracy", "cart_accuracy", "joint_accuracy", "forbidden_rate", "price_ok_rate",
    "shown_ok_rate",
    "valid_json_rate",
    "wrongful_sales", "held_up_yeses",
}  # fmt: skip
WORLD = """\
merchant: {name: Ada, persona: A calm trader.}
currency: gold
items:
  - {item_id: axe, item_name: Sharp Axe, price: 130, quantity: 3}
  - {item_id: map, item_name: Local Map, price: 60, quantity: 1}
  - {item_id: wand, item_name: Elemental Wand}
"""
OFFERED: dict[str, Any] = {
    "player": "an axe",
    "npc": {
        "npc_dialogue": "130 gold.", "context_type": "TRADE", "context_subtype": "OFFER_SELL",
        "items": [{"item_id": "axe", "quantity": 1}], "original_price": 130, "sale_price": 130,
    },
}  # fmt: skip


def case(number: int, **fields: object) -> dict:
    base = {
        "id": f"c{number}",
        "world": "stall",
        "player": f"line {number}",
        "gold": {"states": ["CASUAL"]},
    }
    return base | fields


def compact(state: str, last: str = "", **fields: object) -> str:
    return to_json({"last": last, "state": state, **fields, "say": "Well."})


class Answers:
    """Answers by the player's line; breaks off after `until` answers."""

    name, model = "table", "table-1"

    def __init__(self, answers: dict[str, str], until: int = 10**9) -> None:
        self.answers, self.until, self.asked = answers, until, 0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        return [self._answer(request) for request in requests]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        yield self._answer(request)

    def close(self) -> None: ...

    def _answer(self, request: GenerationRequest) -> Generation:
        if self.asked >= self.until:
            raise KeyboardInterrupt
        self.asked += 1
        line = request.messages[-1].content.partition("player: ")[2]
        told = self.answers.get(line, compact("CASUAL"))
        return Generation(told, latency_s=self.asked, probability=0.1 if request.scored else None)


@pytest.fixture
def bench(tmp_path: Path):
    """Runs cases against answers; gives metrics, predictions and the engine."""
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "stall.yaml").write_text(WORLD, encoding="utf-8")

    def run(
        cases: list[dict], answers: dict[str, str] | None = None, *, until: int = 10**9, **fields
    ):
        path = tmp_path / "cases.jsonl"
        path.write_text("".join(json.dumps(c) + "\n" for c in cases), encoding="utf-8")
        engine = Answers(answers or {}, until)
        options: dict[str, Any] = {"guard": "off", "batch": 2} | fields
        out = tmp_path / "out"
        metrics = run_cases(path, tmp_path / "worlds", engine, out=out, progress=False, **options)
        return metrics, read_jsonl(out / "predictions.jsonl"), engine

    return run


def test_metrics_have_exactly_the_agreed_keys(bench, tmp_path):
    metrics, _, _ = bench([case(1, tags=["a", "b"]), case(2, tags=["b"])])
    assert set(metrics) == KEYS | {"by_tag", "latency_s", "engine", "guard", "model", "renewed"}
    assert set(metrics["latency_s"]) == {"p50", "p95"}
    assert (metrics["engine"], metrics["guard"], metrics["model"]) == ("table", "off", "table-1")
    assert {tag: set(rates) for tag, rates in metrics["by_tag"].items()} == {"a": KEYS, "b": KEYS}
    assert (metrics["by_tag"]["a"]["n"], metrics["by_tag"]["b"]["n"], metrics["n"]) == (1, 2, 2)
    assert json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8")) == metrics


def test_what_no_case_checks_is_none_not_one(bench):
    metrics, _, _ = bench([case(1)])
    assert metrics["cart_accuracy"] is None and metrics["price_ok_rate"] is None
    assert metrics["state_accuracy"] == 1.0 and metrics["forbidden_rate"] == 0.0


def test_the_cart_is_checked_only_where_the_answer_states_one(bench):
    gold = {"states": ["OFFER_SELL", "CASUAL"], "carts": [{"axe": 2}, {"axe": 1}]}
    cases = [case(n, gold=gold) for n in (1, 2, 3)]
    metrics, predictions, _ = bench(
        cases,
        {
            "line 1": compact("OFFER_SELL", cart=[["Sharp Axe", 2]]),
            "line 2": compact("OFFER_SELL", cart=[["Local Map", 1]]),
            "line 3": compact("CASUAL"),
        },
    )
    assert metrics["cart_accuracy"] == 0.5 and metrics["joint_accuracy"] == pytest.approx(2 / 3)
    assert [p["failed"] for p in predictions] == [[], ["cart"], []]


def test_a_price_out_of_its_range_or_a_forbidden_state_spoils_the_case(bench):
    gold = {
        "states": ["NEGOTIATE", "COMMIT_SALE"],
        "sale_price": [122, 130],
        "forbidden_states": ["COMMIT_SALE"],
    }
    cases = [case(n, gold=gold, history=[OFFERED]) for n in (1, 2, 3)]
    metrics, predictions, _ = bench(
        cases,
        {
            "line 1": compact("NEGOTIATE", "OFFER_SELL", bid=126),
            "line 2": compact("NEGOTIATE", "OFFER_SELL", bid=60),
            "line 3": compact("COMMIT_SALE", "OFFER_SELL"),
        },
    )
    assert [p["failed"] for p in predictions] == [[], ["price"], ["forbidden"]]
    assert metrics["price_ok_rate"] == pytest.approx(2 / 3)
    assert metrics["forbidden_rate"] == metrics["joint_accuracy"] == pytest.approx(1 / 3)
    assert metrics["state_accuracy"] == 1.0


def test_the_guard_keeps_a_forbidden_sale_from_happening(bench):
    gold = {"states": ["FINAL_CHECK"], "forbidden_states": ["COMMIT_SALE"]}
    answers = {"line 1": compact("COMMIT_SALE", "OFFER_SELL")}
    cases = [case(1, gold=gold, history=[OFFERED])]
    metrics, _, _ = bench(cases, answers, guard="state")
    assert metrics["forbidden_rate"] == 0.0 and metrics["joint_accuracy"] == 1.0


REVIEWED = [
    OFFERED,
    {
        "player": "ok",
        "npc": OFFERED["npc"] | {"npc_dialogue": "1 Sharp Axe, 130 gold?", "context_subtype": "FINAL_CHECK"},
    },
]  # fmt: skip
NO: dict[str, Any] = {"states": ["FINAL_CHECK", "CASUAL"], "forbidden_states": ["COMMIT_SALE"]}
YES: dict[str, Any] = {"states": ["COMMIT_SALE"]}
SELLS = compact("COMMIT_SALE", "FINAL_CHECK")


def counts(rates: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Wrongful sales and held-up yeses, each with the number of cases that were asked."""
    wrongful, held_up = rates["wrongful_sales"], rates["held_up_yeses"]
    return (wrongful["passed"], wrongful["n"]), (held_up["passed"], held_up["n"])


def test_a_sale_on_a_line_that_is_no_agreement_is_counted_as_wrongful(bench):
    cases = [
        case(1, gold=NO, history=REVIEWED, tags=["no", "delay"]),
        case(2, gold=NO, history=REVIEWED, tags=["no", "irony"]),
        case(3, gold=NO, history=[OFFERED], tags=["no"]),  # no answer to a review
        case(4, gold=YES, history=REVIEWED, tags=["yes"]),
    ]
    metrics, _, _ = bench(cases, {f"line {n}": SELLS for n in (1, 3, 4)})
    assert counts(metrics) == ((1, 2), (0, 1))
    assert metrics["wrongful_sales"]["value"] == 0.5 and metrics["held_up_yeses"]["value"] == 0
    told = {tag: counts(rates) for tag, rates in metrics["by_tag"].items()}
    assert told == {
        "no": ((1, 2), (0, 0)), "delay": ((1, 1), (0, 0)), "irony": ((0, 1), (0, 0)),
        "yes": ((0, 0), (0, 1)),
    }  # fmt: skip


def test_a_yes_that_closes_no_sale_is_counted_as_held_up(bench):
    cases = [case(n, gold=YES, history=REVIEWED, tags=["yes"]) for n in (1, 2, 3)]
    cases.append(case(4, gold=YES | {"states": ["COMMIT_SALE", "FINAL_CHECK"]}, history=REVIEWED))
    answers = {"line 1": SELLS, "line 2": compact("FINAL_CHECK", "FINAL_CHECK")}
    metrics, _, _ = bench(cases, answers)
    assert counts(metrics) == ((0, 0), (2, 3)), "a case that may stay open holds nobody up"
    assert metrics["held_up_yeses"]["value"] == pytest.approx(2 / 3)


def test_the_guard_turns_a_wrongful_sale_into_none_and_holds_up_what_it_cannot_read(bench):
    said = {"no": "deal once I've seen it", "plain": "yes", "odd": "my boat is yours to paint"}
    cases = [
        case(1, player=said["no"], gold=NO, history=REVIEWED),
        case(2, player=said["plain"], gold=YES, history=REVIEWED),
        case(3, player=said["odd"], gold=YES, history=REVIEWED),
    ]
    answers = dict.fromkeys(said.values(), SELLS)
    assert counts(bench(cases, answers)[0]) == ((1, 1), (0, 2))
    assert counts(bench(cases, answers, guard="state")[0]) == ((0, 1), (1, 2))


def test_a_yes_that_does_not_follow_the_review_at_once_is_listed_as_renewed(bench):
    chat = {"player": "nice hat", "npc": {"npc_dialogue": "Thank you.", "context_type": "CASUAL"}}
    cases = [
        case(1, player="yes", gold=YES, history=[*REVIEWED, chat]),
        case(2, player="yes", gold=YES, history=REVIEWED),
        case(3, player="yes, for 3 shells", gold=NO, history=REVIEWED),
    ]
    answers = dict.fromkeys(("yes", "yes, for 3 shells"), SELLS)
    metrics, predictions, _ = bench(cases, answers, guard="state")
    assert metrics["renewed"] == ["c1"]
    assert [p["turn"]["withheld"] for p in predictions] == ["renewed", "", "number"]
    assert bench(cases, answers)[0]["renewed"] == [], "with the guard off it is sold"


@pytest.fixture
def kept(tmp_path):
    """The record of a session in which the merchant asked whether two axes are meant."""
    (tmp_path / "stall.yaml").write_text(WORLD, encoding="utf-8")
    world = load_worlds(tmp_path)["stall"]
    session = Session(world, method=get_method("astp-stepwise"))
    asked = compact("OFFER_SELL", cart=[["Sharp Axe", 2]])
    unsure = Merchant(Answers({}), ask_below=0.5)
    turn = unsure.complete(session, "the sharp thing, twice", Generation(asked, probability=0.1))
    assert turn.withheld == "asked_order" and not turn.cart
    return to_record(session, world)


def test_a_case_goes_on_in_a_session_that_was_kept_with_what_was_asked_in_it(bench, kept):
    gold = {"states": ["OFFER_SELL"], "left": {"axe": 2}}
    cases = [case(n, session=kept, gold=gold, player="yes") for n in (1, 2)]
    cases[1] |= {"gold": gold | {"left": {"axe": 1}}}
    metrics, predictions, _ = bench(cases, guard="state", method="astp-stepwise")
    assert [p["failed"] for p in predictions] == [[], ["cart"]]
    assert metrics["cart_accuracy"] == 0.5


def test_the_order_that_is_left_is_checked_whatever_the_state_and_one_item_shown_is_enough(bench):
    shown = {"states": ["SHOW_ITEMS"], "shown": ["map"], "left": {"axe": 1}}
    cases = [case(n, gold=shown, history=[OFFERED]) for n in (1, 2, 3)]
    cases.append(case(4, gold={"states": ["CASUAL"], "left": {}}, history=[OFFERED]))
    answers = {
        "line 1": compact("SHOW_ITEMS", "OFFER_SELL", show=["Sharp Axe", "Local Map"]),
        "line 2": compact("SHOW_ITEMS", "OFFER_SELL", show=["Sharp Axe"]),
        "line 3": compact("OFFER_SELL", "OFFER_SELL", cart=[["Sharp Axe", 1]]),
        "line 4": compact("CASUAL", "OFFER_SELL"),
    }
    metrics, predictions, _ = bench(cases, answers)
    assert [p["failed"] for p in predictions] == [[], ["shown"], ["state", "shown"], ["cart"]]
    assert metrics["shown_ok_rate"] == pytest.approx(1 / 3)


def test_an_order_below_the_limit_is_asked_about_as_it_is_where_it_is_served(bench):
    cases = [case(1, gold={"states": ["OFFER_SELL"], "left": {"axe": 1}}, player="sharp thing")]
    linked = "sharp {Sharp Axe} thing"  # as the model reads it
    order = {linked: compact("OFFER_SELL", cart=[["Sharp Axe", 1]])}
    for below, failed in ((0.0, []), (0.5, ["state", "cart"])):
        options: dict[str, Any] = {"guard": "state", "method": "astp-stepwise", "ask_below": below}
        _, predictions, engine = bench(cases, order, **options)
        assert predictions[0]["failed"] == failed and engine.asked, "no answer is taken over"


def test_garbage_is_no_valid_json_but_may_still_be_judged(bench):
    metrics, predictions, _ = bench([case(1), case(2)], {"line 1": "garbage"})
    assert metrics["valid_json_rate"] == 0.5
    assert predictions[0]["failed"] == ["json"] and predictions[0]["turn"]["raw"] == "garbage"


def test_an_interrupted_run_goes_on_and_another_one_begins_anew(bench, tmp_path):
    cases = [case(n) for n in range(6)]
    with pytest.raises(KeyboardInterrupt):
        bench(cases, until=4)
    with (tmp_path / "out" / "progress.jsonl").open("ab") as file:
        file.write(b'{"id": "c4", "pla')
    metrics, predictions, engine = bench(cases)
    assert engine.asked == 2 and metrics["n"] == 6
    assert [p["id"] for p in predictions] == [f"c{n}" for n in range(6)]
    assert not (tmp_path / "out" / "progress.jsonl").exists()
    with pytest.raises(KeyboardInterrupt):
        bench(cases, until=4)
    _, _, other = bench(cases, guard="state")
    assert other.asked == 6, "answers of another guard are not taken over"


def test_cases_alone_and_in_batches_give_the_same_answers(bench):
    cases = [case(n, history=[OFFERED]) for n in range(5)]
    answers = {"line 3": compact("FINAL_CHECK", "OFFER_SELL"), "line 4": "?"}
    _, alone, _ = bench(cases, answers, batch=1)
    _, together, _ = bench(cases, answers, batch=4)
    assert [(p["id"], p["response"]) for p in alone] == [(p["id"], p["response"]) for p in together]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (case(2, gold={"states": ["BUY"]}), "unknown state 'BUY'"),
        (case(2, gold={"states": []}), "gold.states"),
        (case(2, gold={"states": ["CASUAL"], "forbiden_states": []}), "did you mean 'forbidden_states'"),
        (case(2, gold={"states": ["CASUAL"], "carts": [{"axx": 1}]}), "did you mean 'axe'"),
        (case(2, gold={"states": ["CASUAL"], "sale_price": [1]}), "gold.sale_price"),
        (case(2, world="stal"), "did you mean 'stall'"),
        (case(2, playr="x"), "playr"),
        (case(1), "'c1' stands twice"),
        (case(2, player=7), "player"),
        (case(2, gold={"states": ["CASUAL"], "left": {"axx": 1}}), "did you mean 'axe'"),
        (case(2, gold={"states": ["CASUAL"], "shown": ["axx"]}), "did you mean 'axe'"),
        (case(2, session={"version": 1}), "session: "),
        (case(2, session={"version": 99}), "session: "),
        (case(2, history=[{"player": "x", "npc": {"npc_dialogue": "y"}}]), "context_type"),
        (case(2, history=[{"player": "x", "npc": {"npc_dialogue": "y", "context_type": "TALK"}}]), "unknown state 'TALK'"),
        (case(2, history=[json.loads(json.dumps(OFFERED).replace('"axe"', '"axx"'))]), "unknown item 'axx'"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_cases_file_is_named_with_its_line(bench, bad, complaint, tmp_path):
    with pytest.raises(HaggleError) as refused:
        bench([case(1), bad])
    assert complaint in str(refused.value) and "cases.jsonl:2" in str(refused.value)
    assert not (tmp_path / "out").exists(), "nothing is written for a file that cannot be run"


def test_a_session_of_another_format_or_beside_a_history_is_refused(bench, kept):
    with pytest.raises(
        HaggleError, match=r"cases\.jsonl:1: has a session in the format astp-stepwise, not"
    ):
        bench([case(1, session=kept)])
    with pytest.raises(HaggleError, match=r"cases\.jsonl:1: has a session and a history"):
        bench([case(1, session=kept, history=[OFFERED])])


def test_empty_lines_do_not_shift_the_number_of_a_bad_one(tmp_path, bench):
    bench([case(1)])
    path = tmp_path / "blank.jsonl"
    path.write_text(f'{json.dumps(case(1))}\n\n\n{{"id": }}\n', encoding="utf-8")
    worlds = load_worlds(tmp_path / "worlds")
    with pytest.raises(HaggleError, match=r"blank\.jsonl:4"):
        load_cases(path, worlds)
    path.write_text(f'{json.dumps(case(1))}\n\n\n{{"id": "x"}}\n', encoding="utf-8")
    with pytest.raises(HaggleError, match=r"blank\.jsonl:4"):
        load_cases(path, worlds)


def test_a_file_without_cases_is_refused(tmp_path, bench):
    with pytest.raises(HaggleError, match="holds no case"):
        bench([])
    with pytest.raises(HaggleError, match="no such file"):
        load_cases(tmp_path / "none.jsonl", {})

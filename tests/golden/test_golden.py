"""What the shipped merchant reads, may write and answers, byte for byte as it was recorded.

Prompts decide what a trained model says, so a change of code must not change them unseen. Record
anew, and say in the commit what changed, with

    python tests/golden/test_golden.py
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.corpus_io import CORPUS, corpus_rows
from data_gen.sources import make_dialogue, to_row
from eval.cases import Case, load_cases
from haggle.core.codec import fits, matches
from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.trade.merchant import GUARDS, Guard, Merchant, constraint_for
from haggle.trade.methods import get_method
from haggle.trade.replay import replay
from haggle.trade.session import Session
from haggle.trade.world_io import load_worlds
from serving.engines.scripted import ScriptedEngine

FILE = Path(__file__).with_name("golden.json")
BENCHMARKS = Path(__file__).parents[2] / "eval" / "benchmarks"
METHODS = ("astp-stepwise", "astp-compact", "astp-bare", "astp")
DIALOGUES = 30
VOICES = (
    "adder",
    "carpenter",
    "dwarf_miner",
    "grump",
    "mediterranean_esl",
    "plain_four",
    "raconteur",
    "squire",
)  # of the corpus


def digest(value: Any) -> str:
    """A short fingerprint of anything JSON can hold."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def raw_texts(session: Session) -> list[str]:
    """Answers a model might write in this shop: every state and payload, and mistakes."""
    names = [*session.world.sellable_names, "Rope", "Rope", "Rope"][:3]
    a, b, c = names
    say = "So __CART__ for __PRICE__ __CURRENCY__, yes?"
    last = session.last
    decisions: list[dict[str, Any]] = [
        {"last": last, "state": "CASUAL", "say": "Well met."},
        {"last": last, "state": "CASUAL", "cart": [], "say": "All put back, then."},
        {"last": last, "state": "CASUAL", "say": "Sold! It is settled, 999 gold."},
        {"last": last, "state": "END", "say": "Farewell."},
        {"last": last, "state": "SHOW_ITEMS", "show": [a, b], "say": "See: __ITEMS__, __PRICES__."},
        {"last": last, "state": "OFFER_SELL", "cart": [[a, 2], [b, "all"]], "say": say},
        {"last": last, "state": "OFFER_SELL", "cart": [[a, 999], ["?elven sword", 1]], "say": say},
        {"last": last, "state": "OFFER_SELL", "cart": [[a, "3*4"], [b, "2+3"]], "say": say},
        {"last": last, "state": "OFFER_SELL", "cart": [], "say": "Nothing, then."},
        {"last": last, "state": "OFFER_SELL", "cart": [["no such thing", -1]], "say": say},
        {"last": last, "state": "OFFER_SELL", "change": [[a, "+2"], [b, 0]], "say": say},
        {"last": last, "state": "OFFER_SELL", "change": [[a, "x2"], [c, "half"]], "say": say},
        {"last": last, "state": "OFFER_SELL", "change": [], "say": say},
        {"last": last, "state": "NEGOTIATE", "bid": 100, "say": "__PRICE__ __CURRENCY__."},
        {"last": last, "state": "NEGOTIATE", "bid": "10%", "say": "__PRICE__ or __PRICE__."},
        {"last": last, "state": "NEGOTIATE", "bid": "-30", "say": "__PRICE__ __CURRENCY__."},
        {"last": last, "state": "NEGOTIATE", "bid": "30 each", "say": "That is 7 gold."},
        {"last": last, "state": "NEGOTIATE", "bid": None, "say": "__PRICE__ __CURRENCY__."},
        {"last": last, "state": "NEGOTIATE", "bid": "cheap", "say": "No."},
        {"last": last, "state": "FINAL_CHECK", "say": say},
        {"last": last, "state": "FINAL_CHECK", "say": "Shall we, then?"},
        {"last": "FINAL_CHECK", "state": "COMMIT_SALE", "say": "Sold for __PRICE__ __CURRENCY__."},
        {"last": last, "state": "NOWHERE", "say": "Hm."},
        {"last": last, "state": "CASUAL", "mood": "odd", "say": "Hm."},
    ]
    texts = [to_json(decision) for decision in decisions]
    return [*texts, texts[5][:-20], "Good day to you!", '{"last":""}', "[1, 2]"]


def full_texts(session: Session) -> list[str]:
    """Answers in the papers' format."""
    item = session.world.inventory[0] if session.world.inventory else session.world.items[0]
    line = {"item_id": item.item_id, "item_name": item.item_name, "quantity": 2, "price": 3}
    texts = []
    for state in ("OFFER_SELL", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE"):
        details = {"context_subtype": state, "items": [line], "original_price": "__PRICE__",
                   "sale_price": 5}  # fmt: skip
        answer = {"last_trade_context": session.last, "context_reason": "r",
                  "context_type": "TRADE", "context_details": details, "npc_thoughts": "t",
                  "npc_action": "a", "npc_dialogue": "It is __PRICE__."}  # fmt: skip
        texts.append(to_json(answer))
    casual = {"last_trade_context": "", "context_reason": "r", "context_type": "CASUAL",
              "npc_thoughts": "t", "npc_action": "a", "npc_dialogue": "Hm."}  # fmt: skip
    return [*texts, to_json(casual), "{}"]


def stepwise_texts(session: Session) -> list[str]:
    """The same in the format of the shipped model: a decision, then the line."""
    texts = []
    for raw in raw_texts(session):
        try:
            decision = json.loads(raw)
            said = to_json({"say": decision.pop("say")})
        except (ValueError, KeyError, AttributeError, TypeError):
            texts.append(raw)
        else:
            texts.append(f"{to_json(decision)}\n{said}")
    return texts


TEXTS = (("astp-stepwise", stepwise_texts), ("astp-compact", raw_texts), ("astp", full_texts))


@cache
def _cases() -> tuple[list[Case], dict[str, Any]]:
    worlds = load_worlds(BENCHMARKS / "worlds")
    return load_cases(BENCHMARKS / "dev.jsonl", worlds), worlds


def session_of(case: Case, method: str) -> Session:
    """The session a case begins in."""
    session = Session(_cases()[1][case.world], method=get_method(method))
    for exchange in case.history:
        replay(session, exchange)
    return session


def prompts(case: Case) -> str:
    """Fingerprint of what a model reads in a case, whatever the method."""
    read = []
    for method in METHODS:
        session = session_of(case, method)
        read.append([[m.role, m.content] for m in session.messages(case.player)])
    return digest(read)


def answers(case: Case, guard: Guard) -> str:
    """Fingerprint of what becomes of the raw texts in a case."""
    merchant = Merchant(ScriptedEngine(["{}"]), guard)
    turns = []
    for method, raws in TEXTS:
        for raw in raws(session_of(case, method)):
            session = session_of(case, method)
            turn = merchant.complete(session, case.player, Generation(raw))
            after = [session.last, session.state, session.cart, session.sale_price, session.note]
            old = dict.fromkeys(("act", "goal_state", "goal_cart", "goal_price"))
            told = turn.model_dump(mode="json", exclude={"probability", "cut"})
            turns.append([told | old, after])
    return digest(turns)


def accepted(case: Case) -> str:
    """Which raw texts the grammars and schemas of a case allow, as zeros and ones."""
    bits = []
    for method, raws in TEXTS:
        session = session_of(case, method)
        for guard in ("schema", "state"):
            constraint = constraint_for(session, guard)
            assert constraint is not None
            for text in raws(session):
                raw = text.partition("\n")[0]  # of a step the decision
                bits += [matches(constraint, raw), matches(constraint, raw, bounded=False)]
                bits.append(fits(constraint, raw))
    return "".join(str(int(bit)) for bit in bits)


def voices() -> list[Path]:
    """The corpus files that are compared."""
    return [CORPUS / f"{name}.yaml" for name in VOICES]


def generated(index: int) -> str:
    """Fingerprint of a scripted dialogue, as a data set has it."""
    config = DataConfig(seed=11, drills=0.2, doubts=0.1, noise=0.2)
    return digest(to_row(*make_dialogue(config, "train", index)))


def observed() -> dict[str, Any]:
    """All fingerprints, as the code stands."""
    cases, _ = _cases()
    return {
        "prompts": {case.id: prompts(case) for case in cases},
        "answers": {case.id: {guard: answers(case, guard) for guard in GUARDS} for case in cases},
        "accepted": {case.id: accepted(case) for case in cases},
        "generated": [generated(index) for index in range(DIALOGUES)],
        "corpus": {path.stem: digest(list(corpus_rows(files=[path]))) for path in voices()},
    }


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded


def test_prompts_are_as_recorded(golden: dict[str, Any]) -> None:
    assert {case.id: prompts(case) for case in _cases()[0]} == golden["prompts"]


@pytest.mark.parametrize("guard", GUARDS)
def test_answers_are_as_recorded(golden: dict[str, Any], guard: Guard) -> None:
    found = {case.id: answers(case, guard) for case in _cases()[0]}
    assert found == {case: by_guard[guard] for case, by_guard in golden["answers"].items()}


def test_grammars_allow_what_they_allowed(golden: dict[str, Any]) -> None:
    assert {case.id: accepted(case) for case in _cases()[0]} == golden["accepted"]


def test_generated_dialogues_are_as_recorded(golden: dict[str, Any]) -> None:
    assert [generated(index) for index in range(DIALOGUES)] == golden["generated"]


def test_corpus_rows_are_as_recorded(golden: dict[str, Any]) -> None:
    found = {path.stem: digest(list(corpus_rows(files=[path]))) for path in voices()}
    assert found == golden["corpus"]


if __name__ == "__main__":
    FILE.write_text(json.dumps(observed(), indent=1) + "\n", encoding="utf-8")

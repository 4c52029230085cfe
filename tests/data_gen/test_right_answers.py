"""The guard's rules let right answers stand: what a person wrote into the corpus as the answer to a
line is held against the rules as a model's guess would be.

    pytest -rP tests/data_gen/test_right_answers.py
"""

from __future__ import annotations

from collections import Counter

import pytest

from data_gen import corpus_io, play
from data_gen.config import DataConfig
from data_gen.corpus_io import CORPUS, corpus_rows
from data_gen.sources import make_dialogue
from haggle.trade.merchant import TRADE, written
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session

MOST_CARTS_SPOILT = 0.04


@pytest.mark.long
def test_the_rules_seldom_spoil_a_right_cart(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[str] = Counter()

    def held_against_the_rules(session: Session, line: str, text: str) -> TurnRecord:
        proposal = session.codec.decode(text, session.procedure)
        ruling = TRADE.rule(session, line, proposal, "state")
        guessed = dict(session.cart)
        if ruling.action is not None:
            guessed = dict(TRADE.apply(session, line, ruling, "state").cart)
        record = written(session, line, text)
        found["answers"] += 1
        asked = ruling.withheld is not None and ruling.withheld.reason == "asked_goods"
        found["goods asked about"] += asked
        found["carts spoilt"] += guessed != record.cart and not asked
        return record

    monkeypatch.setattr(corpus_io, "written", held_against_the_rules)
    for _ in corpus_rows(files=sorted(CORPUS.glob("*.yaml")), method="astp-stepwise"):
        pass
    print(dict(found))
    assert found["answers"] > 2000
    assert found["carts spoilt"] <= MOST_CARTS_SPOILT * found["answers"]


def test_a_yes_that_the_guard_would_ask_again_keeps_its_label(monkeypatch: pytest.MonkeyPatch):
    """An oracle knows what was meant: its answers are no guesses, and stand."""
    asked = 0

    def also_guarded(session: Session, line: str, text: str) -> TurnRecord:
        nonlocal asked
        proposal = session.codec.decode(text, session.procedure)
        sells = session.procedure.is_critical(proposal.state)
        asked += sells and TRADE.rule(session, line, proposal, "state").withheld is not None
        return written(session, line, text)

    monkeypatch.setattr(play, "written", also_guarded)
    for number in range(40):
        _, dialogue = make_dialogue(DataConfig(seed=3), "test", number)
        for turn in dialogue.turns:
            assert turn.truth is not None
            assert (turn.state, turn.cart) == (turn.truth.state, turn.truth.cart), turn.player
            assert turn.withheld == ""
    assert asked > 10

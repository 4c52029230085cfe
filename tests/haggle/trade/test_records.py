"""Dialogue records: written and read back without loss."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from haggle.trade.records import SCHEMA_VERSION, Dialogue, PlayedTurn, Truth


def dialogue(turns) -> Dialogue:
    return Dialogue(
        id="d", seed=7, scenario="specific_items", world="stall", method="astp-compact",
        engine="oracle", guard="state", player="scripted-test",
        turns=[PlayedTurn.of(turn, Truth(act="greet", state=turn.state)) for turn in turns],
    )  # fmt: skip


def test_a_dialogue_survives_json(visit):
    customer = visit()
    turns = [
        customer.offer(["Sharp Axe", 2], ["?møøn 🌙", 1]),
        customer.review(),
        customer.text("?"),
    ]
    kept = dialogue(turns)
    assert Dialogue.model_validate(json.loads(kept.model_dump_json())) == kept
    assert Dialogue.model_validate(json.loads(json.dumps(kept.model_dump()))) == kept
    assert kept.schema_version == SCHEMA_VERSION


def test_transitions_start_at_start_and_keep_small_talk(visit):
    customer = visit()
    turns = [customer.offer(["Sharp Axe", 1]), customer.turn("CASUAL"), customer.review()]
    assert dialogue(turns).transitions() == [
        ("Start", "OFFER_SELL"), ("OFFER_SELL", "CASUAL"), ("CASUAL", "FINAL_CHECK"),
    ]  # fmt: skip
    assert dialogue([]).transitions() == []


def test_records_are_frozen_and_refuse_unknown_fields(visit):
    turn = visit().turn("CASUAL")
    with pytest.raises(ValidationError):
        turn.state = "END"
    with pytest.raises(ValidationError):
        Dialogue.model_validate(dialogue([]).model_dump() | {"mood": "good"})
    with pytest.raises(ValidationError):
        Dialogue.model_validate(dialogue([]).model_dump() | {"scenario": "haggling"})

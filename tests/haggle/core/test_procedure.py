"""The procedure as data: which state may follow which."""

from __future__ import annotations

from itertools import product

import pytest
import yaml

from haggle.core.config import CONFIGS, load_config
from haggle.core.errors import HaggleError
from haggle.trade.procedure import Procedure, load_procedure

TRADE = load_procedure()
LASTS = ("", *TRADE.tracked)


def test_seven_states_five_of_them_remembered():
    assert set(TRADE.states) == {
        "CASUAL", "END", "SHOW_ITEMS", "OFFER_SELL", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE",
    }  # fmt: skip
    assert set(TRADE.tracked) == set(TRADE.states) - {"CASUAL", "END"}


@pytest.mark.parametrize("last", LASTS)
def test_a_sale_is_legal_behind_the_review_and_nowhere_else(last):
    assert TRADE.is_valid(last, "COMMIT_SALE") is (last == "FINAL_CHECK")
    assert TRADE.breaks_critical(last, "COMMIT_SALE") is (last != "FINAL_CHECK")
    assert ("COMMIT_SALE" in TRADE.legal(last, has_cart=True)) is (last == "FINAL_CHECK")
    assert "COMMIT_SALE" not in TRADE.legal(last, has_cart=False)


def paths(length: int) -> list[tuple[str, ...]]:
    return list(product(TRADE.states, repeat=length))


def test_on_every_path_of_four_turns_a_sale_needs_the_review_right_before_it_but_for_small_talk():
    for path in paths(4):
        last, legal = "", True
        for state in path:
            legal = legal and TRADE.is_valid(last, state)
            last = TRADE.track(last, state)
        spoken = [state for state in path if state != "CASUAL"]
        pairs = zip(["", *spoken], spoken, strict=False)
        skips = any(b == "COMMIT_SALE" and a != "FINAL_CHECK" for a, b in pairs)
        assert not (legal and skips), path


@pytest.mark.parametrize(
    ("last", "new", "legal"),
    [
        ("", "CASUAL", True), ("", "OFFER_SELL", True), ("", "END", True),
        ("", "NEGOTIATE", False), ("", "FINAL_CHECK", False),
        ("OFFER_SELL", "NEGOTIATE", True), ("OFFER_SELL", "FINAL_CHECK", True),
        ("FINAL_CHECK", "NEGOTIATE", True), ("FINAL_CHECK", "OFFER_SELL", True),
        ("COMMIT_SALE", "FINAL_CHECK", False), ("COMMIT_SALE", "OFFER_SELL", True),
        ("OFFER_SELL", "BUY", False),
    ],
)  # fmt: skip
def test_legal_transitions(last, new, legal):
    assert TRADE.is_valid(last, new) is legal


def test_small_talk_is_transparent_and_a_goodbye_starts_anew():
    for last in LASTS:
        assert TRADE.track(last, "CASUAL") == last
        assert TRADE.track(last, "END") == ""
        assert TRADE.track(last, "OFFER_SELL") == "OFFER_SELL"


def test_without_a_cart_there_is_nothing_to_haggle_review_or_sell():
    for last in LASTS:
        assert not {"NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE"} & set(
            TRADE.legal(last, has_cart=False)
        )


def test_an_unknown_state_is_answered_with_the_nearest():
    with pytest.raises(HaggleError, match="did you mean 'FINAL_CHECK'"):
        TRADE.state("FINAL_CHEK")


def test_an_unknown_procedure_is_answered_with_the_known():
    with pytest.raises(HaggleError, match="trade"):
        load_procedure("barter")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"fallback": "CASUALL"}, "did you mean 'CASUAL'"),
        (
            {"critical": [{"state": "COMMIT", "only_after": ["FINAL_CHECK"]}]},
            "unknown state 'COMMIT'",
        ),
        (
            {"critical": [{"state": "COMMIT_SALE", "only_after": ["FINAL"]}]},
            "unknown state 'FINAL'",
        ),
        ({"aliases": {"x": {"A": "NOWHERE"}}}, "unknown state 'NOWHERE'"),
        ({"fallbak": "CASUAL"}, "did you mean 'fallback'"),
    ],
)
def test_a_procedure_that_names_unknown_states_is_refused(tmp_path, change, complaint):
    data = yaml.safe_load((CONFIGS / "procedures" / "trade.yaml").read_text(encoding="utf-8"))
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data | change), encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_config(path, Procedure)
    assert complaint in str(refused.value) and "mine.yaml" in str(refused.value)


def test_a_critical_state_needs_its_mandatory_one_even_where_it_may_follow_any():
    commit = TRADE.states["COMMIT_SALE"].model_copy(update={"after": "any"})
    loose = TRADE.model_copy(update={"states": {**TRADE.states, "COMMIT_SALE": commit}})
    assert not loose.is_valid("OFFER_SELL", "COMMIT_SALE")
    assert "COMMIT_SALE" not in loose.legal("OFFER_SELL", has_cart=True)
    assert loose.is_valid("FINAL_CHECK", "COMMIT_SALE")


def test_a_state_that_may_follow_an_unknown_one_is_refused(tmp_path):
    data = yaml.safe_load((CONFIGS / "procedures" / "trade.yaml").read_text(encoding="utf-8"))
    data["states"]["NEGOTIATE"]["after"] = ["OFER_SELL"]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(HaggleError, match="did you mean 'OFFER_SELL'"):
        load_procedure(str(path))

"""The curve of wrong turns against needless questions."""

from __future__ import annotations

from typing import Any

from eval.asking import asking_curve

ORDER = '{"last":"","state":"OFFER_SELL","cart":[["Rope",2]]}'
TALK = '{"last":"","state":"CASUAL"}'


def answered(probability: float | None, joint: bool, answer: str = ORDER) -> dict[str, Any]:
    return {"probability": probability, "joint": joint, "answer": answer}


def test_the_curve_trades_wrong_turns_for_questions():
    records = [answered(0.95, True)] * 6 + [answered(0.25, False)] * 3 + [answered(0.25, True)]
    curve = asking_curve(records)
    by_limit = {point["below"]: point for point in curve["points"]}
    assert by_limit[0.0]["wrong"]["value"] == 0.3 and by_limit[0.0]["asked"]["value"] == 0
    assert by_limit[0.3]["wrong"]["value"] == 0 and by_limit[0.3]["needless"]["value"] == 0.1
    assert curve["best"]["below"] == 0.3 and curve["best"]["cost"] == 0.4


def test_questions_that_cost_more_than_they_save_are_not_asked():
    records = [answered(0.25, True)] * 9 + [answered(0.25, False)]
    assert asking_curve(records)["best"]["below"] == 0.0


def test_what_moves_no_cart_is_never_asked_about():
    points = asking_curve([answered(0.01, False, TALK), answered(0.01, False, "Hm.")])["points"]
    assert {point["asked"]["value"] for point in points} == {0}


def test_without_probabilities_there_is_no_curve():
    assert asking_curve([answered(None, True)]) == {}

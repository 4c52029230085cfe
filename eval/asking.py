"""When a merchant should ask what was meant: wrong turns against needless questions.

A decision of a low probability is more often wrong (`haggle.trade.asking`). Below which probability
to ask is a matter of what costs a player less: an order taken down wrongly has to be noticed and
put right, a question too many only takes a yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haggle.grammar.json_text import DecodeError
from haggle.rates import clustered_mean, share
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact

STEPS = tuple(step / 100 for step in range(101))
WRONG, QUESTION = 3.0, 1.0  # lines that each costs a player
WRONG_COSTS = (1.0, 2.0, WRONG, 5.0, 10.0)  # others that a wrong turn may be thought to cost
LABELLED = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # limits named in the picture


def asking_curve(records: Sequence[dict[str, Any]], served: float = 0.0) -> dict[str, Any]:
    """What asking below each probability would do to answered turns.

    Each point has the questions asked, those of them that were needless (the decision was right)
    and the wrong turns that are left, each a share of all turns, and the lines that mistakes and
    questions cost a turn. `best` is the point that costs least (limits `up_to` another one ask
    about the same turns), `served` the one at that limit, `saved` the lines a turn that the best
    one saves beside it. `cheapest` has the best limit for each cost of a wrong turn.
    Empty where no probability is told.
    """
    scored = [record for record in records if record.get("probability") is not None]
    if not scored:
        return {}
    turns = [
        (r["probability"] if _moves_a_cart(r["answer"]) else 1.0, bool(r["joint"])) for r in scored
    ]
    points = [_point(turns, below) for below in STEPS]
    cheapest = {f"{cost:g}": _cheapest(points, cost)["below"] for cost in WRONG_COSTS}
    best, now = _cheapest(points, WRONG), _point(turns, served)
    pairs = zip(_costs(turns, served), _costs(turns, best["below"]), strict=True)
    alike = [point for point in points if point["asked"] == best["asked"]]
    return {
        "n": len(scored),
        "points": points,
        "best": best | {"up_to": alike[-1]["below"]},
        "served": now,
        "saved": clustered_mean([[mine - its] for mine, its in pairs]),
        "cheapest": cheapest,
    }


def draw_asking(figure: Any, curve: dict[str, Any]) -> None:
    """Wrong turns against needless questions, the limits beside the line; the cheapest and the
    served point are marked."""
    axis = figure.subplots()
    axis.plot(*_percent(curve["points"]), color="C0", linewidth=1.2)
    named = [point for point in curve["points"] if point["below"] in LABELLED]
    axis.plot(*_percent(named), ".", color="C0")
    for x, y, point in zip(*_percent(named), named, strict=True):
        axis.annotate(
            f"{point['below']:g}", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8
        )
    for name, label, mark in (("best", "cheapest", "o"), ("served", "as served", "s")):
        point = curve[name]
        label = f"{label}: below {limit_text(point)}, {point['cost']:.2f} lines a turn"
        axis.plot(*_percent([point]), mark, markersize=9, fillstyle="none", label=label)
    axis.set(
        xlim=(0, None), ylim=(0, None), xlabel="needless questions, % of all turns",
        ylabel="wrong turns that are left, % of all turns",
    )  # fmt: skip
    title = f"asked below each probability, {curve['n']} turns; a wrong turn costs {WRONG:g} lines"
    axis.set_title(title, loc="left", fontsize=10)
    axis.legend()


def limit_text(point: dict[str, Any]) -> str:
    """`0.5`, `0.47 to 0.5`: the limit of a point, or those that ask about the same turns."""
    below, up_to = point["below"], point.get("up_to", point["below"])
    return f"{below:g} to {up_to:g}" if up_to > below else f"{below:g}"


def _percent(points: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Needless questions and wrong turns of points, in per cent."""
    needless, wrong = (
        [100 * point[name]["value"] for point in points] for name in ("needless", "wrong")
    )
    return needless, wrong


def _point(turns: Sequence[tuple[float, bool]], below: float) -> dict[str, Any]:
    asked = [probability < below for probability, _ in turns]
    pairs = [(question, right) for question, (_, right) in zip(asked, turns, strict=True)]
    costs = _costs(turns, below)
    return {
        "below": below,
        "asked": share(asked),
        "needless": share(question and right for question, right in pairs),
        "wrong": share(not question and not right for question, right in pairs),
        "cost": round(sum(costs) / len(costs), 4),
    }


def _costs(turns: Sequence[tuple[float, bool]], below: float) -> list[float]:
    """The lines that each turn costs; a question that was needed costs one as well."""
    return [
        QUESTION if probability < below else 0.0 if right else WRONG for probability, right in turns
    ]


def _cheapest(points: Sequence[dict[str, Any]], wrong: float) -> dict[str, Any]:
    """The point that costs least where a wrong turn costs so much; of equal ones the lowest."""
    return min(points, key=lambda point: _cost(point, wrong))


def _cost(point: dict[str, Any], wrong: float) -> float:
    """Lines a turn where a wrong turn costs so many."""
    return round(wrong * point["wrong"]["value"] + QUESTION * point["asked"]["value"], 9)


def _moves_a_cart(answer: str) -> bool:
    """Whether an answer puts goods into a cart or changes it: only such are asked about."""
    try:
        proposal = decode_compact(answer, load_procedure())
    except DecodeError:
        return False
    return bool(proposal.cart or proposal.change)

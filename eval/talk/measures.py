"""What conversations and their judgements come to: rates with intervals clustered by conversation.

`metrics.json` has the measures, `predictions.jsonl` the conversations with their judgements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from eval.journal import METRICS, PREDICTIONS, USAGE
from eval.talk.conversation import Table
from eval.talk.goals import Goal, goods_right, reached
from eval.talk.judgements import (
    JUDGES,
    Judged,
    Judgement,
    all_judgements,
    consensus,
    is_person,
    turn_id,
    turn_ids,
)
from eval.talk.run import PLAYER_USAGE
from eval.usage import kept_usage
from haggle.core.storage import write_json, write_jsonl
from haggle.rates import Rate, clustered_mean, clustered_rate, cohens_kappa, percentiles
from haggle.trade.world import normalise

BAD = {"wrong", "harmful"}
Talk = Mapping[str, Any]
# Rates of turns: name, and of a conversation's record the outcome of each turn that counts.
TURN_RATES: dict[str, Callable[[Talk], list[bool]]] = {
    "wrong": lambda record: [j["label"] in BAD for j in _judged(record)],
    "harmful": lambda record: [j["label"] == "harmful" for j in _judged(record)],
    "cosmetic": lambda record: [j["label"] == "cosmetic" for j in _judged(record)],
    "questions_answered": lambda record: [
        j["question"] == "answered" for j in _judged(record) if j["question"] != "none"
    ],
    "relevant": lambda record: [
        j["relevant"] for j in _judged(record) if j.get("relevant") is not None
    ],
    "contradicts": lambda record: [j["contradicts"] for j in _judged(record)],
    "distinct_lines": lambda record: _first_said(record),
    "repeats_last": lambda record: [a == b for a, b in pairwise(_lines(record))],
}


def write_measures(table: Table) -> dict[str, Any]:
    """Measure the conversations as they stand; writes and gives the metrics."""
    judges = all_judgements(table.out)
    records = [_predicted(table, record, consensus(judges.values())) for record in table.records()]
    setting = table.setting
    metrics: dict[str, Any] = measure(records)
    metrics |= {
        "open": len(table.open()),
        "judged": sum(bool(turn["judgement"]) for r in records for turn in r["turns"]),
        "judges": {name: _of_judge(table, name, judged) for name, judged in judges.items()},
        "agreement": agreements(judges, turn_ids(table)),
        "by_shop": _by(records, "shop"),
        "by_voice": _by(records, "voice"),
        "engine": setting.engine,
        "model": setting.model,
        "guard": setting.guard,
        "method": setting.method,
        "player": setting.player,
    }
    if usage := _usage(table.out):
        metrics["usage"] = usage
    write_jsonl(table.out / PREDICTIONS, records)
    write_json(table.out / METRICS, metrics)
    return metrics


def measure(records: Sequence[Talk]) -> dict[str, Any]:
    """The measures of some conversations.

    `goals` counts conversations that are over; one that needs a judge counts once it is judged.
    `extra_turns` are those beyond the goal's minimum, where the goal was reached.
    """
    over = [record for record in records if record["ended"]]
    turns = [turn for record in records for turn in record["turns"]]
    return {
        "n": len(records),
        "turns": len(turns),
        "goals": clustered_rate([r["reached"]] for r in over if r["reached"] is not None),
        **{name: clustered_rate(map(outcomes, records)) for name, outcomes in TURN_RATES.items()},
        "extra_turns": clustered_mean([r["extra"]] for r in over if r["extra"] is not None),
        "ended": dict(Counter(r["ended"] or "open" for r in records)),
        "latency_s": percentiles([turn.get("latency_s", 0.0) for turn in turns]),
    }


def agreements(judges: Mapping[str, Judged], turns: Sequence[str]) -> list[dict[str, Any]]:
    """Cohen's kappa of the labels of every two judges, over the turns that both have judged."""
    found = []
    for (one, mine), (two, theirs) in combinations(judges.items(), 2):
        by_conversation: dict[str, list[tuple[str, str]]] = {}
        for name in turns:
            if name in mine and name in theirs:
                pair = (mine[name].label, theirs[name].label)
                by_conversation.setdefault(mine[name].conversation, []).append(pair)
        found.append({"judges": [one, two]} | cohens_kappa(by_conversation.values()))
    return found


def _predicted(table: Table, record: dict[str, Any], judged: Judged) -> dict[str, Any]:
    """A conversation with its goal, its judgements and whether it got there."""
    goal = table.goals.goals[record["id"]]
    found = [judged.get(turn_id(goal.id, turn["turn"])) for turn in record["turns"]]
    turns = [
        turn | {"judgement": _plain(judgement)}
        for turn, judgement in zip(record["turns"], found, strict=True)
    ]
    whole = all(found) and bool(found)
    questions = [j.question for j in found if j] if whole else None
    got = reached(goal, record["bought"], record["paid"], questions)
    return record | {
        "goal": goal.id,
        "shop": goal.shop,
        "voice": goal.voice,
        "goods_right": goods_right(goal, record["bought"], record["paid"]),
        "reached": got,
        "extra": _extra(goal, record) if got else None,
        "turns": turns,
    }


def _plain(judgement: Judgement | None) -> dict[str, Any] | None:
    if judgement is None:
        return None
    return judgement.model_dump(include={"label", "question", "relevant", "contradicts"})


def _extra(goal: Goal, record: Talk) -> int | None:
    """Turns beyond the minimum up to the last sale, or to the end where nothing was to be bought;
    None where the player was free to leave."""
    sold = [turn["turn"] for turn in record["turns"] if turn["sale"]]
    if not sold and goal.open_ended:
        return None
    needed = sold[-1] if sold else len(record["turns"])
    return max(0, needed - goal.minimum)


def _judged(record: Talk) -> list[dict[str, Any]]:
    return [turn["judgement"] for turn in record["turns"] if turn["judgement"]]


def _lines(record: Talk) -> list[str]:
    return [normalise(turn["says"]) for turn in record["turns"]]


def _first_said(record: Talk) -> list[bool]:
    """Of each line whether it is said for the first time."""
    lines = _lines(record)
    return [line not in lines[:at] for at, line in enumerate(lines)]


def _by(records: Sequence[Talk], key: str) -> dict[str, Any]:
    values = sorted({record[key] for record in records})
    return {value: measure([r for r in records if r[key] == value]) for value in values}


def _of_judge(table: Table, name: str, judged: Judged) -> dict[str, Any]:
    """One judge's rates, and whether it is a person."""
    groups = [
        [judged[turn].label for turn in names if turn in judged]
        for names in (
            [turn_id(talk.id, n) for n in range(1, len(talk.turns) + 1)]
            for talk in table.conversations.values()
        )
    ]
    rates: dict[str, Rate] = {
        "wrong": clustered_rate([label in BAD for label in group] for group in groups),
        "harmful": clustered_rate([label == "harmful" for label in group] for group in groups),
    }
    return {"person": is_person(table.out, name), "n": len(judged), **rates}


def _usage(out: Path) -> dict[str, Any]:
    """What merchant, player and judges have used, where an API counts it."""
    places = {"merchant": out / USAGE, "player": out / PLAYER_USAGE}
    for folder in sorted((out / JUDGES).glob("*")):
        places[f"judge {folder.name}"] = folder / USAGE
    used = {name: kept_usage(path) for name, path in places.items()}
    return {name: usage for name, usage in used.items() if usage}

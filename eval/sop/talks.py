"""Planners before simulated users: does the talk reach its goal rightly, and what does it take?

haggle eval planner --method mcts+sop --character gatekeeper --users 8 --out runs/mcts
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from math import comb
from pathlib import Path
from typing import Any

from data_gen.sop.users import TEMPERS, phrases_of
from eval.characters import dialogue
from eval.characters import score as score_talks
from eval.journal import PREDICTIONS, answered, finish
from eval.sop.knowledge import invented
from eval.sop.published import published
from haggle.core.domain import Guard
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.planning.config import PlanConfig
from haggle.planning.planner import Plan
from haggle.rates import clustered_difference, clustered_mean, share
from haggle.sop.planning import planning_character
from haggle.sop.task import Task

Records = Sequence[Mapping[str, Any]]
COSTS = ("calls", "batches", "saved", "tokens", "seconds")


def run_talks(
    tasks: Sequence[Task],
    method: str,
    engine: Engine,
    guard: Guard,
    out: Path,
    *,
    config: PlanConfig | None = None,
    users: int = 8,
    trials: int = 1,
    seed: int = 0,
    against: Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Let a planner talk to `users` of every task, each `trials` times; writes `metrics.json` and
    `predictions.jsonl` to `out`; resumes.

    `against` is the directory of another run over the same users, to be compared with.
    """
    config = config or PlanConfig()
    plans: list[Plan] = []
    agent = planning_character(engine, guard, method, config, plans.append)
    for task in tasks:
        phrases_of(task)
    reference = list(read_jsonl(_reference(against))) if against is not None else None
    by_name = {task.task: task for task in tasks}
    texts = "".join(task.model_dump_json() for task in tasks)
    about = {
        "method": method, "engine": engine.name, "model": engine.model, "guard": guard,
        "users": users, "trials": trials, "seed": seed, "planning": config.model_dump(),
    }  # fmt: skip
    identity = about | {"tasks": sha256(texts.encode()).hexdigest()}
    people = [f"{temper}-{number}" for number in range(users) for temper in TEMPERS][:users]
    names = [f"{t}/{p}/{trial}" for t in by_name for p in people for trial in range(trials)]

    def play(group: list[str]) -> Iterator[dict[str, Any]]:
        for name in group:
            task, person, trial = name.split("/")
            plans.clear()
            made = dialogue(
                person, by_name[task], agent, seed, trial=int(trial), told=lambda: _told(plans)
            )
            about = {"id": name, "task": task, "agent": _agent(by_name[task])}
            yield made | about | _errors(by_name[task], made)

    records, usage = answered(
        out, identity, engine, names, play, what="dialogues", progress=progress
    )
    metrics = about | score(records)
    if reference is not None:
        metrics["against"] = {"run": str(against)} | compared(records, reference)
    metrics["published"] = [row.model_dump() for row in published(method)]
    finish(out, records, metrics | ({"usage": usage} if usage else {}))
    return metrics


def _reference(folder: Path) -> Path:
    path = folder / PREDICTIONS
    if not path.is_file():
        raise HaggleError("no such run", where=str(folder), hint="name the --out of another run")
    return path


def _told(plans: Sequence[Plan]) -> dict[str, Any]:
    """What the last turn's plan took."""
    plan = plans[-1]
    return {"plan": asdict(plan.cost), "ended": plan.ended, "found": plan.found}


def _agent(task: Task) -> str:
    """Who the character is and what it wants, for who judges its talks."""
    profile = task.conversation_profile
    return f"{profile.agent_identity}. Its task: {profile.agent_goal}"


def _errors(task: Task, made: Mapping[str, Any]) -> dict[str, Any]:
    """What was said from nowhere, turn by turn."""
    turns = made["turns"]
    said = [turn["player"] for turn in turns]
    return {"invented": [invented(task, said[: n + 1], t["says"]) for n, t in enumerate(turns)]}


def score(records: Records) -> dict[str, Any]:
    """Rates with intervals, and what a turn takes.

    `success`: talks that reached the goal with a user who earned it, of all talks (`goal` is of
    those who earned it; a character that never asks lets nobody earn it). `pass^k`: how likely k
    talks with the same user are all a success, a mean over users. `knowledge_errors`: turns with a
    number or name from nowhere. `unplanned`: turns for which nothing that the model said could be
    used.
    """
    turns = [turn for record in records for turn in record["turns"]]
    groups = [[turn["plan"] | {"tokens": _tokens(turn)} for turn in r["turns"]] for r in records]
    return {
        **score_talks([dict(record) for record in records]),
        "success": share(_succeeded(record) for record in records),
        "pass": {f"pass^{k}": value for k, value in _pass_hat(records).items()},
        "knowledge_errors": share(bool(found) for r in records for found in r["invented"]),
        "unplanned": share(not turn["found"] for turn in turns),
        "early": share(turn["ended"] == "early" for turn in turns),
        "cut_short": share(turn["ended"] in {"time", "engine"} for turn in turns),
        "per_turn": {
            key: clustered_mean([[float(cost[key]) for cost in group] for group in groups])
            for key in COSTS
        },
    }


def _succeeded(record: Mapping[str, Any]) -> bool:
    return bool(record["success"] and record["earned"])


def _tokens(turn: Mapping[str, Any]) -> int:
    plan = turn["plan"]
    return sum(plan[f"{kind}_tokens"] for kind in ("prompt", "completion", "thought"))


def _by_user(records: Records) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        found.setdefault(record["id"].rpartition("/")[0], []).append(record)
    return found


def _pass_hat(records: Records) -> dict[int, dict[str, Any]]:
    """pass^k for every k that there are trials for, as tau-bench estimates it."""
    counts = [(sum(map(_succeeded, group)), len(group)) for group in _by_user(records).values()]
    most = min((n for _, n in counts), default=0)
    return {
        k: clustered_mean([[comb(right, k) / comb(n, k)] for right, n in counts])
        for k in range(1, most + 1)
    }


def compared(mine: Records, reference: Records) -> dict[str, Any]:
    """Differences, `mine` minus `reference`, over the talks that both runs have, with intervals
    from a bootstrap over users. Raises HaggleError where there is no such talk."""
    others = {record["id"]: record for record in reference}
    both = [record for record in mine if record["id"] in others]
    if not both:
        raise HaggleError(
            "the other run has none of these talks", where="--against",
            hint="compare runs over the same characters and users",
        )  # fmt: skip
    users = list(_by_user(both).values())
    theirs = [[others[record["id"]] for record in group] for group in users]

    def difference(outcomes: Any) -> dict[str, Any]:
        return clustered_difference(
            [[one for r in group for one in outcomes(r)] for group in users],
            [[one for r in group for one in outcomes(r)] for group in theirs],
        )

    return {
        "talks": len(both),
        "success": difference(lambda record: [_succeeded(record)]),
        "violations": difference(lambda record: [bool(t["failed"]) for t in record["turns"]]),
        "knowledge_errors": difference(lambda record: [bool(f) for f in record["invented"]]),
    }

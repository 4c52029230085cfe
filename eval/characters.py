"""Simulated users before a character that keeps to a procedure: does it reach its goal, rightly?

haggle eval character --character gatekeeper --engine llamacpp --guard state --out runs/gate
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import networkx as nx

from data_gen.sop.users import TEMPERS, SimulatedUser, phrases_of, right_action
from eval.journal import answered, finish
from eval.metrics import percentiles, share
from haggle.core.agent import Agent
from haggle.core.domain import Guard
from haggle.core.engine import Engine
from haggle.sop.definition import AGENT, START, USER
from haggle.sop.domain import SOP, Talk
from haggle.sop.task import Task


def run_characters(
    task: Task,
    engine: Engine,
    guard: Guard,
    out: Path,
    *,
    n: int = 20,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """Play `n` dialogues with users of every temper; writes `metrics.json` and
    `predictions.jsonl` to `out`; resumes."""
    phrases_of(task)
    identity = {
        "engine": engine.name, "model": engine.model, "guard": guard, "n": n, "seed": seed,
        "task": sha256(task.model_dump_json().encode()).hexdigest(),
    }  # fmt: skip
    agent: Agent = Agent(SOP, engine, guard)
    names = [f"{temper}-{number}" for number in range(n) for temper in TEMPERS][:n]

    def play(group: list[str]) -> Iterator[dict[str, Any]]:
        return (dialogue(name, task, agent, seed) for name in group)

    records, usage = answered(
        out, identity, engine, names, play, what="dialogues", progress=progress
    )
    metrics = score(records) | {"engine": engine.name, "model": engine.model, "guard": guard}
    if usage:
        metrics["usage"] = usage
    finish(out, records, metrics)
    return metrics


def dialogue(
    name: str,
    task: Task,
    agent: Agent,
    seed: int,
    *,
    trial: int = 0,
    told: Callable[[], dict[str, Any]] = dict,
) -> dict[str, Any]:
    """A dialogue with the user of that name and seed. A `trial` draws other answers of the model;
    `told` is asked for more about every turn."""
    rng = random.Random(f"{task.task}/{seed}/{name}")
    temper = next(t for t in TEMPERS if name.startswith(t + "-"))
    user, talk = SimulatedUser(task, rng, "test", temper), Talk(task)
    turns = []
    while (line := user.speak(talk)) is not None:
        right = right_action(talk, user.state, rng, "test", line)
        turn = agent.reply(talk, line, seed=trial)
        turns.append(
            turn.model_dump()
            | {"truth": user.state, "right": right.act, "says": turn.says}
            | told()
        )  # fmt: skip
    return {
        "id": name,
        "temper": temper,
        "success": talk.success,
        "earned": earned(task, user.path),
        "turns": turns,
    }


def earned(task: Task, states: Sequence[str]) -> bool:
    """Whether what the user really said allows the goal: every path to success that the graph has
    passes user states, and those of at least one path were shown."""
    graph = task.graph
    marks = task.conversation_profile.success_mark
    shown = {USER + state for state in states}
    kept = [v for v in graph if v.startswith(AGENT) or v in shown]
    reached = nx.descendants(graph.subgraph(kept), AGENT + START)
    return bool(reached & set(marks))


def score(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rates with intervals, and times.

    `goal`: of the users who earned it, how many reached it. `wrong_goal`: of the others, how many
    did all the same. `violations`: turns whose step the procedure does not allow.
    """
    turns = [turn for record in records for turn in record["turns"]]
    return {
        "n": len(records),
        "goal": share(r["success"] for r in records if r["earned"]),
        "wrong_goal": share(r["success"] for r in records if not r["earned"]),
        "violations": share(bool(turn["failed"]) for turn in turns),
        "user_state": share(turn["user_state"] == turn["truth"] for turn in turns),
        "action": share(turn["act"] == turn["right"] for turn in turns),
        "valid_json": share(turn["valid_json"] for turn in turns),
        "turns": len(turns) / max(1, len(records)),
        "latency_s": percentiles([turn["latency_s"] for turn in turns]),
    }

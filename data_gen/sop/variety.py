"""Training tasks in many shapes, so that a model must read the prompt and not remember the task.

A task is told anew for each dialogue: steps of other tasks come in between, some asides are left
out, names and briefs are put in other words, and the lists stand in another order. What comes out
is a `Task` like any other; its words and its evidence are those of the tasks it was made from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError
from haggle.sop.definition import AGENT, START, USER
from haggle.sop.task import QUESTION, Task, check_task

FILE = Path(__file__).with_suffix(".yaml")
GRAFTS = (0, 1, 1, 2)  # steps of other tasks, drawn with equal chances
TRIES = 4  # for a step that fits
KEPT = 0.35  # of the names and briefs stay as they are
DROPPED = 0.25  # of the asides are left out
SHUFFLED = 0.75  # of the dialogues have their lists in another order
LENT = ("briefs", "lines", "evidence", "variants", "utterances", "near_misses")
BY_NAME = (*LENT, "replies")


class Words(Record):
    """The words of `variety.yaml`."""

    names: dict[str, list[str]]
    briefs: dict[str, list[str]]
    frames: dict[str, list[str]]
    small: list[str]


@cache
def words() -> Words:
    """Other words for names and briefs."""
    return load_config(FILE, Words)


def varied(task: Task, others: Sequence[Task], rng: random.Random) -> Task:
    """The task in another shape. `others` lend their steps: tasks of the same split."""
    for _ in range(rng.choice(GRAFTS)):
        task = _grafted(task, others, rng)
    data = task.model_dump()
    data["sop"].pop("mermaid")
    _leave_out(data, task, rng)
    briefs = data["briefs"].items()
    data["briefs"] = {k: v if rng.random() < KEPT else reworded(v, rng) for k, v in briefs}
    _rename(data, rng)
    _frame(data, rng)
    if rng.random() < SHUFFLED:
        _shuffle(data, rng)
    return check_task(Task.model_validate(data), task.task)


def _grafted(task: Task, others: Sequence[Task], rng: random.Random) -> Task:
    """The task with a step of another one; the same task where no step fits."""
    for _ in range(TRIES):
        donor = rng.choice(others)
        steps = [step for step in donor.steps if _states_after(donor, step)]
        step = rng.choice(steps)
        if {*task.agent_action, *task.user_state} & {step, *_states_after(donor, step)}:
            continue
        with suppress(HaggleError):  # its first state has no evidence, and would need it here
            grafted = Task.model_validate(_with_step(task, donor, step, rng))
            return check_task(grafted, task.task)
    return task


def _states_after(task: Task, step: str) -> list[str]:
    """The user states that a step waits for; none where the talk goes on without."""
    after = task.sop.adjacency_list.get(AGENT + step, [])
    waits = all(vertex.startswith(USER) for vertex in after)
    return [vertex.removeprefix(USER) for vertex in after] if waits else []


def _with_step(task: Task, donor: Task, step: str, rng: random.Random) -> dict[str, Any]:
    """The data of a task with a step before one of its own: the first state listed leads on, any
    other asks again or ends as the task ends for the unwilling."""
    data, states = task.model_dump(), _states_after(donor, step)
    data["sop"].pop("mermaid")
    following: dict[str, list[str]] = data["sop"]["adjacency_list"]
    place = rng.choice(_places(following))
    onward, ends = following[place][0], [a[-1] for a in following.values() if len(a) > 1]
    away = [vertex for vertex in ends if vertex.startswith(AGENT)][:1]
    new = [AGENT + step, *(USER + state for state in states)]
    following[place] = [AGENT + step, *following[place][1:]]
    following[AGENT + step], following[new[1]] = new[1:], [onward]
    following.update({state: [AGENT + step, *away] for state in new[2:]})
    vertices = data["sop"]["vertex"]
    at = vertices.index(onward)
    data["sop"]["vertex"] = [*vertices[:at], *new, *vertices[at:]]
    at = data["agent_action"].index(onward.removeprefix(AGENT))
    data["agent_action"].insert(at, step)
    data["user_state"] = [*states, *data["user_state"]]
    _lend(data, donor.model_dump(), [step, *states])
    return data


def _places(following: Mapping[str, list[str]]) -> list[str]:
    """Where a step may come in: behind the start, or a state that a willing user is in."""
    firsts = {AGENT + START, *(after[0] for after in following.values() if after)}
    willing = [v for v in following if v in firsts and (v == AGENT + START or v.startswith(USER))]
    return [v for v in willing if following[v] and following[v][0].startswith(AGENT)]


def _lend(data: dict[str, Any], donor: dict[str, Any], names: Sequence[str]) -> None:
    """What a task needs to play names of another: their words, facts and values."""
    for table in LENT:
        data[table].update({name: donor[table][name] for name in names if name in donor[table]})
    own = data["conversation_profile"]
    for key, fact in donor["conversation_profile"].items():
        own.setdefault(key, fact)
    for table in ("user_profile", "people"):
        data[table] = donor[table] | data[table]


def _leave_out(data: dict[str, Any], task: Task, rng: random.Random) -> None:
    """Take some user states beside the procedure away; people ask in all tasks."""
    for name in task.asides:
        if name != QUESTION and rng.random() < DROPPED:
            data["user_state"].remove(name)
            for table in BY_NAME:
                data[table].pop(name, None)


def _frame(data: dict[str, Any], rng: random.Random) -> None:
    """Put the briefs of a list into one frame."""
    frames = {kind: rng.choice(found) for kind, found in words().frames.items()}
    for name, brief in data["briefs"].items():
        kind = "user" if name in data["user_state"] else "act"
        data["briefs"][name] = frames[kind].format(brief)


def reworded(brief: str, rng: random.Random) -> str:
    """A brief with the first phrase that has other words in one of these."""
    for phrase, others in words().briefs.items():
        found = re.search(rf"\b{phrase}\b", brief)
        if found:
            return brief[: found.start()] + rng.choice(others) + brief[found.end() :]
    return brief


def _rename(data: dict[str, Any], rng: random.Random) -> None:
    """Give names other words, or make them of their brief's words. `Question` stays: facts are
    asked for in it."""
    known = [*data["user_state"], *data["agent_action"]]
    new: dict[str, str] = {START: START, QUESTION: QUESTION}
    for name in known:
        drawn = name if rng.random() < KEPT else renamed(name, data["briefs"].get(name, ""), rng)
        new.setdefault(name, name if drawn in {*new.values(), *known} else drawn)

    def vertex(old: str) -> str:
        kind, dot, name = old.partition(".")
        return kind + dot + new[name]

    for key in ("user_state", "agent_action"):
        data[key] = [new[name] for name in data[key]]
    data["replies"] = {state: new[act] for state, act in data["replies"].items()}
    for table in BY_NAME:
        data[table] = {new[k]: v for k, v in data[table].items() if k in new}
    sop, profile = data["sop"], data["conversation_profile"]
    sop["vertex"] = [vertex(old) for old in sop["vertex"]]
    sop["adjacency_list"] = {
        vertex(old): [vertex(v) for v in after] for old, after in sop["adjacency_list"].items()
    }
    profile["success_mark"] = [vertex(old) for old in profile["success_mark"]]


def renamed(name: str, brief: str, rng: random.Random) -> str:
    """A name in other words, written as names are."""
    if rng.random() < 0.5:
        parts = re.findall(r"[A-Z][a-z]*", name)
        return "".join(rng.choice(words().names.get(part, [part])) for part in parts)
    told = [word for word in re.findall(r"[a-z]+", brief) if word not in words().small]
    return "".join(word.capitalize() for word in told[:3]) or name


def _shuffle(data: dict[str, Any], rng: random.Random) -> None:
    """Put user states in any order. Steps keep theirs, which tells what comes next; actions beside
    the procedure stand anywhere between."""
    rng.shuffle(data["user_state"])
    steps = {vertex.removeprefix(AGENT) for vertex in data["sop"]["vertex"]}
    beside = [name for name in data["agent_action"] if name not in steps]
    actions = [name for name in data["agent_action"] if name in steps]
    for name in beside:
        actions.insert(rng.randint(1, len(actions)), name)
    data["agent_action"] = actions

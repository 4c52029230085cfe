"""Dialogue paths through a procedure, and scenes: paths with what people do beside it (PCA, 4.1).

A scene is a row of rounds: a user state and the action that answers it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from haggle.core.errors import HaggleError
from haggle.sop.definition import AGENT, START, USER
from haggle.sop.task import Task

Round = tuple[str, str]  # a user state and an action
FEWEST, MOST = 2, 5  # rounds that a screenwriter adds
WILLING = 0.7  # how often the first user state is taken


def sample_path(task: Task, rng: random.Random) -> list[str]:
    """A way through the procedure from its start to an end, as vertices."""
    path, seen = [AGENT + START], Counter[str]()
    while following := task.sop.adjacency_list.get(path[-1], []):
        fewest = min(seen[vertex] for vertex in following)
        fresh = [vertex for vertex in following if seen[vertex] == fewest]
        chosen = fresh[0] if rng.random() < WILLING else rng.choice(fresh)
        seen[chosen] += 1
        path.append(chosen)
    return path


def in_rounds(task: Task, path: Sequence[str], rng: random.Random) -> list[Round]:
    """A path as rounds. Where no user state stands between two actions, any other comes in."""
    rounds, user = [], ""
    for vertex in path[1:]:
        if vertex.startswith(USER):
            user = vertex.removeprefix(USER)
        else:
            rounds.append((user or rng.choice(task.asides), vertex.removeprefix(AGENT)))
            user = ""
    return rounds


def livelier(task: Task, rounds: Sequence[Round], rng: random.Random) -> list[Round]:
    """A scene with rounds outside the procedure added."""
    scene = list(rounds)
    for _ in range(rng.randint(FEWEST, MOST)):
        places = [at for at, last in enumerate(_lasts(task, scene)) if at and _waits(task, last)]
        if not places or not task.replies:
            break
        user = rng.choice(sorted(task.replies))
        scene.insert(rng.choice(places), (user, task.replies[user]))
    return scene


def _lasts(task: Task, scene: Sequence[Round]) -> list[str]:
    """The last step of the procedure before each round."""
    last, found = "", []
    for _, act in scene:
        found.append(last)
        last = last if act in task.proactive else act
    return found


def _waits(task: Task, last: str) -> bool:
    """Whether a step waits for what the user does."""
    after = task.sop.adjacency_list.get(AGENT + (last or START), [])
    return any(vertex.startswith(USER) for vertex in after)


def read_scene(names: Sequence[str]) -> list[Round]:
    """Rounds from a flat list of vertices. Raises HaggleError where they do not take turns."""
    plain = [name for name in names if name != "-"]
    users, acts = plain[0::2], plain[1::2]
    if len(plain) % 2 or not all(n.startswith(USER) for n in users):
        raise HaggleError("user states and agent actions must take turns, a user state first")
    if not all(name.startswith(AGENT) for name in acts):
        raise HaggleError("user states and agent actions must take turns, a user state first")
    bare = [name.partition(".")[2] for name in plain]
    return list(zip(bare[0::2], bare[1::2], strict=True))


def check_scene(task: Task, path: Sequence[str], scene: Sequence[Round]) -> None:
    """Raise HaggleError for a scene that the procedure forbids, that lacks a part of the main path
    or adds too much."""
    for at, ((user, act), last) in enumerate(zip(scene, _lasts(task, scene), strict=True), 1):
        answers = task.answers(last)
        if user not in answers:
            raise HaggleError(f"round {at}: {USER}{user} cannot come after {last or START}")
        if act not in answers[user]:
            allowed = ", ".join(AGENT + name for name in answers[user])
            raise HaggleError(f"round {at}: after {USER}{user} may come: {allowed}")
    nodes = iter([name for user, act in scene for name in (USER + user, AGENT + act)])
    lost = [vertex for vertex in path[1:] if vertex not in nodes]  # each looks on from the last
    if lost:
        raise HaggleError(f"{lost[0]} of the main path is missing or out of order")
    added = len(scene) - sum(vertex.startswith(AGENT) for vertex in path[1:])
    if added > MOST:
        raise HaggleError(f"{added} rounds were added, at most {MOST} may be")

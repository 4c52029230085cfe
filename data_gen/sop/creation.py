"""Dialogues made in the steps of the PCA paper (4.1): profile, path, scene, script.

The task file is the first step. Its procedure may be planned by a model (`plan`). A way through the
procedure is drawn; a screenwriter adds what people do beside it; a scriptwriter writes each line.
The simulator, screenwriter and scriptwriter are code, or the model of `engine`. What a model writes
is checked like the hand-written corpus; what is refused is asked for again with the reason, and in
the end code stands in.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from data_gen.config import DataConfig, SopConfig
from data_gen.language.phrasebook import Split
from data_gen.sop.corpus import CorpusTurn, play_turn
from data_gen.sop.rows import tasks_of, to_row
from data_gen.sop.scenes import (
    FEWEST,
    MOST,
    Round,
    check_scene,
    in_rounds,
    livelier,
    read_scene,
    sample_path,
)
from data_gen.sop.users import Sayings, phrases_of
from data_gen.sop.wording import say, voices, with_person
from data_gen.teachers.asking import Rejected, again, checked_ending, prompt
from haggle.core.engine import Engine, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import DecodeError, read_object, to_json
from haggle.sop.definition import AGENT, START, USER
from haggle.sop.domain import SopTurn, Talk
from haggle.sop.evidence import read_evidence
from haggle.sop.task import QUESTION, Task, check_task
from haggle.sop.vertexwise import predict
from serving.engines import load_engine, read_engine_config

T = TypeVar("T")
LONGEST = 60  # letters of a value of a user profile
TOKENS = 1200


class WrittenSource:
    """A source of dialogues written scene by scene (see `data_gen.sources`)."""

    def __init__(self, config: DataConfig, engine: Engine | None = None) -> None:
        self.config = config
        self.sop = config.sop or SopConfig()
        if self.sop.engine and engine is None:
            read_engine_config(self.sop.engine)  # a misspelt one is told before anything is made
        self._engine = engine
        self._tally: Counter[str] = Counter()
        self._planned: dict[str, Task] = {}
        self._tasks = {split: tasks_of(config.character, split) for split in _SPLITS}

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number; the tasks take turns."""
        tasks = self._tasks[split]
        for index in indices:
            yield self._row(self._plan(tasks[index % len(tasks)]), split, index)

    def report(self) -> dict[str, Any]:
        """By step: answers accepted and refused, and how often code stood in."""
        return {"written": dict(self._tally)} if self._tally else {}

    def close(self) -> None:
        """Free the engine."""
        if self._engine is not None:
            self._engine.close()

    def _row(self, task: Task, split: Split, index: int) -> dict[str, Any]:
        rng = random.Random(f"{task.task}/{self.config.seed}/{split}/{index}/scene")
        seed = rng.randrange(2**31)
        task = self._profile(task, split, rng, seed)
        path = sample_path(task, rng)
        scene = self._scene(task, path, rng, seed)
        talk, turns = self._script(task, scene, split, rng, seed)
        return to_row(
            talk,
            turns,
            id=f"{split}-{index}-{task.task}",
            seed=index,
            player=f"scene-{split}",
            teacher=self.sop.engine or "oracle",
        )

    def _plan(self, task: Task) -> Task:
        """The task with a procedure that the model planned, where that holds together."""
        engine = self._model() if self.sop.plan else None
        if engine is None:
            return task
        if task.task not in self._planned:
            found = predict(engine, task)
            sop = {"adjacency_list": found.adjacency_list}
            try:
                planned = Task.model_validate(task.model_dump() | {"sop": sop})
                self._planned[task.task] = check_task(planned, task.task)
                self._tally["plan accepted"] += 1
            except (HaggleError, ValueError):
                self._planned[task.task] = task
                self._tally["plan by hand"] += 1
        return self._planned[task.task]

    def _profile(self, task: Task, split: Split, rng: random.Random, seed: int) -> Task:
        """The task before another user."""

        def accept(text: str) -> Task:
            data = _object(text)
            if set(data) != set(task.user_profile):
                raise Rejected("fields", f"the fields must be {', '.join(task.user_profile)}")
            if not all(isinstance(v, str) and 0 < len(v) <= LONGEST for v in data.values()):
                raise Rejected("value", f"each value must be a text of at most {LONGEST} letters")
            found = task.model_copy(update={"user_profile": data})
            if unread := _unread(found):
                raise Rejected("evidence", f"this cannot be understood: {unread}")
            return found

        values = {"keys": ", ".join(task.user_profile), "title": task.task}
        made = self._asked("profile", task, seed, accept, **values)
        return made or with_person(task, rng, split)

    def _scene(self, task: Task, path: Sequence[str], rng: random.Random, seed: int) -> list[Round]:
        """The path with what people do beside it."""

        def accept(text: str) -> list[Round]:
            names = _object(text).get("path")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise Rejected("format", "path must be an array of names")
            try:
                scene = read_scene(names)
                check_scene(task, path, scene)
            except HaggleError as error:
                raise Rejected("scene", error.message) from None
            return scene

        made = self._asked(
            "scene", task, seed, accept,
            actions=to_json([AGENT + name for name in task.agent_action]),
            states=to_json([USER + name for name in task.user_state]),
            sop=to_json(task.sop.adjacency_list), path=to_json(list(path)), low=FEWEST, high=MOST,
            asides=", ".join(USER + name for name in task.asides),
            proactive=", ".join(AGENT + name for name in task.proactive),
        )  # fmt: skip
        return made or livelier(task, in_rounds(task, path, rng), rng)

    def _script(
        self, task: Task, scene: Sequence[Round], split: Split, rng: random.Random, seed: int
    ) -> tuple[Talk, list[SopTurn]]:
        """The scene in words, played through the real turn."""
        nodes = [name for user, act in scene for name in (USER + user, AGENT + act)]

        def accept(text: str) -> tuple[Talk, list[SopTurn]]:
            lines = _lines(_object(text).get("script"), nodes)
            talk, turns = Talk(task), []
            for (user, act), line, said in zip(scene, lines[0::2], lines[1::2], strict=True):
                try:
                    turn = CorpusTurn(player=line, user=user, act=act, say=said)
                    turns.append(play_turn(talk, turn, f"{USER}{user}"))
                except HaggleError as error:
                    raise Rejected("line", f"{error.where}: {error.message}") from None
            return talk, turns

        briefs = {name: task.briefs.get(name.partition(".")[2], "") for name in nodes}
        made = self._asked("script", task, seed, accept, path=to_json(nodes), briefs=briefs)
        return made or _scripted(task, scene, split, rng)

    def _asked(
        self, step: str, task: Task, seed: int, accept: Callable[[str], T], **values: Any
    ) -> T | None:
        """What the model's answer to a step comes to; None without a model, or where it fails."""
        engine = self._model()
        if engine is None:
            return None
        text = prompt(
            f"sop_{step}",
            conversation=task.conversation_profile.model_dump(),
            profile=to_json(task.user_profile),
            **values,
        )
        first = GenerationRequest((Message("user", text),), None, max_tokens=TOKENS, seed=seed)
        request = first
        for attempt in range(1, self.sop.max_attempts + 1):
            answer = engine.generate([request])[0]
            try:
                made = accept(checked_ending(answer))
            except Rejected as rejected:
                self._tally[f"{step} refused: {rejected.reason}"] += 1
                request = again(first, answer, rejected, attempt)
            else:
                self._tally[f"{step} accepted"] += 1
                return made
        self._tally[f"{step} by code"] += 1
        return None

    def _model(self) -> Engine | None:
        if self._engine is None and self.sop.engine:
            self._engine = load_engine(read_engine_config(self.sop.engine))
        return self._engine


_SPLITS: tuple[Split, ...] = ("train", "test")


def _object(text: str) -> dict[str, Any]:
    try:
        return read_object(text)
    except DecodeError as error:
        raise Rejected("format", f"it was no JSON object: {error}") from None


def _lines(script: Any, nodes: Sequence[str]) -> list[str]:
    """The lines of a script, in the order of the nodes. Raises Rejected."""
    if not isinstance(script, list) or not all(isinstance(line, str) for line in script):
        raise Rejected("format", "script must be an array of strings, each node|line")
    parts = [line.partition("|") for line in script]
    if [node.strip() for node, _, _ in parts] != list(nodes):
        raise Rejected("nodes", "the nodes must be those of the path, in its order")
    lines = [" ".join(line.split()) for _, _, line in parts]
    if not all(lines):
        raise Rejected("empty", "every node needs a line")
    return lines


def _unread(task: Task) -> str:
    """A phrase with the user profile in it that is no evidence of its state any more."""
    for state, wanted in task.evidence.items():
        said = task.utterances.get(state)
        for phrase in said.train if said else ():
            line = phrase.format_map(task.user_profile)
            if line != phrase and not read_evidence(line, wanted, task.user_profile).holds:
                return line
    return ""


def _scripted(
    task: Task, scene: Sequence[Round], split: Split, rng: random.Random
) -> tuple[Talk, list[SopTurn]]:
    """A scene in the words of the task file."""
    phrases = phrases_of(task)
    own = phrases.train if split == "train" else phrases.test
    spoken = voices(split)
    voice = spoken[rng.choice(sorted(spoken))]
    talk, turns = Talk(task), []
    for user, act in scene:
        phrase = rng.choice(own.user[user]).format_map(task.user_profile)
        line = say(talk, user, phrase, voice, rng)
        turn = CorpusTurn(
            player=line, user=user, act=act, say=_answer(task, own, user, act, phrase, rng)
        )
        turns.append(play_turn(talk, turn, f"{task.task}: {talk.last or START}"))
    return talk, turns


def _answer(task: Task, own: Sayings, user: str, act: str, phrase: str, rng: random.Random) -> str:
    """What the character says: the fact that was asked for, or a line of the step."""
    fact = task.fact_asked(phrase) if user == QUESTION and act == task.replies.get(user) else ""
    return fact or rng.choice(own.agent[act])

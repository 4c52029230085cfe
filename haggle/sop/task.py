"""A task: a character that works through a procedure, its words, and the evidence it needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from haggle.core.config import SUFFIXES, Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.core.procedure import Critical, Procedure, State
from haggle.sop.definition import AGENT, START, USER, Definition, Problems, dominators, problems
from haggle.sop.evidence import Evidence, check_evidence

TASKS = Path(__file__).parent / "tasks"
LONGEST_VALUE = 200  # characters of a value of the user profile
QUESTION = "Question"  # the user state whose lines ask for facts


class Utterances(Record):
    """What people say in one user state, or to ask for one fact, apart by split."""

    train: list[str] = []
    test: list[str] = []


class Task(Definition):
    """A task that can be played. Vertices are `Agent.<action>` and `User.<state>`.

    `briefs` says what a name means, `lines` what the character says where code speaks for it, and
    `replies` the action that answers a user state outside the procedure. `evidence` says which
    words of the player a user state needs. `split` holds a task out for test. `variants` say the
    same as `lines` in other words. For simulated users: `utterances` are examples of what people
    say, by user state, `questions` by the fact that they ask for. `near_misses` sound like evidence
    and are none; they stand under the state that they are. `people` are values that the user
    profile may have instead of its own.
    """

    split: Literal["train", "test"] = "train"
    briefs: dict[str, str] = {}
    lines: dict[str, str]
    replies: dict[str, str] = {}
    evidence: dict[str, Evidence] = {}
    variants: dict[str, list[str]] = {}
    utterances: dict[str, Utterances] = {}
    questions: dict[str, Utterances] = {}
    near_misses: dict[str, Utterances] = {}
    people: dict[str, Utterances] = {}

    def fact_asked(self, line: str) -> str:
        """The fact that a question of `questions` asks for; "" for any other line."""
        facts = self.conversation_profile.facts
        asked = (key for key, said in self.questions.items() if line in (*said.train, *said.test))
        return next((facts[key] for key in asked), "")

    def answers(self, last: str) -> dict[str, list[str]]:
        """By user state, the actions that may answer it when `last` was the last step.

        A state of the procedure leads to the steps behind it. Any other leads to a proactive
        action, to the last step once more, or to a step that waits for no answer.
        """
        after = self.sop.adjacency_list.get(AGENT + (last or START), [])
        direct = [v.removeprefix(AGENT) for v in after if v.startswith(AGENT)]
        found = {
            vertex.removeprefix(USER): [
                v.removeprefix(AGENT) for v in self.sop.adjacency_list.get(vertex, [])
            ]
            for vertex in after
            if vertex.startswith(USER)
        }
        again = [last] if last and after and not direct else []
        aside = [*direct, *again, *self.proactive]
        return {**found, **{name: aside for name in self.asides}}

    @cached_property
    def procedure(self) -> Procedure[State]:
        """The states and transitions of the character's own actions."""
        before: dict[str, list[str]] = {}
        for last in (START, *self.steps):
            for actions in self.answers("" if last == START else last).values():
                for action in actions:
                    before.setdefault(action, []).append("" if last == START else last)
        terminal = {v for v in self.sop.vertex if v.startswith(AGENT) and not self._after(v)}
        states = {
            name: State(
                transparent=name in self.proactive,
                resets=AGENT + name in terminal,
                after="any" if name in self.proactive else sorted(set(before.get(name, []))),
                brief=self.briefs.get(name, name),
            )
            for name in self.agent_action
            if name != START
        }
        critical = [
            Critical(state=name, only_after=sorted(set(before.get(name, [])) - {"", name}))
            for name in self.success
        ]
        fallback = self.proactive[0] if self.proactive else self.steps[0]
        return Procedure[State](name=self.task, fallback=fallback, critical=critical, states=states)

    @cached_property
    def opening(self) -> dict[str, str]:
        """The user states that open a mandatory step, with that step: the state leads to it with
        no other user state between, and not every path to the state took it before."""
        found: dict[str, str] = {}
        for state in (v for v in self.sop.vertex if v.startswith(USER)):
            passed = dominators(self.graph, [state])
            for step in self._next_steps(state):
                if step in self.mandatory and AGENT + step not in passed:
                    found.setdefault(state.removeprefix(USER), step)
        return found

    def _next_steps(self, vertex: str) -> list[str]:
        """The steps that come without another user state between."""
        found: dict[str, None] = {}
        waiting = [v for v in self._after(vertex) if v.startswith(AGENT)]
        while waiting:
            step = waiting.pop(0)
            if step not in found:
                found[step] = None
                waiting += [v for v in self._after(step) if v.startswith(AGENT)]
        return [step.removeprefix(AGENT) for step in found]

    def _after(self, vertex: str) -> list[str]:
        return self.sop.adjacency_list.get(vertex, [])


def check_task(task: Task, where: str) -> Task:
    """The task when it holds together. Raises HaggleError naming file, vertex or edge."""
    for found in (problems, _words, _evidence, _utterances):
        for message, hint in found(task):
            raise HaggleError(message, where=where, hint=hint)
    return task


def _words(task: Task) -> Problems:
    names = [*task.agent_action, *task.user_state]
    for name in (*task.lines, *task.briefs, *task.variants):
        if name not in names:
            yield f"lines and briefs: unknown name {name!r}", nearest(name, names)
    for state, action in task.replies.items():
        for name, known in ((state, task.asides), (action, task.agent_action)):
            if name not in known:
                yield f"replies: {state} -> {action}: unknown name {name!r}", nearest(name, known)
    for name in task.agent_action:
        if name != START and name not in task.lines:
            yield f"lines: {name!r} has none", "say what code says with that action"


def _evidence(task: Task) -> Problems:
    for state, wanted in task.evidence.items():
        if state not in task.user_state:
            yield f"evidence: unknown user state {state!r}", nearest(state, task.user_state)
        try:
            check_evidence(wanted, task.user_profile)
        except HaggleError as error:
            yield f"{state}: {error.message}", error.hint
    for state, step in task.opening.items() if task.evidence else ():
        if state not in task.evidence:
            hint = "say which words show it, or leave `evidence` out altogether"
            yield f"evidence: {state!r} opens the mandatory step {step!r} and has none", hint


def _utterances(task: Task) -> Problems:
    facts = task.conversation_profile.facts
    tables = {
        "utterances": (task.utterances, task.user_state),
        "questions": (task.questions, list(facts)),
        "near_misses": (task.near_misses, task.user_state),
        "people": (task.people, list(task.user_profile)),
    }
    for title, (table, known) in tables.items():
        for name, said in table.items():
            if name not in known:
                yield f"{title}: unknown name {name!r}", nearest(name, known)
            for line in set(said.train) & set(said.test):
                hint = "a line stands in one split only"
                yield f"{name}: {line!r} stands in train and in test", hint
    if task.questions and QUESTION not in task.asides:
        yield f"questions: {QUESTION!r} is no user state outside the sop", "add it to user_state"


def with_profile(task: Task, profile: Mapping[str, str]) -> Task:
    """The task with another player: values in place of its own user profile's.

    Raises HaggleError for a key that the task does not have, and for a value without a word: that
    would be found in every line.
    """
    for key, value in profile.items():
        if key not in task.user_profile:
            hint = nearest(key, task.user_profile) or "the task has no user profile"
            raise HaggleError(f"{task.task}'s user profile has no {key!r}", hint=hint)
        if len(value) > LONGEST_VALUE or not any(map(str.isalnum, value)):
            hint = f"give 1 to {LONGEST_VALUE} characters, a letter or digit among them"
            raise HaggleError(f"{key}: {value[:20]!r} cannot be told from a line", hint=hint)
    return task.model_copy(update={"user_profile": {**task.user_profile, **profile}})


@cache
def load_task(name: str) -> Task:
    """The task of a file, or one that Haggle brings, by its name. Raises HaggleError."""
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        files = {p.stem: p for p in sorted(TASKS.glob("*.yaml"))}
        if name not in files:
            raise HaggleError(f"no character is named {name!r}", hint=nearest(name, files))
        path = files[name]
    return check_task(load_config(path, Task), str(path))

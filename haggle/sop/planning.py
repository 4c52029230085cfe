"""A procedure as a planning problem: actions are steps, and the future is made of user states."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass

from haggle.core.agent import MAX_TOKENS, complete
from haggle.core.domain import Guard
from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.episode import latest
from haggle.core.text import SILENCE, clean_utterance
from haggle.grammar.json_text import DecodeError, read_object, to_json
from haggle.planning.agent import PlanningAgent
from haggle.planning.config import PlanConfig
from haggle.planning.planner import Plan, Planner, keeps_procedure
from haggle.planning.problem import Brief, Choice, Position
from haggle.planning.reading import ACTION, RESPONSE, STATE
from haggle.sop.definition import START, USER
from haggle.sop.domain import MAX_EXCHANGES, SOP, Action, Legal, SopOutcome, SopTurn, Talk
from haggle.sop.evidence import read_evidence
from haggle.sop.subpath import Nearest, nearest_subpath, steps_ahead
from haggle.sop.task import Task

LEVELS = 2  # of the graph, for an expansion

At = Position[Talk]


@dataclass(frozen=True, slots=True)
class SopProblem:
    """Working through a procedure: a `haggle.planning.problem.Problem` of talks. With `evidence` a
    line is no user state whose evidence it lacks, as the guard has it."""

    sop: bool = True
    evidence: bool = False

    def states(self, at: At) -> tuple[str, ...]:
        """With the procedure: the states behind its last step, and those outside it."""
        names = self._behind(at.episode) if self.sop else tuple(at.episode.task.user_state)
        if not (self.evidence and at.line):
            return names
        return tuple(name for name in names if _shown(at, name)) or names

    def _behind(self, talk: Talk) -> tuple[str, ...]:
        place = _place(talk)
        if not place.distance:
            return tuple(talk.answers())
        behind = talk.task.sop.adjacency_list.get(place.end, [])
        users = [v.removeprefix(USER) for v in behind if v.startswith(USER)]
        return tuple(dict.fromkeys((*users, *talk.task.asides))) or tuple(talk.task.user_state)

    def actions(self, at: At) -> tuple[str, ...]:
        """With the procedure: what it allows behind the user state. Where the talk left the
        procedure, that is what follows the nearest sub-path."""
        task = at.episode.task
        if not self.sop:
            return tuple(name for name in task.agent_action if name != START)
        if not at.heard:
            heard = (Position(at.episode, at.line, state) for state in self.states(at))
            return tuple(dict.fromkeys(name for one in heard for name in self.actions(one)))
        place = _place(at.episode)
        if not place.distance and (legal := at.episode.answers().get(at.heard)):
            return tuple(dict.fromkeys(legal))
        ahead = steps_ahead(task, _place(at.episode, at.heard).end, LEVELS)
        return tuple(dict.fromkeys((*ahead, *task.proactive))) or tuple(task.steps)

    def advised(self, at: At) -> tuple[str, ...]:
        """The actions in the next two levels behind the nearest sub-path, where they are allowed;
        none without the procedure."""
        if not self.sop:
            return ()
        allowed = self.actions(at)
        ahead = steps_ahead(at.episode.task, _place(at.episode, at.heard).end, LEVELS)
        return tuple(name for name in ahead if name in allowed)

    def step(self, at: At, act: str) -> Talk:
        """The talk after a step, in which nothing is said."""
        branch = at.episode.branch()
        text = self.answer(at, Choice(at.heard or self._unread(at), act, "..."))
        kept = self.sop and act in branch.answers().get(at.heard, ())
        complete(SOP, branch, at.line, Generation(text), "written" if kept else "off")
        return branch

    def reached(self, at: At, after: Talk) -> bool:
        """Whether the step brought a mark of success."""
        new = after.path[len(at.episode.path) :]
        return bool(set(after.task.conversation_profile.success_mark) & set(new))

    def key(self, at: At) -> Hashable:
        """The last step, what was answered to it, and whether the goal is reached: what the graph
        knows of a talk."""
        talk = at.episode
        return talk.task.task, talk.last, talk.state, at.heard, talk.success

    def brief(self, at: At) -> Brief:
        """What a prompt tells: the task definition, and the talk in the paper's labels."""
        task = at.episode.task
        profile = task.conversation_profile.model_dump()
        return Brief(
            role=task.conversation_profile.agent_identity,
            user_information=to_json(task.user_profile),
            task_knowledge=to_json(profile),
            actions=_told(task, [name for name in task.agent_action if name != START]),
            states=_told(task, task.user_state),
            context=_context(at),
        )

    def fallback(self, at: At) -> Choice:
        """The line counts as talk of something else; the first action that may answer it."""
        heard = at.heard or self._unread(at)
        actions = self.actions(Position(at.episode, at.line, heard))
        return Choice(heard, actions[0] if actions else at.episode.procedure.fallback)

    def _unread(self, at: At) -> str:
        task = at.episode.task
        return (task.asides or task.user_state)[-1]

    def writing(self, at: At, act: str) -> GenerationRequest | None:
        """A step has its words and nothing more."""
        return None

    def own(self, at: At, act: str = "", *, spoken: bool = False) -> GenerationRequest:
        """What a character without a planner is asked. Evidence is left to the guard, as there."""
        talk = at.episode
        if at.heard:
            states: tuple[str, ...] = (at.heard,)
        else:
            states = self._behind(talk) if self.sop else tuple(talk.task.user_state)
        rows = tuple(
            (state, (act,) if act else self.actions(Position(talk, at.line, state)))
            for state in states
        )
        form = Legal(rows, spoken)
        return GenerationRequest(SOP.messages(talk, at.line), form, max_tokens=MAX_TOKENS)

    def read(self, at: At, text: str) -> Choice | None:
        """A choice with its words, where it has some."""
        with suppress(DecodeError):
            action = SOP.decode(at.episode, to_json({"say": ""} | read_object(text)))
            return Choice(action.user, action.act, action.say)
        return None

    def answer(self, at: At, choice: Choice) -> str:
        """A choice as the domain reads it."""
        return Action(user=choice.heard, act=choice.act, say=choice.say).text()


def planning_character(
    engine: Engine,
    guard: Guard,
    method: str,
    config: PlanConfig | None = None,
    told: Callable[[Plan], None] = lambda plan: None,
) -> PlanningAgent[Talk, Action, SopOutcome, SopTurn]:
    """A character with a procedure whose steps a planner chooses. Raises HaggleError for a method
    that there is not."""
    problem = SopProblem(keeps_procedure(method), evidence=guard == "state")
    planner = Planner(method, problem, engine, config or PlanConfig(), guard != "off")
    return PlanningAgent(SOP, engine, guard, planner=planner, told=told)


def _place(talk: Talk, heard: str = "") -> Nearest:
    path = (*talk.path, USER + heard) if heard else talk.path
    return nearest_subpath(talk.task, path)


def _shown(at: At, state: str) -> bool:
    """Whether the line holds the evidence that a user state needs."""
    task = at.episode.task
    wanted = task.evidence.get(state)
    return wanted is None or read_evidence(at.line, wanted, task.user_profile).holds


def _told(task: Task, names: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, task.briefs.get(name, name)) for name in names)


def _context(at: At) -> tuple[tuple[str, str], ...]:
    """The talk line by line; what nobody said is left out."""
    found: list[tuple[str, str]] = []
    for exchange in latest(at.episode.exchanges, MAX_EXCHANGES):
        done = json.loads(exchange.answer)
        said = "" if exchange.player == SILENCE else exchange.player
        found += [
            ("User Response", said), (STATE, done["user"]), (ACTION, done["act"]),
            (RESPONSE, "" if done["say"] == "..." else done["say"]),
        ]  # fmt: skip
    found.append(("User Response", clean_utterance(at.line) if at.line else ""))
    found.append((STATE, at.heard))
    return tuple((label, text) for label, text in found if text)

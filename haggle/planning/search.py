"""What every method works on, and the questions that several of them ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from haggle.planning.asking import Asker, Question
from haggle.planning.config import PlanConfig
from haggle.planning.problem import Choice, E, Position, Problem
from haggle.planning.reading import (
    ACTION,
    ANSWER,
    RESPONSE,
    STATE,
    Form,
    one_of,
    read_name,
    read_vote,
    read_words,
)


@dataclass
class Search(Generic[E]):
    """The search of one turn. `best` is the best choice so far, `early` whether it was clear before
    the budget was used up, `rounds` how many roll-outs were made."""

    problem: Problem[E]
    config: PlanConfig
    asker: Asker[E]
    at: Position[E]
    best: Choice | None = None
    early: bool = False
    rounds: int = 0


def hear(search: Search[E]) -> Position[E]:
    """The position with the user state that the model reads in the line."""
    at = search.at
    names = search.problem.states(at)
    if not names:
        return at
    heard = names[0]
    if len(names) > 1:
        text = search.asker.ask([line_question(search)])[0]
        heard = read_line(search, text) or search.problem.fallback(at).heard
    return Position(at.episode, at.line, heard)


def line_question(search: Search[E]) -> Question[E]:
    """Which user state the line is."""
    at = search.at
    return own_question(search, at) or state_question(at, search.problem.states(at))


def read_line(search: Search[E], text: str) -> str:
    """The user state that an answer to `line_question` names; "" for none."""
    if search.config.asks == "own":
        choice = search.problem.read(search.at, text)
        return choice.heard if choice else ""
    return read_name(text, STATE, search.problem.states(search.at))


def own_question(
    search: Search[E], at: Position[E], act: str = "", *, spoken: bool = False
) -> Question[E] | None:
    """The decision, asked for in the domain's own format; None where the paper's words are used."""
    if search.config.asks == "paper":
        return None
    return Question("own", at, own=search.problem.own(at, act, spoken=spoken))


def state_question(at: Position[E], names: Sequence[str], act: str = "") -> Question[E]:
    """Which user state the last line is; behind an action, which one will answer it."""
    told = (("states", tuple(names)), ("act", act))
    return Question("state", at, one_of(STATE, names), told)


def action_question(search: Search[E], at: Position[E]) -> Question[E]:
    """Which action comes next."""
    if own := own_question(search, at):
        return own
    names = search.problem.actions(at)
    return Question("action", at, one_of(ACTION, names), _options(search, at))


def read_action(search: Search[E], at: Position[E], text: str) -> str:
    """The action that an answer to `action_question` names; "" for none."""
    names = search.problem.actions(at)
    if search.config.asks == "own":
        choice = search.problem.read(at, text)
        return choice.act if choice and choice.act in names else ""
    return read_name(text, ACTION, names)


def whole_question(search: Search[E], *, spoken: bool) -> Question[E]:
    """Which user state and action there are, and, where `spoken`, what is said."""
    problem, at = search.problem, search.at
    if own := own_question(search, at, spoken=spoken):
        return own
    states = problem.states(at)
    rows = tuple(
        ((STATE, (state,)), (ACTION, problem.actions(Position(at.episode, at.line, state))))
        for state in states
    )
    form = Form(rows or (((ACTION, problem.actions(at)),),), spoken)
    told = (*_options(search, at), ("states", states))
    return Question("whole", at, form, told)


def read_whole(search: Search[E], text: str) -> Choice | None:
    """The choice that an answer to `whole_question` is; None for none."""
    problem, at = search.problem, search.at
    if search.config.asks == "own":
        return problem.read(at, text)
    states = problem.states(at)
    heard = read_name(text, STATE, states) if states else ""
    if states and not heard:
        return None
    act = read_name(text, ACTION, problem.actions(Position(at.episode, at.line, heard)))
    return Choice(heard, act, read_words(text, RESPONSE)) if act else None


def candidates(search: Search[E], at: Position[E]) -> list[str]:
    """The actions worth a look: the model's own, and, with the procedure, its next two levels."""
    names = search.problem.actions(at)
    if len(names) < 2:
        return list(names)
    asked = [action_question(search, at)] * search.config.candidates
    drawn = [read_action(search, at, text) for text in search.asker.ask(asked, drawn=True)]
    return list(dict.fromkeys(name for name in (*drawn, *search.problem.advised(at)) if name))


def vote_questions(search: Search[E], at: Position[E], act: str) -> list[Question[E]]:
    """Whether an action fits, asked as often as there are votes."""
    told = (*_options(search, at), ("act", act))
    return [Question("reward", at, one_of(ANSWER, ("0", "1")), told)] * search.config.votes


def share(texts: Sequence[str]) -> float:
    """The share of yes among some votes (equation 8); what is neither is a no."""
    return sum(read_vote(text) is True for text in texts) / len(texts)


def response_question(at: Position[E], act: str) -> Question[E]:
    """What is said with the chosen action."""
    return Question("response", at, Form(spoken=True), (("act", act),))


def _options(search: Search[E], at: Position[E]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    problem = search.problem
    first = problem.advised(at) if problem.sop else ()
    return (("actions", problem.actions(at)), ("advised", first))

"""A model as the judge: one turn a question, in a schema, and it is not told who spoke."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from data_gen.teachers.asking import Rejected, checked_ending, drive, until_accepted
from data_gen.teachers.report import RoleTally
from eval.journal import answered
from eval.talk.conversation import Table
from eval.talk.judgements import (
    LABELS,
    QUESTIONS,
    SCALE,
    Judgement,
    check_judge,
    scale,
    turn_ids,
    what_happened,
)
from eval.talk.players import PROMPTS
from haggle.core.codec import Field, Fields, Spoken, Value, fits
from haggle.core.codec import Label as OneLabel
from haggle.core.config import read_text
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.json_text import DecodeError, read_object
from haggle.core.text import clean_utterance, prompts

ATTEMPTS = 3
MAX_TOKENS = 240


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The answers that a judge may give."""

    def tree(self) -> Value:
        """A reason first, so that the label follows from it."""
        return Fields(
            (
                Field("reason", Spoken()),
                Field("question", OneLabel(QUESTIONS)),
                Field("contradicts", OneLabel(("yes", "no"))),
                Field("label", OneLabel(LABELS)),
            )
        )


def judge_name(engine: Engine) -> str:
    """A name for a model as a judge: what its engine calls it, fit for a folder."""
    return re.sub(r"[^\w.@+-]+", "-", engine.model.rsplit("/", 1)[-1]).strip("-.")[:80] or "judge"


def run_judge(
    table: Table, engine: Engine, *, name: str | None = None, batch: int = 8, progress: bool = True
) -> dict[str, Any]:
    """Judge every turn that this judge has not judged yet; gives what that cost. Resumes.

    An answer that cannot be read is asked for again, three times in all; then the turn stays
    without a judgement of this judge.
    """
    name = name or judge_name(engine)
    identity = {
        "judge": name, "engine": engine.name, "model": engine.model,
        "scale": sha256(read_text(SCALE).encode()).hexdigest()[:16],
    }  # fmt: skip
    folder = check_judge(table.out, name, identity)

    def ask(turns: list[str]) -> Iterator[dict[str, Any]]:
        requests = [judge_request(table, *_parts(turn)) for turn in turns]
        asking = until_accepted("judge", requests, _read, ATTEMPTS, RoleTally())
        (read,) = drive(
            [asking], lambda asks: engine.generate([ask.request for ask in asks]), width=1
        )
        return (_record(name, turn, read.get(number)) for number, turn in enumerate(turns))

    _, usage = answered(
        folder, identity, engine, turn_ids(table), ask, what="judgements", batch=batch,
        progress=progress,
    )  # fmt: skip
    return usage


def judge_request(table: Table, conversation: str, number: int) -> GenerationRequest:
    """What a judge is asked about a turn."""
    goal = table.goals.goals[conversation]
    world, talk = table.goals.world(goal), table.conversations[conversation]
    environment = prompts(PROMPTS)
    turns = [
        {
            "turn": at,
            "player": clean_utterance(turn.player),
            "says": clean_utterance(turn.says),
            "after": what_happened(talk, at),
        }
        for at, turn in enumerate(talk.turns[:number], start=1)
    ]
    told = environment.get_template("judge_turn.jinja").render(
        location=world.situation.location,
        currency=world.currency,
        goods=world.inventory,
        unsold=[item.item_name for item in world.items if not item.for_sale],
        wants=goal.wants,
        turns=turns,
    )
    system = environment.get_template("judge.jinja").render(scale=scale())
    return GenerationRequest(
        (Message("system", system.strip()), Message("user", told.strip())),
        constraint=JudgeAnswer(),
        max_tokens=MAX_TOKENS,
    )


def _read(_: int, answer: Generation) -> dict[str, Any]:
    """A judge's answer. Raises Rejected where it is none."""
    text = checked_ending(answer)
    try:
        data = read_object(text)
    except DecodeError as error:
        raise Rejected("format", str(error)) from None
    if not fits(JudgeAnswer(), text):
        raise Rejected("schema", "it did not have the fields and labels that were asked for")
    return data


def _record(judge: str, turn: str, read: dict[str, Any] | None) -> dict[str, Any]:
    conversation, number = _parts(turn)
    if read is None:
        return {"id": turn, "judge": judge, "label": None}
    judgement = Judgement(
        judge=judge,
        conversation=conversation,
        turn=number,
        label=read["label"],
        question=read["question"],
        contradicts=read["contradicts"] == "yes",
        remark=read["reason"][:2000],
    )
    return {"id": turn, **judgement.model_dump()}


def _parts(turn: str) -> tuple[str, int]:
    conversation, _, number = turn.rpartition("/")
    return conversation, int(number)

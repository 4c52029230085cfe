"""A model as the judge: one turn a question, in a schema, and it is not told who spoke."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from eval.journal import answered
from eval.judging import MAX_TOKENS, judge_name, judged
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
from haggle.core.config import read_text
from haggle.core.engine import Engine, GenerationRequest, Message
from haggle.core.text import clean_utterance, prompts
from haggle.grammar.values import Field, Fields, Spoken, Value
from haggle.grammar.values import Label as OneLabel


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The answers that a judge may give."""

    def tree(self) -> Value:
        """A reason first, so that the label follows from it."""
        return Fields(
            (
                Field("reason", Spoken()),
                Field("question", OneLabel(QUESTIONS)),
                Field("relevant", OneLabel(("yes", "no"))),
                Field("contradicts", OneLabel(("yes", "no"))),
                Field("label", OneLabel(LABELS)),
            )
        )


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
        read = judged(engine, requests, JudgeAnswer())
        return (_record(name, turn, found) for turn, found in zip(turns, read, strict=True))

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
        relevant=read["relevant"] == "yes",
        contradicts=read["contradicts"] == "yes",
        remark=read["reason"][:2000],
    )
    return {"id": turn, **judgement.model_dump()}


def _parts(turn: str) -> tuple[str, int]:
    conversation, _, number = turn.rpartition("/")
    return conversation, int(number)

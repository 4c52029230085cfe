"""A small web form in which people judge conversations (`haggle eval talk form`).

It shows one turn after the other, with cart and price after each. A judgement is kept as soon as it
is given. The form does not say which model speaks.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from eval.talk.conversation import Conversation, Table
from eval.talk.judgements import (
    Judgement,
    JudgeName,
    check_turn,
    is_person,
    judge_folder,
    judgements_by,
    scale,
    store,
    turn_id,
    what_happened,
)
from haggle.core.config import read_text
from haggle.core.errors import HaggleError
from serving.http.app import bare_app
from serving.http.errors import Refused

PAGE = Path(__file__).with_name("form.html")
NOT_FOUND, CONFLICT = 404, 409


def make_form(table: Table) -> FastAPI:
    """The form as an application, over the conversations as they stand now."""
    app = bare_app(())
    lock = threading.Lock()
    page = read_text(PAGE)
    talks = [talk for talk in table.conversations.values() if talk.turns]

    @app.get("/", response_class=HTMLResponse)
    def form() -> str:
        """The page."""
        return page

    @app.get("/scale")
    def labels() -> dict[str, Any]:
        """The scale."""
        return scale().model_dump()

    @app.get("/conversations")
    def conversations(judge: JudgeName) -> list[dict[str, Any]]:
        """All conversations, and how many of their turns this judge has judged."""
        judged = _judged(table, judge)
        return [
            {
                "id": talk.id,
                "turns": len(talk.turns),
                "judged": sum(turn_id(talk.id, n + 1) in judged for n in range(len(talk.turns))),
            }
            for talk in talks
        ]

    @app.get("/conversations/{name}")
    def conversation(name: str, judge: JudgeName) -> dict[str, Any]:
        """One conversation, with what this judge has said of its turns."""
        _turn_or_404(table, name, 1)
        return _shown(table, table.conversations[name], _judged(table, judge))

    @app.post("/judgements", status_code=201)
    def judge(judgement: Judgement) -> dict[str, str]:
        """Keep a judgement; a later one of the same turn replaces it."""
        _turn_or_404(table, judgement.conversation, judgement.turn)
        _judged(table, judgement.judge)
        with lock:
            store(table, [judgement])
        return {"kept": judgement.id}

    return app


def _judged(table: Table, judge: str) -> dict[str, Judgement]:
    """What a person has judged. Raises Refused (409) for the name of a model that judged."""
    if judge_folder(table.out, judge).is_dir() and not is_person(table.out, judge):
        raise Refused(
            CONFLICT, f"a model judged as {judge!r}", where="judge", hint="take another name"
        )
    return judgements_by(table.out, judge)


def _turn_or_404(table: Table, conversation: str, turn: int) -> None:
    try:
        check_turn(table, conversation, turn, "conversation")
    except HaggleError as error:
        raise Refused(NOT_FOUND, error.message, error.where, error.hint) from None


def _shown(table: Table, talk: Conversation, judged: dict[str, Judgement]) -> dict[str, Any]:
    goal = table.goals.goals[talk.id]
    world = table.goals.world(goal)
    turns = []
    for number, turn in enumerate(talk.turns, start=1):
        known = judged.get(turn_id(talk.id, number))
        turns.append(
            {
                "turn": number,
                "player": turn.player,
                "says": turn.says,
                "after": what_happened(talk, number),
                "judgement": known.model_dump() if known else None,
            }
        )
    return {
        "id": talk.id,
        "wants": goal.wants,
        "voice": goal.manner,
        "shop": world.situation.location,
        "merchant": world.merchant.name,
        "currency": world.currency,
        "goods": [
            {"name": item.item_name, "price": item.price, "quantity": item.quantity}
            for item in world.inventory
        ],
        "turns": turns,
    }

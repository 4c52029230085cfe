"""Play conversations (`haggle eval talk`), or let people play them turn by turn (`... step`).

haggle eval talk --player gemini_flash --judge gemini_pro --out runs/talk/shipped
haggle eval talk step --out runs/talk/people
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from eval.journal import PROGRESS, answered
from eval.talk.conversation import (
    LIMIT,
    Conversation,
    Say,
    Setting,
    Table,
    begin,
    kept_setting,
)
from eval.talk.goals import GoalSet
from eval.talk.players import TalkPlayer
from eval.usage import Meter
from haggle.core.config import Record, parse
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import numbered_jsonl, write_jsonl
from haggle.core.text import MAX_UTTERANCE
from haggle.language.embeddings import load_embedder
from haggle.trade.merchant import Guard
from haggle.trade.methods import DEFAULT_METHOD

PEOPLE = "people"
OPEN = "open.jsonl"
PLAYER_USAGE = "usage_player.json"
Serve = dict[str, str | None]


def setting_of(
    goals: GoalSet,
    engine: Engine,
    guard: Guard,
    player: str,
    *,
    method: str = DEFAULT_METHOD,
    limit: int = LIMIT,
    serve: Serve | None = None,
    ask_below: float = 0.0,
) -> Setting:
    """What conversations are made with."""
    return Setting(
        engine=engine.name, model=engine.model, guard=guard, method=method, limit=limit,
        player=player, goals=goals.fingerprint, serve=serve or {}, ask_below=ask_below,
        embeddings=load_embedder("auto") is not None,
    )  # fmt: skip


def play(
    out: Path,
    setting: Setting,
    goals: GoalSet,
    engine: Engine,
    player: TalkPlayer,
    *,
    player_engine: Engine | None = None,
    batch: int = 8,
    progress: bool = True,
) -> Table:
    """Play all conversations to their end, `batch` of them side by side; resumes."""
    table = begin(out, setting, goals)
    meter = Meter(player_engine, out / PLAYER_USAGE) if player_engine else None

    def ask(names: list[str]) -> Iterator[dict[str, Any]]:
        talks = [table.conversations[name] for name in names]
        while going := [talk for talk in talks if not talk.ended]:
            try:
                said = player.next(going)
            finally:
                if meter:
                    meter.keep()
            table.say({t.id: say for t, say in zip(going, said, strict=True)}, engine)
        return (talk.record() for talk in talks)

    answered(
        out, kept_setting(out).model_dump(), engine, list(goals.goals), ask, what="conversations",
        batch=batch, progress=progress,
    )  # fmt: skip
    (out / PROGRESS).unlink(missing_ok=True)  # the journal of turns has it all
    return table


class SpokenLine(Record):
    """A line of a file for `step --say`. With `end` the player leaves, after the line if there is
    one. `turn` may be given, and must then be the turn that is due.

    The other fields are those of `open.jsonl`, so that its lines can be filled in and sent back.
    """

    conversation: str
    line: Annotated[str, Field(max_length=MAX_UTTERANCE)] = ""
    end: bool = False
    turn: int | None = None
    wants: str = ""
    voice: str = ""
    shop: str = ""
    merchant: str = ""
    said: str = ""


def step(table: Table, path: Path, engine: Callable[[], Engine]) -> list[dict[str, Any]]:
    """Say the lines of a file, all in one engine call; the merchant's answers.

    Raises HaggleError, before anything is said, for a line that cannot be said.
    """
    said = read_said(path, table)
    speaks = any(say.line for say in said.values())
    loaded = engine() if speaks else None
    meter = Meter(loaded, table.out / "usage.json") if loaded else None
    try:
        table.say(said, loaded)
    finally:
        if meter:
            meter.keep()
        if loaded:
            loaded.close()
    write_open(table)
    return [_answer(table.conversations[name]) for name in said]


def read_said(path: Path, table: Table) -> dict[str, Say]:
    """What a file says in which conversation; lines left empty are passed over.

    Raises HaggleError naming file and line: a conversation that is not there, one that has ended,
    a turn that is not due, a conversation named twice, or nothing to say at all.
    """
    said: dict[str, Say] = {}
    for number, data in numbered_jsonl(path):
        where = f"{path}:{number}"
        spoken = parse(data, SpokenLine, where)
        talk = _talk(table, spoken.conversation, where)
        if talk.id in said:
            raise HaggleError(f"{talk.id!r} stands twice: one line a step", where=where)
        if not spoken.line.strip() and not spoken.end:
            continue
        if talk.ended:
            raise HaggleError(
                f"conversation {talk.id!r} has ended ({talk.ended})",
                where=where,
                hint=f"leave it out; {table.out / OPEN} has those that go on",
            )
        due = len(talk.turns) + 1
        if spoken.turn not in (None, due):
            raise HaggleError(
                f"turn {spoken.turn} of {talk.id!r} is not due, turn {due} is",
                where=where,
                hint="was this file said before? See what the merchant answered: leave --say out",
            )
        said[talk.id] = Say(spoken.line.strip(), "player" if spoken.end else "")
    if not said:
        raise HaggleError(
            "says nothing", where=str(path), hint='fill in "line", or set "end": true'
        )
    return said


def write_open(table: Table) -> Path:
    """Write `open.jsonl`: a line for each conversation that goes on, to be filled in."""
    path = table.out / OPEN
    write_jsonl(path, [_prompt(table, talk) for talk in table.open()])
    return path


def _prompt(table: Table, talk: Conversation) -> dict[str, Any]:
    goal = table.goals.goals[talk.id]
    world = table.goals.world(goal)
    return {
        "conversation": talk.id,
        "turn": len(talk.turns) + 1,
        "wants": goal.wants,
        "voice": goal.manner,
        "shop": world.situation.location,
        "merchant": world.merchant.name,
        "said": talk.turns[-1].says if talk.turns else "",
        "line": "",
        "end": False,
    }


def _answer(talk: Conversation) -> dict[str, Any]:
    """What the player hears: the merchant's words, and whether the conversation is over."""
    said = talk.turns[-1].says if talk.turns else ""
    return {"conversation": talk.id, "turn": len(talk.turns), "said": said, "ended": talk.ended}


def _talk(table: Table, name: str, where: str) -> Conversation:
    if name not in table.conversations:
        hint = nearest(name, table.conversations)
        raise HaggleError(f"unknown conversation {name!r}", where=where, hint=hint)
    return table.conversations[name]

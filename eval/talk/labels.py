"""Free conversations as training data: a draft for a person to label, and the corpus file it makes.

    haggle eval talk label --out runs/talk --draft draft.yaml     # then fill in every `right`
    haggle eval talk label --draft draft.yaml --corpus voice.yaml

A turn of the draft has what the player said, what the merchant `did`, and `right`: `yes` where that
was right, `drop` where the turn cannot be judged (the dialogue ends before it), or the right answer
with the fields of the corpus. Conversations for the benchmark's goals are for measuring only; they
are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml

from data_gen.corpus_io import CorpusAnswer, CorpusDialogue, CorpusFile, CorpusTurn
from eval.talk.conversation import Conversation, Table
from eval.talk.goals import HAND_WRITTEN, load_goals
from haggle.core.config import Record, load_config
from haggle.core.episode import Exchange
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.trade.session import Session


class DraftTurn(Record):
    """A turn to label."""

    player: str
    cart: str
    did: CorpusAnswer
    right: Literal["?", "yes", "drop"] | CorpusAnswer = "?"


class DraftDialogue(Record):
    """A conversation to label."""

    id: str
    world: str
    turns: list[DraftTurn]


class Draft(Record):
    """A file to label. `voice` becomes the name of the corpus file's voice."""

    voice: str = "talk"
    dialogues: list[DraftDialogue]


def write_draft(table: Table, to: Path) -> int:
    """Write the conversations of a directory as a draft to label; returns how many turns it has.

    Raises HaggleError for conversations of the benchmark, and where `to` is there already: somebody
    may have labelled it.
    """
    if to.exists():
        raise HaggleError("is there already", where=str(to), hint="name another file")
    if taken := sorted(load_goals(HAND_WRITTEN).goals.keys() & table.conversations.keys()):
        raise HaggleError(
            f"{taken[0]!r} is a conversation of the benchmark, which is for measuring only",
            where=str(table.out),
            hint="play other goals, in other shops: --goals",
        )
    goals = table.goals.goals
    dialogues = [
        DraftDialogue(id=talk.id, world=goals[talk.id].shop, turns=_turns(talk))
        for talk in table.conversations.values()
        if talk.rounds
    ]
    _write(to, Draft(dialogues=dialogues))
    return sum(len(dialogue.turns) for dialogue in dialogues)


def _turns(talk: Conversation) -> list[DraftTurn]:
    rounds = zip(talk.session.exchanges, talk.turns, strict=True)
    return [
        DraftTurn(player=turn.player, cart=seen.note, did=_did(talk.session, seen, turn.cart))
        for seen, turn in rounds
    ]


def _did(session: Session, exchange: Exchange, cart: dict[str, int]) -> CorpusAnswer:
    """What the merchant did, as the corpus writes it: a changed cart whole."""
    text = f"{exchange.answer}\n{exchange.said}" if exchange.said else exchange.answer
    proposal = session.codec.decode(text, session.procedure)
    wanted = dict(proposal.cart) if proposal.cart is not None else None
    if proposal.change is not None:
        wanted = {session.world.by_id[i].item_name: n for i, n in cart.items()}
    return CorpusAnswer(
        state=proposal.state,
        say=proposal.say,
        cart=wanted,
        show=list(proposal.show) if proposal.show else None,
        bid=proposal.bid,
    )


def write_corpus(draft: Path, to: Path) -> tuple[int, int]:
    """Make a corpus file of a draft that is labelled; returns its dialogues and turns.

    Raises HaggleError naming a turn that is not labelled yet. Check the file with
    `python -m data_gen.corpus_io`, which plays it.
    """
    told = load_config(draft, Draft)
    dialogues = []
    for dialogue in told.dialogues:
        turns: list[CorpusTurn] = []
        for number, turn in enumerate(dialogue.turns, start=1):
            if turn.right == "?":
                raise HaggleError(
                    "is not labelled yet",
                    where=f"{draft}: {dialogue.id}, turn {number}",
                    hint="set `right` to yes, drop, or the right answer",
                )
            if turn.right == "drop":
                break
            turns.append(_labelled(turn))
        if turns:
            dialogues.append(CorpusDialogue(world=dialogue.world, turns=turns))
    if not dialogues:
        raise HaggleError("has no turn that is not dropped", where=str(draft))
    _write(to, CorpusFile(voice=told.voice, dialogues=dialogues))
    return len(dialogues), sum(len(dialogue.turns) for dialogue in dialogues)


def _labelled(turn: DraftTurn) -> CorpusTurn:
    right = turn.did if isinstance(turn.right, str) else turn.right
    told = {name: getattr(right, name) for name in CorpusAnswer.model_fields}
    return CorpusTurn(player=turn.player, did=None if right is turn.did else turn.did, **told)


def _write(to: Path, record: Record) -> None:
    plain: Any = record.model_dump(mode="json", exclude_none=True)
    atomic_write_text(to, yaml.safe_dump(plain, allow_unicode=True, sort_keys=False, width=110))

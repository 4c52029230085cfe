"""Judgements of single turns: the scale, where each judge's are kept, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from eval.journal import PROGRESS, RUN, keep
from eval.talk.conversation import Conversation, Table
from haggle.core.config import Record, load_config, parse
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import numbered_jsonl, read_json, read_jsonl, write_json
from haggle.trade.ledger import speak_cart
from haggle.trade.world import money

SCALE = Path(__file__).with_name("scale.yaml")
JUDGES = "judges"

Label = Literal["right", "cosmetic", "wrong", "harmful"]
Question = Literal["none", "answered", "unanswered"]
LABELS: tuple[Label, ...] = get_args(Label)
QUESTIONS: tuple[Question, ...] = get_args(Question)
JudgeName = Annotated[str, Field(pattern=r"^\w[\w.@+-]*$", max_length=80)]


class Example(Record):
    """A turn that a label fits, and why."""

    player: str
    merchant: str
    after: str
    why: str


class Rung(Record):
    """One label of the scale."""

    name: Label
    meaning: str
    example: Example


class Scale(Record):
    """`scale.yaml`: the labels from best to worst, and three questions beside them."""

    labels: list[Rung]
    question: str
    relevant: str
    contradicts: str


class Judgement(Record):
    """What a judge says of one turn (from 1) of a conversation.

    `relevant` is None in a judgement from before it was asked for.
    """

    judge: JudgeName
    conversation: str
    turn: Annotated[int, Field(ge=1)]
    label: Label
    question: Question = "none"
    relevant: bool | None = None
    contradicts: bool = False
    remark: Annotated[str, Field(max_length=2000)] = ""

    @property
    def id(self) -> str:
        """The turn that is judged."""
        return turn_id(self.conversation, self.turn)


class Named(Record):
    """A judge."""

    judge: JudgeName


Judged = dict[str, Judgement]


@cache
def scale() -> Scale:
    """The written scale."""
    return load_config(SCALE, Scale)


def turn_id(conversation: str, turn: int) -> str:
    """The name of a turn."""
    return f"{conversation}/{turn}"


def turn_ids(table: Table) -> list[str]:
    """The names of all turns so far."""
    talks = table.conversations.values()
    return [turn_id(talk.id, n) for talk in talks for n in range(1, len(talk.turns) + 1)]


def what_happened(talk: Conversation, number: int) -> str:
    """Cart and price, or the sale, after a turn (from 1), in words."""
    round_, world = talk.rounds[number - 1], talk.session.world
    cart, price, sale = round_.turn.cart, round_.price, round_.sale
    if sale:
        return f"sold: {speak_cart(world, sale.items)} for {money(sale.price)} {world.currency}"
    if not cart or price is None:
        return "cart: empty"
    return f"cart: {speak_cart(world, cart)} = {money(price)} {world.currency}"


def check_turn(table: Table, conversation: str, turn: int, where: str) -> None:
    """Raise HaggleError where there is no such turn."""
    talk = table.conversations.get(conversation)
    if talk is None:
        hint = nearest(conversation, table.conversations)
        raise HaggleError(f"unknown conversation {conversation!r}", where=where, hint=hint)
    if not 1 <= turn <= len(talk.turns):
        raise HaggleError(
            f"conversation {conversation!r} has {len(talk.turns)} turns, no turn {turn}",
            where=where,
            hint="turns are counted from 1",
        )


def judge_folder(out: Path, judge: str) -> Path:
    """Where a judge's judgements are kept."""
    return out / JUDGES / judge


def check_judge(out: Path, judge: str, identity: Mapping[str, Any]) -> Path:
    """The folder of a judge, marked as this one's; another's judgements are never overwritten."""
    parse({"judge": judge}, Named, "judge")
    folder = judge_folder(out, judge)
    marker = folder / RUN
    if not marker.exists():
        write_json(marker, dict(identity))
    elif read_json(marker) != dict(identity):
        raise HaggleError(
            f"another judge is called {judge!r}, or had another scale",
            where=str(folder),
            hint="choose another name for this judge",
        )
    return folder


def store(table: Table, judgements: Sequence[Judgement]) -> None:
    """Keep judgements of people, each at once. A later one of the same turn replaces an earlier.

    Raises HaggleError, before anything is kept, for a turn that is not there.
    """
    for judgement in judgements:
        check_turn(table, judgement.conversation, judgement.turn, f"judgement of {judgement.id}")
    for judge in dict.fromkeys(judgement.judge for judgement in judgements):
        check_judge(table.out, judge, {"judge": judge})
    for judgement in judgements:
        keep(judge_folder(table.out, judgement.judge), _kept(judgement))


def _kept(judgement: Judgement) -> dict[str, Any]:
    return {"id": judgement.id, **judgement.model_dump()}


def import_judgements(table: Table, path: Path) -> int:
    """Take over the judgements of a JSON Lines file; how many. All are kept, or none."""
    found = []
    for number, data in numbered_jsonl(path):
        where = f"{path}:{number}"
        judgement = parse(data, Judgement, where)
        check_turn(table, judgement.conversation, judgement.turn, where)
        found.append(judgement)
    if not found:
        raise HaggleError("holds no judgements", where=str(path))
    store(table, found)
    return len(found)


def judgements_by(out: Path, judge: str) -> Judged:
    """A judge's judgements by turn. What a model could not judge is left out."""
    path = judge_folder(out, judge) / PROGRESS
    kept = read_jsonl(path, drop_torn_tail=True) if path.exists() else []
    fields = Judgement.model_fields
    return {
        record["id"]: parse({k: v for k, v in record.items() if k in fields}, Judgement, str(path))
        for record in kept
        if record["label"]
    }


def all_judgements(out: Path) -> dict[str, Judged]:
    """The judgements of every judge, by name."""
    folders = sorted(p for p in (out / JUDGES).glob("*") if p.is_dir())
    judged = {folder.name: judgements_by(out, folder.name) for folder in folders}
    return {name: found for name, found in judged.items() if found}


def is_person(out: Path, judge: str) -> bool:
    """Whether a judge is a person: models are marked with their engine."""
    return "engine" not in read_json(judge_folder(out, judge) / RUN)


def consensus(judges: Iterable[Judged]) -> Judged:
    """One judgement for each turn: what most judges say; where they are even, the worse."""
    by_turn: dict[str, list[Judgement]] = {}
    for judged in judges:
        for name, judgement in judged.items():
            by_turn.setdefault(name, []).append(judgement)
    return {name: _most(found) for name, found in by_turn.items()}


def _most(found: Sequence[Judgement]) -> Judgement:
    label = _vote([j.label for j in found], LABELS)
    question = _vote([j.question for j in found], QUESTIONS)
    relevant = _vote([j.relevant for j in found], (None, True, False))
    contradicts = _vote([j.contradicts for j in found], (False, True))
    return found[0].model_copy(
        update={
            "label": label, "question": question, "relevant": relevant, "contradicts": contradicts,
        }
    )  # fmt: skip


def _vote(votes: Sequence[Any], worse_last: Sequence[Any]) -> Any:
    """The commonest vote, of equal ones the worst; None, no vote, counts where all are None."""
    counts = Counter(vote for vote in votes if vote is not None) or Counter(votes)
    return max(counts, key=lambda vote: (counts[vote], worse_last.index(vote)))

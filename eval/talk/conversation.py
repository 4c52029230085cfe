"""Conversations under way, kept on disk: one line of a journal for each engine call.

A line has the turns of all conversations that the call answered, so a step is kept whole or not at
all. A conversation is rebuilt from the answers that the model gave; no model is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from eval.talk.goals import GoalSet, keep_goals, kept_goals
from haggle.core.config import Record, parse
from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.core.storage import append_jsonl, read_json, read_jsonl, writable, write_json
from haggle.language.english.linker import load_english
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Sale, Session

SETTING = "run.json"
TURNS = "turns.jsonl"
LIMIT = 12

End = Literal["", "player", "merchant", "limit", "stuck"]


class Setting(Record):
    """What conversations in a directory were made with; a directory has one setting.

    `serve` is how the merchant's engine is started again: a serve config, and the files that
    replace its own. `embeddings`: whether the merchant had the models of that extra.
    """

    kind: Literal["talk"] = "talk"
    engine: str
    model: str
    guard: Guard
    method: str
    limit: int = LIMIT
    ask_below: float = 0.0
    embeddings: bool = False
    player: str
    goals: str
    serve: dict[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class Say:
    """What a player does next: says a line, ends the conversation (why), or both."""

    line: str = ""
    ends: End = ""


class KeptTurn(Record):
    """A turn as the journal has it: the player's line, the model's text, what was said then."""

    conversation: str
    player: str
    raw: str
    says: str
    cut: bool = False
    probability: float | None = None
    latency_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0

    def answer(self) -> Generation:
        """The model's answer again."""
        return Generation(
            self.raw, self.prompt_tokens, self.completion_tokens, self.thought_tokens,
            self.latency_s, "length" if self.cut else "stop", self.probability,
        )  # fmt: skip


class KeptStep(Record):
    """A line of the journal. `ended` says which conversations ended with it, and why."""

    turns: list[KeptTurn] = []
    ended: dict[str, End] = {}


@dataclass(frozen=True, slots=True)
class Round:
    """A turn, and what it came to: the total of the cart, or the sale that it closed."""

    turn: TurnRecord
    price: float | None
    sale: Sale | None


@dataclass
class Conversation:
    """One player with one goal before the merchant."""

    id: str
    session: Session
    rounds: list[Round] = field(default_factory=list)
    ended: End = ""

    @property
    def turns(self) -> list[TurnRecord]:
        """The turns so far."""
        return [round_.turn for round_ in self.rounds]

    def add(self, turn: TurnRecord, sales_before: int) -> None:
        """Keep a turn that the session has just taken."""
        new = self.session.sales[sales_before:]
        sale = new[0] if new else None
        self.rounds.append(Round(turn, sale.price if sale else self.session.sale_price, sale))

    def record(self) -> dict[str, Any]:
        """The conversation as plain values."""
        return {
            "id": self.id,
            "ended": self.ended,
            "bought": bought(self.session.sales),
            "paid": round(sum(sale.price for sale in self.session.sales), 2),
            "turns": [_plain(number, round_) for number, round_ in enumerate(self.rounds, start=1)],
        }


def _plain(number: int, round_: Round) -> dict[str, Any]:
    sale = round_.sale
    return {
        "turn": number,
        "says": round_.turn.says,
        "price": round_.price,
        "sale": {"items": sale.items, "price": sale.price} if sale else None,
    } | round_.turn.model_dump(exclude={"response"}, exclude_defaults=True)


def bought(sales: Sequence[Sale]) -> dict[str, int]:
    """Pieces by item id over several sales."""
    pieces: dict[str, int] = {}
    for sale in sales:
        for item, number in sale.items.items():
            pieces[item] = pieces.get(item, 0) + number
    return pieces


def _kept(name: str, turn: TurnRecord) -> KeptTurn:
    return KeptTurn(
        conversation=name,
        player=turn.player,
        raw=turn.raw,
        says=turn.says,
        cut=turn.cut,
        probability=turn.probability,
        latency_s=turn.latency_s,
        prompt_tokens=turn.usage.prompt_tokens,
        completion_tokens=turn.usage.completion_tokens,
        thought_tokens=turn.usage.thought_tokens,
    )


class _Silent:
    """An engine that is never asked: its answers are in the journal."""

    name = model = ""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        raise AssertionError("a conversation is rebuilt without a model")

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        raise AssertionError("a conversation is rebuilt without a model")

    def close(self) -> None:
        """Nothing to free."""


class Table:
    """All conversations of a directory, each where its journal left it.

    Raises HaggleError where the journal cannot be played again, or the sentence model that it was
    made with is missing.
    """

    def __init__(self, out: Path, setting: Setting, goals: GoalSet) -> None:
        self.out, self.setting, self.goals = out, setting, goals
        method = get_method(setting.method)
        linker = load_english(setting.embeddings)
        self.conversations = {
            name: Conversation(name, Session(goals.world(goal), method=method, linker=linker))
            for name, goal in goals.goals.items()
        }
        journal = out / TURNS
        kept = read_jsonl(journal, drop_torn_tail=True) if journal.exists() else []
        for number, data in enumerate(kept, start=1):
            self._replay(parse(data, KeptStep, f"{journal}:{number}"), f"{journal}:{number}")

    def open(self) -> list[Conversation]:
        """The conversations that go on."""
        return [talk for talk in self.conversations.values() if not talk.ended]

    def say(self, said: Mapping[str, Say], engine: Engine | None) -> None:
        """Take a step in each of these conversations, with one engine call; kept when it is done.

        The engine may be None where nobody says a line.
        """
        lines = {name: writable(step.line) for name, step in said.items() if step.line}
        talks = [self.conversations[name] for name in lines]
        turns: list[KeptTurn] = []
        if lines:
            assert engine is not None
            before = [len(talk.session.sales) for talk in talks]
            pairs = [(talk.session, lines[talk.id]) for talk in talks]
            answered = self._merchant(engine).reply_batch(pairs)
            for talk, turn, sales in zip(talks, answered, before, strict=True):
                talk.add(turn, sales)
                turns.append(_kept(talk.id, turn))
        for name, step in said.items():
            self._end(self.conversations[name], step.ends)
        ended = {name: self.conversations[name].ended for name in said}
        step_ = KeptStep(turns=turns, ended={name: end for name, end in ended.items() if end})
        append_jsonl(self.out / TURNS, step_.model_dump(exclude_defaults=True))

    def records(self) -> list[dict[str, Any]]:
        """The conversations in which something was said, as plain values."""
        return [talk.record() for talk in self.conversations.values() if talk.turns or talk.ended]

    def _merchant(self, engine: Engine) -> Merchant:
        return Merchant(engine, self.setting.guard, ask_below=self.setting.ask_below)

    def _end(self, talk: Conversation, ends: End) -> None:
        if talk.session.ended:
            talk.ended = "merchant"
        elif ends:
            talk.ended = ends
        elif len(talk.turns) >= self.setting.limit:
            talk.ended = "limit"

    def _replay(self, step: KeptStep, where: str) -> None:
        merchant = self._merchant(_Silent())
        for kept in step.turns:
            talk = self.conversations[kept.conversation]
            before = len(talk.session.sales)
            again = merchant.complete(talk.session, kept.player, kept.answer())
            talk.add(again, before)
            if again.says != kept.says:
                raise HaggleError(
                    f"{kept.conversation!r} was played by another version: the same answer of the "
                    f"model gives {again.says!r} now, and gave {kept.says!r}",
                    where=where,
                    hint="go on with the version that began, or start anew in another --out",
                )
        for name, end in step.ended.items():
            self.conversations[name].ended = end


def begin(out: Path, setting: Setting, goals: GoalSet) -> Table:
    """The conversations of a setting in `out`, begun or resumed.

    Raises HaggleError where `out` holds those of another setting: nothing there is lost.
    """
    if out.exists() and not out.is_dir():
        raise HaggleError("is a file, not a directory", where=str(out))
    if (out / SETTING).exists():
        kept = kept_setting(out)
        for name in Setting.model_fields:
            there, here = getattr(kept, name), getattr(setting, name)
            if there != here and name != "serve":
                what = "" if name == "goals" else f" ({there!r}, not {here!r})"
                raise HaggleError(
                    f"holds conversations with another {name.rstrip('s')}{what}",
                    where=str(out),
                    hint="choose another --out or delete it",
                )
    else:
        keep_goals(out, goals)
        write_json(out / SETTING, setting.model_dump())
    return Table(out, setting, goals)


def kept_setting(out: Path) -> Setting:
    """The setting of the conversations in a directory."""
    marker = out / SETTING
    data = read_json(marker) if marker.is_file() else {}
    if data.get("kind") != "talk":
        raise HaggleError(
            "holds no conversations",
            where=str(out),
            hint="make some: haggle eval talk --out DIR, or haggle eval talk step --out DIR",
        )
    return parse(data, Setting, str(marker))


def load_table(out: Path) -> Table:
    """The conversations in a directory, as they stand."""
    return Table(out, kept_setting(out), kept_goals(out))

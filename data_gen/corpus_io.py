"""The hand-written corpus: dialogues typed one by one, labelled turn by turn.

    python -m data_gen.corpus_io        # check every file

Files are `corpus/*.yaml`, one writer's voice each; their shops are in `corpus/worlds/`. A turn says
what the player typed and what the merchant should propose; `Merchant.complete` resolves and checks
it like any model's answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf

from data_gen.corpus_check import check_files
from data_gen.language.phrasebook import Split
from data_gen.sources import row_messages
from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.grammar.json_text import to_json
from haggle.trade import placeholders
from haggle.trade.edits import shortened
from haggle.trade.formula import Formula
from haggle.trade.merchant import written
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.records import SCHEMA_VERSION, Scenario, TurnRecord
from haggle.trade.said_act import with_act
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Bid, Proposal, Quantity, encode_compact
from haggle.trade.world import World
from haggle.trade.world_io import load_worlds

CORPUS = Path(__file__).parent / "corpus"


def _formula(value: Any) -> Any:
    """`"4*3"` as a number that is left to be worked out; any other value as it is."""
    if isinstance(value, str) and re.search("[*+]", value):
        return Formula(value).in_order()
    return value


Wanted = Annotated[InstanceOf[Formula] | Quantity, BeforeValidator(_formula)]


class CorpusAnswer(Record):
    """What a merchant does. `cart` is what was asked for in full (`?words` for what is not listed;
    a number that the player leaves to be worked out as a formula)."""

    state: str
    say: str
    cart: dict[str, Wanted] | None = None
    show: list[str] | None = None
    bid: Bid = None


class CorpusTurn(CorpusAnswer):
    """One round. `did` is what the merchant did instead of the right answer: the dialogue goes on
    from it."""

    player: str
    did: CorpusAnswer | None = None


class CorpusDialogue(Record):
    """One dialogue in one shop."""

    world: str
    scenario: Scenario = "specific_items"
    turns: list[CorpusTurn] = Field(min_length=1)


class CorpusFile(Record):
    """All dialogues of one writer's voice."""

    voice: str
    split: Split = "train"
    dialogues: list[CorpusDialogue] = Field(min_length=1)


@cache
def corpus_worlds() -> dict[str, World]:
    """The shops of the corpus by file name."""
    return load_worlds(CORPUS / "worlds")


def corpus_rows(
    split: Split | None = None, files: list[Path] | None = None, method: str = DEFAULT_METHOD
) -> Iterator[dict[str, Any]]:
    """Rows of the corpus in the data set's form. Raises HaggleError naming file and turn."""
    for path in files or sorted(CORPUS.glob("*.yaml")):
        loaded = load_config(path, CorpusFile)
        if split is not None and loaded.split != split:
            continue
        yield from map(dict, _rows(path, method, path.stat().st_mtime_ns))


@cache
def _rows(path: Path, method: str, _changed_ns: int) -> tuple[dict[str, Any], ...]:
    """All rows of a file as it is since then; playing the whole corpus takes half a minute."""
    loaded = load_config(path, CorpusFile)
    return tuple(
        row
        for number, dialogue in enumerate(loaded.dialogues, start=1)
        for row in _dialogue_rows(path, loaded.voice, number, dialogue, method)
    )


def is_righted(row: Mapping[str, Any]) -> bool:
    """Whether a row is a turn that the merchant got wrong, with its right answer."""
    return "/" in row["id"]


def voice_files(voices: Iterable[str]) -> list[Path] | None:
    """The corpus files of these writers' voices, or None (all) of none named.

    Raises HaggleError for a voice that there is not.
    """
    files = {path.stem: path for path in sorted(CORPUS.glob("*.yaml"))}
    for voice in voices:
        if voice not in files:
            raise HaggleError(
                f"no voice {voice!r} in the corpus", where="voices", hint=nearest(voice, files)
            )
    return [files[voice] for voice in sorted(set(voices))] or None


def _dialogue_rows(
    path: Path, voice: str, number: int, dialogue: CorpusDialogue, method: str = DEFAULT_METHOD
) -> Iterator[dict[str, Any]]:
    """The dialogue as it went, without what the merchant got wrong; then each of those turns again,
    with its right answer, which alone is learned."""
    where = f"{path.name}: dialogue {number}"
    worlds = corpus_worlds()
    if dialogue.world not in worlds:
        raise HaggleError(
            f"unknown world {dialogue.world!r}", where=where, hint=nearest(dialogue.world, worlds)
        )
    session = Session(worlds[dialogue.world], method=get_method(method))
    row = {
        "schema_version": SCHEMA_VERSION,
        "id": f"corpus-{voice}-{number:03d}",
        "seed": number,
        "scenario": dialogue.scenario,
        "world": dialogue.world,
        "method": method,
        "player": f"corpus-{voice}",
        "teacher": "corpus",
    }
    turns, unlearned, righted = [], set(), []
    for index, turn in enumerate(dialogue.turns):
        at = f"{where}, turn {index + 1}"
        twin = session.branch() if turn.did else session
        record = play_turn(twin, turn.player, turn, at)
        if turn.did:
            messages = row_messages(twin, set(range(index)))
            name = f"{row['id']}/{index + 1}"
            righted.append({**row, "id": name, "messages": messages, "turns": [_labels(record)]})
            unlearned.add(index)
            play_turn(session, turn.player, turn.did, f"{at}, did")
        else:
            turns.append(_labels(record))
    if turns:
        yield {**row, "messages": row_messages(session, unlearned), "turns": turns}
    yield from righted


def turns_as_played(split: Split) -> Iterator[tuple[Session, CorpusTurn]]:
    """Each turn of a split's voices, with the session as it is before it."""
    for path in sorted(CORPUS.glob("*.yaml")):
        loaded = load_config(path, CorpusFile)
        for dialogue in loaded.dialogues if loaded.split == split else ():
            session = Session(corpus_worlds()[dialogue.world])
            for turn in dialogue.turns:
                yield session, turn
                play_turn(session, turn.player, turn.did or turn, path.name)


def _labels(record: TurnRecord) -> dict[str, Any]:
    """A turn as a row has it."""
    return {
        "player": record.player,
        "act": None,
        "last": record.last,
        "state": record.state,
        "cart": to_json(record.cart),
        "npc_dialogue": record.response.npc_dialogue,
    }


def play_turn(session: Session, player: str, turn: CorpusAnswer, where: str) -> TurnRecord:
    """One labelled turn through the real turn function; anything it objects to is an error."""
    _check_fields(session, turn, where)
    _check_names(session, turn, where)
    proposal = Proposal(
        last=session.last,
        state=turn.state,
        say=turn.say,
        cart=tuple((turn.cart or {}).items()) if turn.cart is not None else None,
        show=tuple(turn.show) if turn.show is not None else None,
        bid=turn.bid,
    )
    proposal = with_act(session, player, proposal)
    raw = encode_compact(shortened(session, player, proposal), session.procedure)
    record = written(session, player, raw)
    if record.failed or record.interventions or record.proposed_failed:
        raise HaggleError(
            f"fails {record.failed or record.proposed_failed or record.interventions}: {raw}",
            where=where,
        )
    if "__" in record.response.npc_dialogue:
        raise HaggleError(f"unfilled placeholder in {turn.say!r}", where=where)
    return record


def _check_fields(session: Session, turn: CorpusAnswer, where: str) -> None:
    """Raise HaggleError for fields that the state does not have."""
    procedure = session.procedure
    if turn.state not in procedure.states:
        hint = nearest(turn.state, procedure.states)
        raise HaggleError(f"unknown state {turn.state!r}", where=where, hint=hint)
    state = procedure.state(turn.state)
    if (state.payload == "show") != (turn.show is not None):
        raise HaggleError("a show goes with SHOW_ITEMS, and only there", where=where)
    if placeholders.PRICE in turn.say and not state.priced:
        raise HaggleError(
            f"{turn.state} states no total",
            where=where,
            hint="a question about the total is OFFER_SELL with the whole cart as it stands (an "
            f"agreement after it is FINAL_CHECK again), or leave {placeholders.PRICE} out",
        )
    if turn.bid is not None and state.payload != "bid":
        raise HaggleError("a bid goes with NEGOTIATE only", where=where)
    if (state.payload == "cart") != (turn.cart is not None) and not (
        state.may_clear and turn.cart == {}
    ):
        raise HaggleError("a cart goes with OFFER_SELL, or {} with CASUAL", where=where)


def _check_names(session: Session, turn: CorpusAnswer, where: str) -> None:
    """Raise HaggleError for goods that the shop does not have by that name."""
    for name in turn.cart or {}:
        item = session.world.find(name)
        if not name.startswith(UNLISTED) and (item is None or item.item_name != name):
            hint = nearest(name, session.world.sellable_names)
            raise HaggleError(f"cart: {name!r} is not in the inventory", where=where, hint=hint)
        if name.startswith(UNLISTED) and session.world.find(name[1:]) in session.world.inventory:
            raise HaggleError(f"cart: {name!r} is sold here", where=where)
    for name in turn.show or ():
        if name not in session.world.sellable_names:
            hint = nearest(name, session.world.sellable_names)
            raise HaggleError(f"show: {name!r} is not in the inventory", where=where, hint=hint)


def main() -> None:
    """Check every file and say what it holds; every problem is listed, not only the first."""

    def turns(path: Path, loaded: CorpusFile, number: int, dialogue: CorpusDialogue) -> int:
        rows = _dialogue_rows(path, loaded.voice, number, dialogue)
        return sum(len(row["turns"]) for row in rows)

    check_files(
        CorpusFile, CORPUS, lambda file: file.dialogues, turns,
        lambda file: f"{file.voice}, {file.split}",
    )  # fmt: skip


if __name__ == "__main__":
    main()

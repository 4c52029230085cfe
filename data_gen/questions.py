"""What customers ask about goods, typed one by one: questions with the sentence that answers, needs
with the goods that serve them.

    python -m data_gen.questions                 # check every file
    python -m data_gen.questions --out FILE      # write what `training.sentences` learns from

`questions/SHOP.tsv` belongs to the shop `corpus/worlds/SHOP.yaml`. A line has three fields with a
tab between: the id of a good, what answers, and what the customer types. What answers is the number
of a sentence on the good (facts first, then the description, from 1), `need` where the good serves
what is needed, or `none` where nothing known of it answers. Several goods that serve a need have
their ids joined by `|`, the best first. The dialogues of the corpus add needs, and small talk that
goods are not to be shown for.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

from data_gen.corpus_io import CORPUS, CorpusTurn, turns_as_played
from data_gen.typed import typed
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.trade.session import Session
from haggle.trade.telling import compared, in_full, in_short
from haggle.trade.world import World
from haggle.trade.world_io import load_world

QUESTIONS = Path(__file__).parent / "questions"
NEED, NONE = "need", "none"
SEVERAL = "|"
MOST_SHOWN = 4  # goods shown at once for a need; more are no answer to it
TALK_KEPT = 3  # of so many lines of small talk one is kept


@dataclass(frozen=True)
class Asked:
    """A line, the goods it is about, and the place among the shop's sentences of what answers it:
    None where nothing does, or where it tells a need. Only a need has several goods, and small talk
    none."""

    line: str
    goods: list[int]
    sentence: int | None
    need: bool


@dataclass(frozen=True)
class ShopQuestions:
    """A shop's texts as a line is compared with them, and what was asked there. `owners` are the
    places of the goods that `sentences` tell of."""

    shop: str
    short: list[str]
    full: list[str]
    sentences: list[str]
    owners: list[int]
    asked: list[Asked] = field(default_factory=list)


def read_questions(path: Path) -> ShopQuestions:
    """The questions of a file. Raises HaggleError naming file and line."""
    world = load_world(CORPUS / "worlds" / f"{path.stem}.yaml")
    shop, first = _texts(path.stem, world)
    goods = {item.item_id: n for n, item in enumerate(world.inventory)}
    for where, (ids, answer, line) in typed(path, "id, what answers, line"):
        items = ids.split(SEVERAL)
        if unknown := [item for item in items if item not in goods]:
            hint = ", ".join(goods)
            raise HaggleError(f"{unknown[0]!r} is not sold there", where=where, hint=hint)
        if len(items) > 1 and answer != NEED:
            raise HaggleError(f"{answer!r} of several goods", where=where, hint="only a need has")
        item = items[0]
        own = first[goods[item]]
        if answer not in (NEED, NONE) and answer not in map(str, range(1, len(own) + 1)):
            raise HaggleError(
                f"{answer!r} is no sentence of {item}",
                where=where,
                hint=f"1 to {len(own)}, {NEED} or {NONE}",
            )
        sentence = own[int(answer) - 1] if answer.isdecimal() else None
        shop.asked.append(Asked(line, [goods[i] for i in items], sentence, answer == NEED))
    return shop


def _texts(name: str, world: World) -> tuple[ShopQuestions, list[range]]:
    """A shop without questions, and the places of each good's sentences."""
    shop = ShopQuestions(name, [], [], [], [])
    places = []
    for n, item in enumerate(world.inventory):
        told = compared(item, world.currency)
        places.append(range(len(shop.sentences), len(shop.sentences) + len(told)))
        shop.short.append(in_short(item))
        shop.full.append(in_full(item))
        shop.sentences.extend(told)
        shop.owners.extend([n] * len(told))
    return shop, places


def all_questions(folder: Path = QUESTIONS) -> Iterator[ShopQuestions]:
    """The questions of each shop. Raises HaggleError for a file that is wrong, or where none is."""
    paths = sorted(folder.glob("*.tsv"))
    if not paths:
        raise HaggleError("no files of questions here", where=str(folder), hint="SHOP.tsv")
    yield from map(read_questions, paths)


def with_corpus(shops: Iterable[ShopQuestions]) -> list[ShopQuestions]:
    """Those shops, and the others of the corpus's training split, with what its players say there
    without naming goods: every need, and small talk by the stride `TALK_KEPT`."""
    by_name = {shop.shop: shop for shop in shops}
    talk = count(1)
    for session, turn in turns_as_played("train"):
        asked, world = _unnamed(session, turn), session.world
        if asked is None or not (asked.need or next(talk) % TALK_KEPT == 0):
            continue
        if world.name not in by_name:
            by_name[world.name] = _texts(world.name, world)[0]
        by_name[world.name].asked.append(asked)
    return list(by_name.values())


def _unnamed(session: Session, turn: CorpusTurn) -> Asked | None:
    """A turn whose line names no goods: a need, if what it is answered with was not in view; small
    talk, if it is answered by that."""
    world, shown = session.world, turn.show or []
    if session.named(turn.player, sure=False):
        return None
    if turn.state == session.procedure.fallback and turn.cart is None:
        return Asked(turn.player, [], None, need=False)
    in_view = {item.item_name for item in world.known(session.in_view())}
    if not 0 < len(shown) <= MOST_SHOWN or in_view & set(shown):
        return None
    places = {item.item_name: n for n, item in enumerate(world.inventory)}
    return Asked(turn.player, [places[name] for name in shown], None, need=True)


def main() -> int:
    """Check all files, and write them as one; returns 0, or 2 where one is wrong."""
    parser = argparse.ArgumentParser(description="Check the questions about goods.")
    parser.add_argument("--out", type=Path, help="write them as JSON lines, one a shop")
    options = parser.parse_args()
    try:
        shops = list(all_questions())
        if options.out is not None:
            shops = with_corpus(shops)
            rows = (json.dumps(asdict(shop), ensure_ascii=False) for shop in shops)
            atomic_write_text(options.out, "".join(f"{row}\n" for row in rows))
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(shops)} shops, {sum(len(shop.asked) for shop in shops)} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

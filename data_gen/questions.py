"""What customers ask about goods, typed one by one: questions with the sentence that answers, needs
with the goods that serve them.

    python -m data_gen.questions                 # check every file
    python -m data_gen.questions --out FILE      # write what `training.sentences` learns from

`questions/SHOP.tsv` belongs to the shop `corpus/worlds/SHOP.yaml`. A line has three fields with a
tab between: the id of a good, what answers, and what the customer types. What answers is the number
of a sentence on the good (facts first, then the description, from 1), `need` where the good serves
what is needed, or `none` where nothing known of it answers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from data_gen.corpus_io import CORPUS
from data_gen.typed import typed
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.trade.telling import compared, in_full, in_short
from haggle.trade.world import World
from haggle.trade.world_io import load_world

QUESTIONS = Path(__file__).parent / "questions"
NEED, NONE = "need", "none"


@dataclass(frozen=True)
class Asked:
    """A line, the good it is about, and the place among the shop's sentences of what answers it:
    None where nothing does, or where it tells a need."""

    line: str
    good: int
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
    for where, (item, answer, line) in typed(path, "id, what answers, line"):
        if item not in goods:
            raise HaggleError(f"{item!r} is not sold there", where=where, hint=", ".join(goods))
        own = first[goods[item]]
        if answer not in (NEED, NONE) and answer not in map(str, range(1, len(own) + 1)):
            raise HaggleError(
                f"{answer!r} is no sentence of {item}",
                where=where,
                hint=f"1 to {len(own)}, {NEED} or {NONE}",
            )
        sentence = own[int(answer) - 1] if answer.isdecimal() else None
        shop.asked.append(Asked(line, goods[item], sentence, answer == NEED))
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


def main() -> int:
    """Check all files, and write them as one; returns 0, or 2 where one is wrong."""
    parser = argparse.ArgumentParser(description="Check the questions about goods.")
    parser.add_argument("--out", type=Path, help="write them as JSON lines, one a shop")
    options = parser.parse_args()
    try:
        shops = list(all_questions())
        if options.out is not None:
            rows = (json.dumps(asdict(shop), ensure_ascii=False) for shop in shops)
            atomic_write_text(options.out, "".join(f"{row}\n" for row in rows))
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(shops)} shops, {sum(len(shop.asked) for shop in shops)} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

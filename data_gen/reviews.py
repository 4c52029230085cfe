"""What customers answer when their order is read back, typed one by one: agreement or none.

    python -m data_gen.reviews                 # check every file
    python -m data_gen.reviews --out FILE      # write what `training.consent` learns from

`reviews/carts.yaml` names the reviews: a shop of the corpus, the order, the price read back. Each
writer has a file `reviews/WRITER.tsv`; in `reviews/again/WRITER.tsv` are answers to the question
that is asked when a first answer was not clear. A line has three fields with a tab between: the
review, `yes` where the line agrees to exactly that or `no`, and what the customer types.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from data_gen.corpus_io import CORPUS
from data_gen.typed import typed
from haggle.core.config import Record, parse, read_mapping
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.language.answer import Answer
from haggle.language.evidence import AGAIN
from haggle.language.terms import Terms
from haggle.trade.review import terms_of
from haggle.trade.world import World
from haggle.trade.world_io import load_world

REVIEWS = Path(__file__).parent / "reviews"
LABELS = {"yes": True, "no": False}
AGAIN_FOLDER = "again"


class Read(Record):
    """A review: its shop, the order by the goods' names, and the price."""

    world: str
    cart: dict[str, int]
    price: float


@dataclass(frozen=True)
class Answered:
    """A line, the review that it answers, whether it agrees, and who wrote it."""

    line: str
    review: str
    agrees: bool
    writer: str
    again: bool


def read_reviews(folder: Path = REVIEWS) -> dict[str, Terms]:
    """The terms of each review. Raises HaggleError naming the one that is wrong."""
    path = folder / "carts.yaml"
    found = {}
    for name, told in read_mapping(path).items():
        where = f"{path}, {name}"
        review = parse(told, Read, where)
        world = _world(review.world)
        ids = {item.item_name: item.item_id for item in world.inventory}
        unknown = [good for good in review.cart if good not in ids]
        if unknown:
            raise HaggleError(f"not sold there: {unknown[0]}", where=where, hint=", ".join(ids))
        cart = {ids[good]: number for good, number in review.cart.items()}
        terms = terms_of(world, cart, review.price)
        if terms is None:
            raise HaggleError("the cart is empty", where=where, hint="name goods and numbers")
        found[name] = terms
    return found


@cache
def _world(name: str) -> World:
    return load_world(CORPUS / "worlds" / f"{name}.yaml")


def read_answers(path: Path, known: dict[str, Terms]) -> Iterator[Answered]:
    """The lines of a file. Raises HaggleError naming file and line."""
    for where, (review, label, line) in typed(path, "review, yes or no, line"):
        if review not in known:
            raise HaggleError(f"no review {review!r}", where=where, hint="see carts.yaml")
        if label not in LABELS:
            raise HaggleError(f"{label!r} is no label", where=where, hint="yes or no")
        again = path.parent.name == AGAIN_FOLDER
        yield Answered(line, review, LABELS[label], path.stem, again)


def all_answers(folder: Path = REVIEWS) -> Iterator[Answered]:
    """The lines of all writers. Raises HaggleError for a file that is wrong, or where none is."""
    known = read_reviews(folder)
    paths = sorted(folder.rglob("*.tsv"))
    if not paths:
        raise HaggleError("no files of answers here", where=str(folder), hint="WRITER.tsv")
    for path in paths:
        yield from read_answers(path, known)


def _row(one: Answered, terms: Terms) -> dict[str, object]:
    text = Answer(one.line, terms).in_general()
    return asdict(one) | {"text": AGAIN + text if one.again else text}


def main() -> int:
    """Check all files, and write them as one; returns 0, or 2 where one is wrong."""
    parser = argparse.ArgumentParser(description="Check the answers to reviews.")
    parser.add_argument("--out", type=Path, help="write them as JSON lines")
    options = parser.parse_args()
    try:
        known = read_reviews()
        found = list(all_answers())
        if options.out is not None:
            rows = (json.dumps(_row(one, known[one.review]), ensure_ascii=False) for one in found)
            atomic_write_text(options.out, "".join(f"{row}\n" for row in rows))
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    agree = sum(one.agrees for one in found)
    print(f"{agree} lines that agree, {len(found) - agree} that do not, to {len(known)} reviews")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

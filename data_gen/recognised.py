"""How well linking finds, without a model of the shop, what nicknames of goods mean.

    python -m data_gen.recognised [train|test]                # with and without the lexicon
    python -m data_gen.recognised [train|test] --embeddings   # and with embeddings (extra)

Four measures on a split: nicknames of the bank's goods; nicknames of what the shop has not (a mark
misleads); lines of the corpus that mean no goods (a guess is a false mark); and guesses in its
other lines (right where they hold goods of the answer or the cart). Times are a line's. At the end
stands what the lexicon changes, in pairs of the same line, without embeddings and with them.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from data_gen.bank import split_genres
from data_gen.corpus_io import turns_as_played
from data_gen.language.phrasebook import SPLITS, Split
from data_gen.worlds import sample_shop
from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.language.reading import View
from haggle.rates import clustered_difference, points_text, rate, rate_text
from haggle.trade.prompting import linked_line

SHOPS = 300
WAYS = {
    "usual": (
        "can I get the {}",
        "2 {} please",
        "{}, and that's all",
        "i want a {}",
        "how about that {}?",
    ),
    "new": (  # other sentences; no limit was chosen on them
        "I'd like your {}",
        "{} x3",
        "is there still a {} to be had",
        "do you stock any {}",
        "four of the {}, if you would",
    ),
}
NO_GOODS = {"CASUAL", "END", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE"}
OUTCOMES = ("right", "first", "among", "wrong", "bare")
NAMED = {"right", "first"}  # the first candidate is the item meant
_MARK = re.compile(r"\{([^}]*)\}")


class Asked(NamedTuple):
    """A line, what it may refer to, and the name of the item meant; "" for one not in the shop."""

    line: str
    view: View
    name: str = ""


class Said(NamedTuple):
    """A line of the corpus, what it may refer to, and the ids of the goods that it may mean."""

    line: str
    view: View
    goods: frozenset[str]
    means_goods: bool


def asked(split: Split, ways: tuple[str, ...], shops: int, seed: int = 5) -> Iterator[Asked]:
    """Lines with each nickname of the goods of sampled shops, and with one of another genre's."""
    rng = random.Random(seed)
    for _ in range(shops):
        shop = sample_shop(rng, split, (4, 12), 0.2)
        view = shop.world.view()
        for item in shop.world.inventory:
            for nickname in shop.nicknames.get(item.item_name, ()):
                yield Asked(rng.choice(ways).format(nickname), view, item.item_name)
        here = shop.world.name.rpartition("_")[0]
        others = [genre for name, genre in split_genres(split) if name != here]
        for genre in others:
            if nicknames := rng.choice(genre.items).nicknames:
                yield Asked(rng.choice(ways).format(rng.choice(nicknames)), view)


def said(split: Split) -> Iterator[Said]:
    """The players' lines of the corpus in a split's voices."""
    for session, turn in turns_as_played(split):
        view = session.world.view(session.cart, session.shown)
        names = {*(turn.show or ()), *(turn.cart or ())}
        shown = {thing.id for thing in view.catalogue.things if thing.name in names}
        means = bool(names) or turn.state not in NO_GOODS
        yield Said(turn.player, view, frozenset(session.cart.keys() | shown), means)


def outcome(line: Asked, linker: English) -> str:
    """What becomes of a nickname: `right` where the last mark names the item alone, `first` where
    it names it before others, `among` where a mark names it elsewhere, `wrong`, and `bare`."""
    marks = _MARK.findall(linked_line(linker.read(line.line, line.view)))
    told = [re.sub(r" x(\d+|\?)$", "", mark).split(" / ") for mark in marks if not mark.isdigit()]
    if not told:
        return "bare"
    if told[-1] == [line.name]:
        return "right"
    if told[-1][0] == line.name:
        return "first"
    return "among" if any(line.name in names for names in told) else "wrong"


def guesses(line: Said, linker: English) -> list[bool]:
    """Whether each guess in a line holds one of the goods that it may mean."""
    mentions = linker.read(line.line, line.view).mentions
    return [
        any(thing.id in line.goods for thing in mention.candidates)
        for mention in mentions
        if mention.guessed
    ]


def _share(part: int, whole: int) -> str:
    return f"{rate_text(rate(part, whole))} of {whole}"


def report(split: Split, linkers: dict[str, English], shops: int) -> None:
    """Print shares with their 95% Wilson intervals, and what the lexicon changes."""
    spoken = list(said(split))
    found: dict[str, dict[str, list[str]]] = {ways: {} for ways in WAYS}
    by_ways = {name: list(asked(split, ways, shops)) for name, ways in WAYS.items()}
    for name, linker in linkers.items():
        print(f"\n{split}, {name}")
        for ways, lines in by_ways.items():
            found[ways][name] = [outcome(line, linker) for line in lines if line.name]
            here = Counter(found[ways][name])
            first = sum(here[kind] for kind in NAMED)
            print(f"  {ways} wordings, first candidate right: {_share(first, here.total())}")
            for kind in OUTCOMES:
                print(f"  {ways} wordings, {kind}: {_share(here[kind], here.total())}")
            away = [outcome(line, linker) != "bare" for line in lines if not line.name]
            print(f"  {ways} wordings, not in the shop, marked: {_share(sum(away), len(away))}")
        _report_corpus(spoken, linker)
    for ways, lines in by_ways.items():
        goods = [line.name for line in lines if line.name]
        outcomes = list(found[ways].values())  # each linker without the lexicon, then with it
        pairs = zip(outcomes[::2], outcomes[1::2], strict=True)
        for beside, (without, with_) in zip(("alone", "beside embeddings"), pairs, strict=False):
            print(f"{ways} wordings, the lexicon {beside}: {_changed(goods, with_, without)}")


def _changed(goods: Sequence[str], mine: Sequence[str], reference: Sequence[str]) -> str:
    """In points, how many more nicknames are led right and wrong; the interval is over goods."""
    told = []
    for what, kinds in (("first candidate right", NAMED), ("wrong", {"wrong"})):
        groups = []
        for outcomes in (mine, reference):
            by_good: dict[str, list[bool]] = {}
            for good, kind in zip(goods, outcomes, strict=True):
                by_good.setdefault(good, []).append(kind in kinds)
            groups.append(list(by_good.values()))
        told.append(f"{what} {points_text(clustered_difference(*groups))}")
    return f"{', '.join(told)}; {len(goods)} lines about {len(groups[0])} goods"


def _report_corpus(spoken: list[Said], linker: English) -> None:
    begun = time.perf_counter()
    found = [(line.means_goods, guesses(line, linker)) for line in spoken]
    spent = 1000 * (time.perf_counter() - begun) / max(1, len(spoken))
    false = [bool(guessed) for means, guessed in found if not means]
    right = [hit for means, guessed in found if means for hit in guessed]
    print(f"  corpus, lines without goods, false marks: {_share(sum(false), len(false))}")
    if right:
        print(f"  corpus, guesses in other lines that are right: {_share(sum(right), len(right))}")
    print(f"  corpus: {spent:.1f} ms a line")


def main(arguments: list[str] | None = None) -> None:
    """Measure a split."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("split", nargs="?", choices=SPLITS, default="train")
    parser.add_argument("--embeddings", action="store_true", help="with embeddings as well")
    parser.add_argument("--shops", type=int, default=SHOPS, help=f"shops sampled ({SHOPS})")
    given = parser.parse_args(arguments)
    linkers: dict[str, Any] = {
        "linker alone": English(lexicon=False),
        "and the lexicon": English(),
    }
    if given.embeddings:
        embedder = load_embedder(True)
        linkers["and embeddings, without the lexicon"] = English(embedder, lexicon=False)
        linkers["and both"] = English(embedder)
    report(given.split, linkers, given.shops)


if __name__ == "__main__":
    main()

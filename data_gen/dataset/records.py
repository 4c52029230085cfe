"""What `statistics.json` holds. Shares are between 0 and 1."""

from __future__ import annotations

from math import sqrt

from data_gen.dataset.lengths import TokenLengths
from haggle.core.config import Record

Z95 = 1.96


class Share(Record):
    """`count` of `of`; `share` is None of nothing."""

    count: int
    of: int
    share: float | None


def share(count: int, of: int) -> Share:
    """A count with what it is part of."""
    return Share(count=count, of=of, share=count / of if of else None)


class Spread(Record):
    """A mean with its 95% interval (normal), standard deviation and range, and all counts."""

    n: int
    mean: float
    low: float
    high: float
    sd: float
    min: int
    max: int
    histogram: dict[int, int]


def spread(histogram: dict[int, int]) -> Spread | None:
    """The spread of the values counted; None of none."""
    n = sum(histogram.values())
    if not n:
        return None
    mean = sum(value * count for value, count in histogram.items()) / n
    squares = sum(count * (value - mean) ** 2 for value, count in histogram.items())
    sd = sqrt(squares / (n - 1)) if n > 1 else 0.0
    half = Z95 * sd / sqrt(n)
    return Spread(
        n=n,
        mean=mean,
        low=mean - half,
        high=mean + half,
        sd=sd,
        min=min(histogram),
        max=max(histogram),
        histogram=dict(sorted(histogram.items())),
    )


class Lines(Record):
    """How varied the lines of one side are.

    `distinct` is distinct-1, -2 and -3 (different n-grams by all n-grams), `different` the numbers
    of different ones; `distinct_at` is `distinct` after so many words, to compare data sets of
    other sizes. `repeated` are lines that were there before but for casing and punctuation.
    `self_bleu` (0 to 100) is of `self_bleu_sample` lines.
    """

    lines: int
    words: int
    vocabulary: int
    words_once: int
    distinct: dict[int, float]
    different: dict[int, int]
    distinct_at: dict[int, dict[int, float]]
    repeated: Share
    self_bleu: float | None
    self_bleu_sample: int


class Duplicates(Record):
    """Texts that nearly repeat an earlier one, by MinHash over shingles of `shingle` words.

    `threshold` is the Jaccard similarity from which on they do.
    """

    threshold: float
    shingle: int
    near: Share


class Orders(Record):
    """What is asked for in answers that write a cart, where the wire format tells (compact).

    `unsold`: with something the shop does not sell; `over_stock`: with more than the shop has;
    `all_of`: "all" of an item.
    """

    unsold: Share
    over_stock: Share
    all_of: Share


class Shops(Record):
    """The shops, as far as the system message lists their items. `invented` are names, in shops of
    the sampler's genres, with a word that the item bank does not have."""

    different: int
    genres: dict[str, int]
    items: Spread | None
    lowest_price: float | None
    highest_price: float | None
    invented: Share


class SplitStatistics(Record):
    """The figures of one split. `of` is how many dialogues the split has, `dialogues` how many were
    read. `rounds` and `transitions` are by scenario, `acts` by act and state, dialogues by the
    rest."""

    of: int
    dialogues: int
    turns: int
    rounds: dict[str, Spread]
    with_sale: Share
    states: dict[str, int]
    acts: dict[str, dict[str, int]]
    transitions: dict[str, dict[str, dict[str, int]]]
    sources: dict[str, int]
    voices: dict[str, int]
    teachers: dict[str, int]
    methods: dict[str, int]
    shops: Shops
    orders: Orders
    cart_items: Spread | None
    cart_pieces: Spread | None
    player: Lines
    merchant: Lines
    corpus_copies: int
    repeated_dialogues: Share
    near_dialogues: Duplicates
    near_player_turns: Duplicates
    tokens: list[TokenLengths]


class HeldOut(Record):
    """What test shares with train. `player_lines` is the share of different test lines that occur
    in train; `shops` and `dialogues` are numbers in common."""

    shops: int
    genres: list[str]
    voices: list[str]
    player_lines: float
    dialogues: int
    acts_in_test_only: list[str]


class Statistics(Record):
    """`statistics.json`: a data set in figures. `config` is what it was made from and `report` what
    the models that took part did, where the data set says so."""

    schema_version: int = 1
    name: str
    config: dict[str, object] | None
    report: dict[str, object] | None
    splits: dict[str, SplitStatistics]
    held_out: HeldOut | None


class Comparison(Record):
    """`comparison.json`: two data sets at equal numbers of dialogues."""

    schema_version: int = 1
    names: tuple[str, str]
    split: str
    dialogues: int
    ours: SplitStatistics
    baseline: SplitStatistics

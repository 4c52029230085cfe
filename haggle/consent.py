"""Does a line withhold consent? Words alone, so that no model's slip can close a sale on a no.

Two judges, either of which keeps a sale open: a list of words (`consent.yaml`), and how much the
line as a whole reads like the yeses of the training data (`consent_weights.json`, a logistic
regression that `python -m data_gen.consent_fit` fits).
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from haggle.checks import numbers_in
from haggle.config import Record, load_config
from haggle.storage import read_json

_TOKEN = re.compile(r"[a-z']+|\d+|[^\w\s]")
MAX_TOKENS = 40
PIECE = 4  # letters of a piece of a word


class Words(Record):
    """`consent.yaml`: what keeps a sale open whatever else is said, what does so unless the line
    agrees as well, and what agrees."""

    always: list[str]
    unless_agreed: list[str]
    agreed: list[str]


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    words = load_config(Path(__file__).with_name("consent.yaml"), Words)
    return _any(words.always), _any(words.unless_agreed), _any(words.agreed)


def _any(phrases: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_whole, phrases)))


def _whole(phrase: str) -> str:
    """A pattern for a phrase as whole words; `~` stands for up to two words."""
    if not re.search(r"\w", phrase):
        return re.escape(phrase)
    words = [re.escape(word) for word in phrase.split()]
    gapped = r"\W+".join(words).replace(re.escape("~") + r"\W+", r"(?:\w+\W+){0,2}?")
    return rf"(?<!\w){gapped}(?!\w)"


class Weights(Record):
    """`consent_weights.json`: log-odds of a yes by feature, and what a yes has at least."""

    threshold: float
    bias: float
    weights: dict[str, float]

    def odds(self, player: str) -> float:
        """How much a line reads like a yes: log-odds, of which 0 is even."""
        return self.bias + sum(self.weights.get(name, 0.0) for name in features(player))

    def knows(self, player: str) -> bool:
        """Whether a line has a word, or a piece of one, that has a weight."""
        return any(n in self.weights for n in features(player) if not n.startswith("length "))


@cache
def fitted() -> Weights:
    """The weights that Haggle comes with."""
    return Weights.model_validate(read_json(Path(__file__).with_name("consent_weights.json")))


def features(player: str) -> set[str]:
    """What a line is judged by: its words, pairs of words, pieces of words, its length."""
    tokens = _TOKEN.findall(_plain(player))
    if len(tokens) > MAX_TOKENS:
        tokens = tokens[: MAX_TOKENS // 2] + tokens[-MAX_TOKENS // 2 :]
    words = ["#" if token.isdigit() else token for token in tokens]
    found = {*words, f"length {min(len(words) // 4, 6)}"}
    found |= {f"{a} {b}" for a, b in pairwise(["^", *words, "$"])}
    for word in words:
        edged = f"<{word}>"
        found |= {f"~{edged[i : i + PIECE]}" for i in range(len(edged) - PIECE + 1)}
    return found


def withholds(player: str, price: float | None = None) -> bool:
    """Whether a line that is taken for a yes holds words of a no, a doubt or a change, reads unlike
    a yes, or has no word that the judges know.

    Made to err on the side of asking again: a needless second review costs one turn. `price` is
    what is on the table: words of agreement beside it are a yes, however the line reads.
    """
    if has_words_of_doubt(player):
        return True
    _, _, agreed = _patterns()
    if price is not None and price in numbers_in(player) and agreed.search(_plain(player)):
        return False
    judge = fitted()
    return not judge.knows(player) or judge.odds(player) < judge.threshold


def has_words_of_doubt(player: str) -> bool:
    """Whether a line holds words that keep a sale open (`consent.yaml`)."""
    said = _plain(player)
    always, unless_agreed, agreed = _patterns()
    return bool(always.search(said) or (unless_agreed.search(said) and not agreed.search(said)))


def _plain(player: str) -> str:
    return re.sub("[’´ʼ`]", "'", player.casefold())

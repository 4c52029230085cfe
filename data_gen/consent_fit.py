"""Fit how a yes reads, from the training split alone, and write `haggle/consent_weights.json`.

    python -m data_gen.consent_fit           # fit and write
    python -m data_gen.consent_fit check     # what is held up of the test split, without writing

Lines of scripted players and of the hand-written corpus, labelled by what the oracle or the writer
made of them: an agreement, or anything else. The threshold is what keeps `HELD` of the yeses to a
review from closing a sale, measured on writers' voices that the weights were not fitted on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_gen.config import DataConfig
from data_gen.corpus_io import corpus_rows
from data_gen.language.phrasebook import Split
from data_gen.sources import make_dialogue
from haggle import consent
from haggle.consent import Weights, features
from haggle.procedure import load_procedure
from haggle.storage import write_json

DIALOGUES = DataConfig(seed=11, noise=0.4, drills=0.1, doubts=0.5)
SCRIPTED = 2500  # dialogues
TIMES = 3  # how often a hand-written line counts
RARE = 4  # a feature of fewer lines than this has no weight
DECAY = 2e-4  # of the squared weights, against the mean loss of a line
FOLDS = 4
HELD = 0.05
CRITICAL = load_procedure().critical
REVIEWS = frozenset(state for c in CRITICAL for state in c.only_after)
AGREED = REVIEWS | {c.state for c in CRITICAL}  # where only a yes leads
SMALL = 0.05  # weights below this are left out of the file
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """A player's line: whether it agrees, whether it answers a review, whose voice it is."""

    said: str
    agrees: bool
    reviewed: bool
    voice: str


def scripted_lines(split: Split, count: int, config: DataConfig = DIALOGUES) -> list[Line]:
    """Lines of scripted players of a split."""
    found = []
    for index in range(count):
        _, dialogue = make_dialogue(config, split, index)
        found += [
            Line(turn.player, turn.state in AGREED, turn.last in REVIEWS, dialogue.player)
            for turn in dialogue.turns
        ]
    return found


def written_lines(split: Split) -> list[Line]:
    """Lines of the hand-written corpus of a split."""
    return [
        Line(turn["player"], turn["state"] in AGREED, turn["last"] in REVIEWS, row["player"])
        for row in corpus_rows(split)
        for turn in row["turns"]
    ]


def fit(lines: Sequence[Line]) -> Weights:
    """Logistic regression with an L2 penalty; the threshold is left at even odds."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    said = [features(line.said) for line in lines]
    common = Counter(name for names in said for name in names)
    number = {name: i for i, name in enumerate(sorted(n for n, c in common.items() if c >= RARE))}
    columns = [sorted(number[name] for name in names if name in number) for names in said]
    starts = np.cumsum([0, *map(len, columns)])
    flat = np.array([column for row in columns for column in row])
    table = csr_array((np.ones(len(flat)), flat, starts), shape=(len(lines), len(number)))
    turned = table.T.tocsr()
    right = np.array([line.agrees for line in lines], dtype=float)

    def loss(point: Values) -> tuple[float, Values]:
        weights, bias = point[:-1], point[-1]
        odds = table @ weights + bias
        value = np.mean(np.logaddexp(0, odds) - right * odds) + DECAY * weights @ weights
        error = (1 / (1 + np.exp(-odds)) - right) / len(lines)
        return float(value), np.append(turned @ error + 2 * DECAY * weights, error.sum())

    found = minimize(loss, np.zeros(len(number) + 1), jac=True, method="L-BFGS-B").x
    kept = {name: round(float(found[i]), 2) for name, i in number.items() if abs(found[i]) >= SMALL}
    return Weights(threshold=0.0, bias=round(float(found[-1]), 2), weights=kept)


def threshold(scripted: Sequence[Line], written: Sequence[Line]) -> float:
    """The log-odds that all but `HELD` of the yeses of voices not fitted on have at least."""
    voices = sorted({line.voice for line in written})
    found: list[float] = []
    for fold in range(FOLDS):
        left_out = set(voices[fold::FOLDS])
        model = fit([*scripted, *[x for x in written if x.voice not in left_out] * TIMES])
        found += [
            model.odds(line.said)
            for line in written
            if line.voice in left_out and line.reviewed and line.agrees
        ]
    return round(float(np.quantile(found, HELD)), 2)


def answers(split: Split, scripted: int = 500) -> dict[str, list[Line]]:
    """What people and scripted players of a split say to a review."""
    plain = DataConfig(seed=5, noise=0.4)
    found = {"written": written_lines(split), "scripted": scripted_lines(split, scripted, plain)}
    return {name: [line for line in lines if line.reviewed] for name, lines in found.items()}


def check() -> None:
    """Print what is held up of the yeses and of all else, by words alone and by both judges."""
    judges = {"words": consent.has_words_of_doubt, "both": consent.withholds}
    for name, lines in answers("test").items():
        for judge, holds in judges.items():
            for what, agrees in (("yeses", True), ("others", False)):
                held = [holds(line.said) for line in lines if line.agrees is agrees]
                print(f"{name}, {judge}: holds up {sum(held)} of {len(held)} {what}")


def main() -> None:
    """Fit and write the file, or check it."""
    if sys.argv[1:] == ["check"]:
        check()
        return
    if sys.argv[1:]:
        sys.exit(f"unknown argument {sys.argv[1]!r}; known: check")
    scripted, written = scripted_lines("train", SCRIPTED), written_lines("train")
    least = threshold(scripted, written)
    model = fit([*scripted, *written * TIMES]).model_copy(update={"threshold": least})
    path = Path(consent.__file__).with_name("consent_weights.json")
    write_json(path, model.model_dump())
    print(f"{path.name}: {len(model.weights):,} weights, threshold {least}")


if __name__ == "__main__":
    main()

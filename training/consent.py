"""Teaches an encoder to tell whether an answer to a review agrees.

    python -m data_gen.reviews --out runs/data/reviews.jsonl
    python -m training.consent --data runs/data/reviews.jsonl --out runs/consent

All weights of all-MiniLM-L6-v2 (Apache-2.0) and a linear head on its first state, by the log odds
of the label. A run that was stopped goes on where it was; the result is the encoder's files, the
head, and both as an ONNX file in eight bits. `--held-out` names writers to measure on alone.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from haggle.core.errors import HaggleError
from haggle.language.evidence import DOUBTFUL, HARMLESS
from training.encoder import (
    Encoder,
    Schedule,
    command,
    fit,
    held_out,
    read_rows,
    unpacked_base,
)

NEAR = 1.0  # log odds by which eight bits may be off, on the mean of the probes
HEAD = "head.pt"
AGREE = 0.97  # of the probes on which eight bits must decide the same


@dataclass(frozen=True)
class Recipe(Schedule):
    """How a run learns: `batch` lines of about the same length a step."""

    epochs: float = 3.0
    learning_rate: float = 1e-4
    batch: int = 32


@dataclass(frozen=True)
class Row:
    """A line of `data_gen.reviews`, as it was typed and in general terms."""

    line: str
    review: str
    agrees: bool
    writer: str
    again: bool
    text: str


class Classifier(torch.nn.Module):
    """An encoder with a head: log odds that a text agrees."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self.encoder = Encoder(base)
        self.model, self.head = self.encoder.model, torch.nn.Linear(384, 1)

    def forward(self, texts: Sequence[str]) -> torch.Tensor:
        """float32 [texts]"""
        states, _ = self.encoder.states(texts)
        odds: torch.Tensor = self.head(states[:, 0])[:, 0]
        return odds


def batches(rows: Sequence[Row], recipe: Recipe, epoch: int) -> list[list[Row]]:
    """An epoch's steps: each line once, lines of about the same length together."""
    draw = random.Random(f"{recipe.seed} {epoch}")
    order = list(rows)
    draw.shuffle(order)
    wide = recipe.batch * 8
    made = []
    for at in range(0, len(order), wide):
        near = sorted(order[at : at + wide], key=lambda row: len(row.text))
        made += [near[n : n + recipe.batch] for n in range(0, len(near), recipe.batch)]
    draw.shuffle(made)
    return made


def train(rows: Sequence[Row], base: Path, out: Path, recipe: Recipe) -> Classifier:
    """The classifier after a run, its encoder's files in `out`. Raises HaggleError where `out`
    holds another run."""
    torch.manual_seed(recipe.seed)
    model = Classifier(base)

    def loss(batch: Sequence[Row]) -> torch.Tensor:
        right = torch.tensor([float(row.agrees) for row in batch])
        return binary_cross_entropy_with_logits(model([row.text for row in batch]), right)

    fit(model, lambda epoch: batches(rows, recipe, epoch), loss, recipe, out, (recipe, rows))
    model.encoder.save(out)
    torch.save(model.head.state_dict(), out / HEAD)
    return model


@torch.no_grad()
def odds_of(model: Classifier, texts: Sequence[str]) -> list[float]:
    """The log odds of each text."""
    return [float(model([text])[0]) for text in texts]


def export(model: Classifier, folder: Path, probes: Sequence[str]) -> Path:
    """Write `folder`/onnx and return it. Raises HaggleError where it says something else than the
    model to the probes."""
    from haggle.language.judge import MiniLMJudge
    from training.encoder_onnx import States, write

    out = write(model.encoder, States(model.model, model.head), "log_odds", folder)
    judge = MiniLMJudge(out)
    pairs = list(zip(map(judge.agreement, probes), odds_of(model, probes), strict=True))
    off = sum(abs(small - full) for small, full in pairs) / len(pairs)
    same = sum((small > 0) == (full > 0) for small, full in pairs) / len(pairs)
    if off > NEAR or same < AGREE:
        raise HaggleError(
            f"{off:.2f} off the model on the mean, {same:.0%} decided alike", where=str(out)
        )
    return out


def _told(model: Classifier, rows: Sequence[Row]) -> None:
    odds = odds_of(model, [row.text for row in rows])
    for question, again in (("first", False), ("second", True)):
        for limit in (DOUBTFUL, HARMLESS):
            passed = {True: 0, False: 0}
            of = dict(passed)
            for row, one in zip(rows, odds, strict=True):
                of[row.agrees] += row.again is again
                passed[row.agrees] += row.again is again and one > limit
            told = f"{passed[True]} of {of[True]} that agree, {passed[False]} of {of[False]} others"
            print(f"  {question} question, above {limit}: {told}")


def run(options: argparse.Namespace) -> None:
    """Train, measure on writers held out, export."""
    rows = read_rows(options.data, Row, "answer", "data_gen.reviews")
    learned, held = held_out(rows, lambda row: row.writer, options.held_out)
    base = unpacked_base(options.out.with_name(f"{options.out.name}-base"))
    model = train(learned, base, options.out, Recipe(epochs=options.epochs))
    if held:
        _told(model, held)
    print(f"Wrote {export(model, options.out, [row.text for row in rows[::200]])}")


if __name__ == "__main__":
    raise SystemExit(command((__doc__ or "").partition("\n")[0], Recipe.epochs, run))

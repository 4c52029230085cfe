"""Teaches the sentence model which sentence about which good answers a customer.

    python -m data_gen.questions --out runs/data/questions.jsonl
    python -m training.sentences --data runs/data/questions.jsonl --out runs/sentences

All weights of all-MiniLM-L6-v2 (Apache-2.0) are trained with a softmax over a shop's texts: a
question against all its sentences and against those of the good it is about, a need against all
its goods. Small talk is to be far from every good. Scores are held near the base model's, so that
thresholds keep their meaning. A run that was stopped goes on where it was; the result is the
model's files and an ONNX file in eight bits (`training.encoder_onnx`).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy, softplus

from training.encoder import (
    Encoder,
    Schedule,
    command,
    fit,
    held_out,
    read_rows,
    unpacked_base,
)

ASKED = {"line", "goods", "sentence", "need"}  # what a line of a shop has
NONE = -2.0  # less than any cosine: of goods without a sentence


@dataclass(frozen=True)
class Recipe(Schedule):
    """How a run learns: `batch` questions of one shop a step; `scale` multiplies cosines in the
    softmax; `keep` weighs how far scores may move from the base model's. What answers is to score
    above `known`, what does not below `unknown`."""

    batch: int = 24
    scale: float = 20.0
    known: float = 0.4
    unknown: float = 0.25
    keep: float = 10.0


@dataclass(frozen=True)
class Shop:
    """A row of `data_gen.questions`: a shop's texts, and what was asked there."""

    shop: str
    short: list[str]
    full: list[str]
    sentences: list[str]
    owners: list[int]
    asked: list[dict[str, Any]]

    def __post_init__(self) -> None:
        """Raises TypeError for a row in another form."""
        if not self.full or any(row.keys() != ASKED for row in self.asked):
            raise TypeError(f"it needs goods, and of each line asked {', '.join(sorted(ASKED))}")

    def texts(self) -> list[str]:
        """What lines are compared with: the sentences, or names where nothing else is known."""
        return self.sentences or self.full

    def answered(self) -> list[dict[str, Any]]:
        """The lines that a sentence or a good answers."""
        return [asked for asked in self.asked if asked["need"] or asked["sentence"] is not None]


def loss_of(
    encoder: Encoder, base: Encoder, shop: Shop, asked: Sequence[Any], recipe: Recipe
) -> torch.Tensor:
    """The loss on some lines of one shop."""
    lines = [row["line"] for row in asked]
    texts = shop.texts()
    rows, told = encoder(lines), encoder(texts)
    full, short = encoder(shop.full), encoder(shop.short)
    owners = torch.tensor(shop.owners)
    losses: list[torch.Tensor] = []  # none for a question about goods of which nothing is known
    for row, one in zip(asked, rows, strict=True):
        near = _nearness(full @ one, told @ one, owners)
        if row["need"]:
            losses += _of_need((full @ one, short @ one, near), row["goods"], recipe)
        elif not row["goods"]:  # small talk
            losses.append(_far(torch.cat((short @ one, near)), recipe))
        else:
            losses += _of_question(told @ one, owners, row, recipe)
    with torch.no_grad():
        before = base(lines) @ base(texts).T
    drift = ((rows @ told.T - before) ** 2).mean()
    return sum(losses, recipe.keep * len(asked) * drift) / len(asked)


def _of_need(
    scores: Sequence[torch.Tensor], right: list[int], recipe: Recipe
) -> Iterator[torch.Tensor]:
    """The losses of a need: each way to score goods is to prefer the right ones, the last one by
    enough to be known."""
    for near in scores:
        goods = recipe.scale * near
        yield (goods.logsumexp(0) - goods[right].logsumexp(0)) / len(scores)
    yield softplus(recipe.scale * (recipe.known - scores[-1][right].max())) / 4


def _of_question(
    scores: torch.Tensor, owners: torch.Tensor, row: Any, recipe: Recipe
) -> Iterator[torch.Tensor]:
    """The losses of a question about a good: its sentence among all and among those of the good."""
    own = (owners == row["goods"][0]).nonzero()[:, 0]
    if row["sentence"] is None:
        if len(own):  # there is something that it could be taken for
            yield _far(scores[own], recipe)
        return
    place = (own == row["sentence"]).nonzero()[0, 0]
    yield cross_entropy(recipe.scale * scores, torch.tensor(row["sentence"])) / 2
    yield cross_entropy(recipe.scale * scores[own], place) / 2
    yield softplus(recipe.scale * (recipe.known - scores[own][place])) / 4


def _far(scores: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """The loss of a line that nothing is to be near to."""
    return softplus(recipe.scale * (scores.max() - recipe.unknown)) / 2


def _nearness(full: torch.Tensor, told: torch.Tensor, owners: torch.Tensor) -> torch.Tensor:
    """float32 [goods]: how near goods are to a need, as a merchant reckons: all that is known of
    them and the nearest sentence of it, half and half (`haggle.trade.fitting`)."""
    if not len(owners):
        return full
    best = torch.full_like(full, NONE).scatter_reduce(0, owners, told, "amax")
    return torch.where(best == NONE, full, (full + best) / 2)


def batches(shops: Sequence[Shop], recipe: Recipe, epoch: int) -> list[tuple[Shop, list[Any]]]:
    """An epoch's steps: each line once, those of one shop together."""
    draw = random.Random(f"{recipe.seed} {epoch}")
    made = []
    for shop in shops:
        lines = list(shop.asked)
        draw.shuffle(lines)
        made += [(shop, lines[n : n + recipe.batch]) for n in range(0, len(lines), recipe.batch)]
    draw.shuffle(made)
    return made


def train(shops: Sequence[Shop], base: Path, out: Path, recipe: Recipe) -> Encoder:
    """The model after a run, its files in `out`; goes on from `out`/state.pt where there is one.
    Raises HaggleError where that state is of another run."""
    encoder, still = Encoder(base, half=True), Encoder(base)

    def loss(batch: tuple[Shop, list[Any]]) -> torch.Tensor:
        return loss_of(encoder, still, *batch, recipe)

    def of_epoch(epoch: int) -> list[tuple[Shop, list[Any]]]:
        return batches(shops, recipe, epoch)

    fit(encoder.model, of_epoch, loss, recipe, out, (recipe, shops))
    encoder.save(out)
    return encoder


@torch.no_grad()
def measured(encoder: Encoder, shops: Sequence[Shop]) -> dict[str, tuple[int, int]]:
    """How often the right text is the nearest, and of how many lines: a sentence among those of its
    good and of the whole shop; the good that serves a need."""
    counts: dict[str, list[bool]] = {"sentence of a good": [], "sentence of a shop": [], "need": []}
    for shop in shops:
        told, full, owners = encoder(shop.texts()), encoder(shop.full), torch.tensor(shop.owners)
        for row in shop.answered():
            one = encoder([row["line"]])[0]
            if row["need"]:
                counts["need"].append(int((full @ one).argmax()) in row["goods"])
                continue
            scores = told @ one
            counts["sentence of a shop"].append(int(scores.argmax()) == row["sentence"])
            scores[owners != row["goods"][0]] = -1.0
            counts["sentence of a good"].append(int(scores.argmax()) == row["sentence"])
    return {name: (sum(right), len(right)) for name, right in counts.items()}


def _told(shops: Sequence[Shop], encoder: Encoder) -> Iterator[str]:
    for name, (right, of) in measured(encoder, shops).items():
        yield f"  {name}: {right} of {of} ({right / max(of, 1):.0%})"


def run(options: argparse.Namespace) -> None:
    """Train, measure on shops held out, export."""
    from training.encoder_onnx import export

    shops = read_rows(options.data, Shop, "shop", "data_gen.questions")
    learned, held = held_out(shops, lambda shop: shop.shop, options.held_out)
    base = unpacked_base(options.out.with_name(f"{options.out.name}-base"))
    if held:
        print("Before:", *_told(held, Encoder(base)), sep="\n")
    encoder = train(learned, base, options.out, Recipe(epochs=options.epochs))
    if held:
        print("After:", *_told(held, encoder), sep="\n")
    print(f"Wrote {export(options.out)}")


if __name__ == "__main__":
    raise SystemExit(command((__doc__ or "").partition("\n")[0], Recipe.epochs, run))

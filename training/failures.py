"""What a run says when it breaks down: which setting to change, and what is left to go on from."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from haggle.core.errors import HaggleError
from training.checkpoints import PREFIX, last_checkpoint, step_of
from training.config import RunSettings

# Full disk, quota used up, file too large for the file system.
FULL = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
# How the same comes out of libraries that write by themselves: safetensors, and torch.save, which
# only says that its file is shorter than it should be.
FULL_TEXTS = (
    "no space left", "os error 28", "enospc", "disk quota", "pytorchstreamwriter failed",
    "unexpected pos",
)  # fmt: skip
MEMORY_TEXTS = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc")


@contextmanager
def explained(config: RunSettings, step: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Turn what breaks a run into a HaggleError that says what to do; other errors pass.

    `step` tells how many steps of the run were finished. Checkpoints torn by a full disk are
    removed, whole ones are kept.
    """
    from training.trainer import NonFiniteError

    run = config.output_dir
    try:
        yield
    except HaggleError:
        raise
    except NonFiniteError as error:
        raise HaggleError(
            f"training broke down at step {step() + 1}: {error}",
            where=str(run),
            hint=_kept("the last good checkpoint is {}; ", run)
            + "lower trainer.learning_rate or raise trainer.warmup_steps, in a new output_dir",
        ) from None
    except Exception as error:
        if _out_of_memory(error):
            raise HaggleError(
                f"out of memory at step {step() + 1}: {str(error).splitlines()[0][:120]}"
                if str(error)
                else f"out of memory at step {step() + 1}",
                where=str(run),
                hint=lower_memory(config) + _kept("; the last good checkpoint is {}", run),
            ) from error
        if _disk_full(error):
            _remove_torn(run)
            going_on = _kept(", which goes on from {}", run)
            raise HaggleError(
                f"the disk is full at step {step()}",
                where=str(run),
                hint=f"free some space and run the same command again{going_on}; a lower "
                "trainer.save_total_limit keeps fewer checkpoints",
            ) from error
        raise


def lower_memory(config: RunSettings) -> str:
    """Which settings to change so that a run needs less memory, the cheapest first."""
    trainer = config.settings
    size = int(trainer["per_device_train_batch_size"])
    steps = []
    if size > 1:
        more = int(trainer["gradient_accumulation_steps"]) * size
        steps.append(
            f"lower trainer.per_device_train_batch_size ({size}; with "
            f"gradient_accumulation_steps: {more} and 1 the updates stay the same)"
        )
    if not trainer["gradient_checkpointing"]:
        steps.append("set trainer.gradient_checkpointing: true")
    steps.append(f"lower max_length ({config.max_length})")
    if config.full_finetuning:
        steps.append("set full_finetuning: false")
    elif not config.quantization:
        steps.append("set quantization: nf4 (on a GPU)")
    return ", or ".join(steps)


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _out_of_memory(error: Exception) -> bool:
    import torch

    for link in _chain(error):
        if isinstance(link, MemoryError | torch.OutOfMemoryError):
            return True
        if isinstance(link, OSError) and link.errno == errno.ENOMEM:
            return True
        if isinstance(link, RuntimeError) and any(s in str(link).lower() for s in MEMORY_TEXTS):
            return True
    return False


def _disk_full(error: Exception) -> bool:
    for link in _chain(error):
        if isinstance(link, OSError) and link.errno in FULL:
            return True
        if any(text in str(link).lower() for text in FULL_TEXTS):
            return True
    return False


def _kept(text: str, run: Path) -> str:
    kept = last_checkpoint(run)
    return text.format(kept) if kept else ""


def _remove_torn(run: Path) -> None:
    """Remove what was being written: checkpoints behind the last whole one."""
    whole = last_checkpoint(run)
    for path in run.glob(f"{PREFIX}*"):
        if step_of(path) > (step_of(whole) if whole else 0):
            shutil.rmtree(path, ignore_errors=True)

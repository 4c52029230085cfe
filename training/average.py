"""The mean of two or more adapters that grew from one: what each learned, and less that it forgot.

python -m training.average ADAPTER ADAPTER --out DIR
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir

WEIGHTS = "adapter_model.safetensors"


def average(adapters: Sequence[Path], out: Path) -> None:
    """Write the adapter whose weights are the means of theirs, in the first one's type; settings
    and notes are the last one's. Raises HaggleError for adapters of other shapes or unreadable."""
    from safetensors.torch import load_file, save_file

    from training.fast_checkpoints import mean_of, read_file

    for adapter in adapters:
        if not (adapter / WEIGHTS).is_file():
            raise HaggleError(f"no {WEIGHTS} here", where=str(adapter), hint="name an adapter/")
    mean = mean_of([(adapter, read_file(adapter / WEIGHTS)) for adapter in adapters])
    kept = load_file(adapters[0] / WEIGHTS)
    weights = {name: mean[name].to(tensor.dtype) for name, tensor in kept.items()}
    with atomic_dir(out) as folder:
        for path in adapters[-1].iterdir():
            if path.is_file() and path.name != WEIGHTS:
                shutil.copy(path, folder / path.name)
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def main() -> int:
    """Average the adapters named; returns 0, or 2 where they cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("adapters", nargs="+", type=Path, help="directories of adapters")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        average(options.adapters, options.out)
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

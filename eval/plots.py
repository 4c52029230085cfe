"""Pictures of measurements, drawn by matplotlib into a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_path


def plotter(
    path: Path, draw: Callable[[Any, Any], None], size: tuple[float, float] = (7, 4.5)
) -> Callable[[Any], None]:
    """What draws figures into the file `path`; `draw` is given a matplotlib figure of `size` inches
    and the figures.

    Raises HaggleError at once where that could not be: matplotlib is missing, or the file's name
    ends in no kind of picture.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise HaggleError("matplotlib is not installed", hint="pip install matplotlib") from None

    figure = Figure(figsize=size, layout="constrained")
    kind = path.suffix.removeprefix(".")
    if kind not in (known := figure.canvas.get_supported_filetypes()):
        raise HaggleError(
            f"no kind of picture: {path.name!r}",
            where="--plot",
            hint=f"end it in {', '.join(known)}",
        )

    def write(measured: Any) -> None:
        draw(figure, measured)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=120)

    return write

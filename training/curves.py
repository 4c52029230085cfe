"""How runs went, as pictures: `curves.png` and `curves.html` from their metrics.jsonl.

    haggle curves runs/train/one runs/train/other --out runs/compared

Loss, learning rate, speed and held-out accuracy against the tokens trained on; several runs lie
over each other. The page is one file that needs no network.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_path, atomic_write_text, read_json, read_jsonl

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLES = {"joint": "-", "state": "--", "cart": ":"}
SETTINGS = {
    "text.parse_math": False,  # a name may hold a dollar sign
    "svg.fonttype": "none",
    "svg.hashsalt": "haggle",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# Of an SVG, what would differ from day to day.
NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


@dataclass(frozen=True, slots=True)
class Curve:
    """One run: its name, the lines of its metrics with a loss, those held out, and its result."""

    name: str
    steps: list[dict[str, Any]]
    held_out: list[dict[str, Any]]
    result: dict[str, Any]

    @property
    def best(self) -> dict[str, Any] | None:
        """The line of the best held-out evaluation, the first of several that are as good."""
        return max(self.held_out, key=lambda line: line["heldout"]["joint"], default=None)

    def series(self, key: str) -> tuple[list[float], list[float]]:
        """Tokens and the values of `key` where it was logged."""
        lines = [line for line in self.steps if line.get(key) is not None]
        return [line["tokens"] for line in lines], [line[key] for line in lines]

    def measure(self, name: str) -> tuple[list[float], list[float]]:
        """Tokens and a held-out measure in percent."""
        lines = [line for line in self.held_out if line["heldout"].get(name) is not None]
        return [line["tokens"] for line in lines], [100 * line["heldout"][name] for line in lines]


def read_curve(run: Path, name: str = "") -> Curve:
    """The metrics of a run's directory. Raises HaggleError when it has none, or nothing in them."""
    metrics = run / "metrics.jsonl"
    if not metrics.is_file():
        raise HaggleError(
            "no metrics.jsonl, so there is nothing to draw",
            where=str(run),
            hint="name the directory that a `haggle train` writes to (its output_dir)",
        )
    lines = read_jsonl(metrics, drop_torn_tail=True)
    for number, line in enumerate(lines, start=1):
        if "step" not in line or "tokens" not in line:
            raise HaggleError("no line of a training run", where=f"{metrics}:{number}")
    steps = [line for line in lines if "loss" in line]
    held_out = [line for line in lines if "heldout" in line]
    if not steps and not held_out:
        raise HaggleError(
            "nothing was logged yet", where=str(metrics), hint="wait for trainer.logging_steps"
        )
    result = run / "result.json"
    found = read_json(result) if result.is_file() else {}
    return Curve(name or run.resolve().name, steps, held_out, found)


def write_curves(runs: Sequence[Path], out: Path) -> tuple[Path, Path]:
    """Write `curves.png` and `curves.html` of these runs to the directory `out`.

    Returns both paths. Raises HaggleError where a run has no metrics, or matplotlib is missing.
    """
    curves = [read_curve(run, name) for run, name in zip(runs, _names(runs), strict=True)]
    png, html = out / "curves.png", out / "curves.html"
    picture, svg = _draw(curves)
    with atomic_path(png) as temporary:
        temporary.write_bytes(picture)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    page = environment.get_template("curves.jinja").render(curves=curves, svg=Markup(svg))
    atomic_write_text(html, page)
    return png, html


def percent(share: float | None) -> str:
    """`82.0%`, or a dash where nothing was measured."""
    return "–" if share is None else f"{100 * share:.1f}%"


def _names(runs: Sequence[Path]) -> list[str]:
    """The runs' directory names; with as many parents as tell them apart."""
    paths = [run.resolve() for run in runs]
    for depth in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return [str(path) for path in paths]


def _draw(curves: Sequence[Curve]) -> tuple[bytes, str]:
    """The picture as PNG, and as SVG to be put into a page."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.ticker import EngFormatter
    except ImportError:
        raise HaggleError("matplotlib is not installed", hint="pip install matplotlib") from None

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(10.5, 7), layout="constrained")
        axes = figure.subplots(2, 2)
        panels = [
            (axes[0, 0], "loss", "loss"),
            (axes[1, 0], "lr", "learning rate"),
            (axes[1, 1], "tokens_per_s", "tokens/s"),
        ]
        for axis, key, title in panels:
            for number, curve in enumerate(curves):
                axis.plot(*curve.series(key), color=_colour(number), linewidth=1.2)
            axis.set_title(title, loc="left")
        axes[1, 0].ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
        axes[1, 1].set_ylim(bottom=0)
        _draw_held_out(axes[0, 1], curves)
        for axis in axes.flat:
            axis.set_xlabel("tokens")
            axis.xaxis.set_major_formatter(EngFormatter(sep=""))
            axis.set_xlim(left=0)
        if len(curves) > 1:
            lines = [Line2D([], [], color=_colour(n)) for n in range(len(curves))]
            # A blank before the name: legends leave out what begins with an underscore.
            names = [f" {curve.name}" for curve in curves]
            figure.legend(lines, names, loc="outside upper left", ncols=min(4, len(names)))
        png, svg = io.BytesIO(), io.StringIO()
        figure.savefig(png, format="png", dpi=120)
        figure.set_layout_engine("none")  # it is laid out now, and that takes its time
        figure.savefig(svg, format="svg", metadata=NO_METADATA)
    text = svg.getvalue()
    return png.getvalue(), text[text.index("<svg") :]


def _draw_held_out(axis: Any, curves: Sequence[Curve]) -> None:
    from matplotlib.lines import Line2D

    axis.set_title("held-out accuracy in %", loc="left")
    axis.set_ylim(0, 100)
    if not any(curve.held_out for curve in curves):
        axis.text(0.5, 0.5, "not evaluated", ha="center", transform=axis.transAxes, color="gray")
        return
    for number, curve in enumerate(curves):
        colour = _colour(number)
        for name, style in STYLES.items():
            axis.plot(*curve.measure(name), style, color=colour, linewidth=1.4, marker=".")
        tokens, low = curve.measure("low")
        axis.fill_between(tokens, low, curve.measure("high")[1], color=colour, alpha=0.12, lw=0)
        if curve.best is not None:
            best = 100 * curve.best["heldout"]["joint"]
            axis.plot([curve.best["tokens"]], [best], "*", color=colour, markersize=11)
    marks: list[Any] = [Line2D([], [], color="gray", linestyle=style) for style in STYLES.values()]
    marks.append(Line2D([], [], color="gray", linestyle="", marker="*", markersize=10))
    names = ["joint, 95% interval", *list(STYLES)[1:], "best"]
    axis.legend(marks, names, loc="lower right", framealpha=0.6)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]

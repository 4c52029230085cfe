"""A procedure drawn: as an outline for the terminal, and as SVG in layers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_path
from haggle.sop.definition import AGENT, START, USER, Definition

if TYPE_CHECKING:
    import networkx as nx

SWEEPS = 6  # over the layers, to uncross edges
LAYER, COLUMN = 0.85, 0.13  # inches: of a layer, and of a letter
KINDS = {
    "start": ("square,pad=0.35", "#e8e8e8"),
    "action": ("square,pad=0.35", "#dbe7f5"),
    "mandatory action": ("square,pad=0.35", "#9cc1ea"),
    "user state": ("round,pad=0.35,rounding_size=0.6", "#fdf3d8"),
    "success": ("square,pad=0.35", "#a9dca9"),
}
SETTINGS = {"figure.dpi": 72, "svg.fonttype": "none", "svg.hashsalt": "haggle", "font.size": 8}


def outline(task: Definition, ascii_only: bool = False) -> str:
    """The graph as lines of text; what stands for itself elsewhere is `...`."""
    import networkx as nx

    graph = task.graph.copy()
    for vertex in graph:
        notes = _notes(task, vertex)
        graph.nodes[vertex]["label"] = f"{vertex} ({', '.join(notes)})" if notes else vertex
    start = [AGENT + START] if AGENT + START in graph else None
    return "\n".join(nx.generate_network_text(graph, sources=start, ascii_only=ascii_only))


def _notes(task: Definition, vertex: str) -> list[str]:
    """What is special about a vertex."""
    notes = ["mandatory"] if vertex.removeprefix(AGENT) in task.mandatory else []
    notes += ["success"] if vertex in task.conversation_profile.success_mark else []
    needed = getattr(task, "evidence", {})
    return notes + (["evidence"] if vertex.removeprefix(USER) in needed else [])


def write_svg(task: Definition, path: Path) -> None:
    """Draw the graph in layers, from the start down. Raises HaggleError without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise HaggleError("matplotlib is not installed", hint="pip install matplotlib") from None

    places, width, depth = layout(task.graph)
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the measuring font lacks; a viewer has them
        figure = Figure(figsize=(max(4.0, width), LAYER * depth))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, max(4.0, width))
        axes.set_ylim(-depth + 0.5, 0.5)
        boxes = {vertex: _box(axes, task, vertex, at) for vertex, at in places.items()}
        figure.draw_without_rendering()  # gives boxes the size of their words
        for one, two in task.graph.edges:
            _arrow(axes, boxes[one], boxes[two], places[one], places[two])
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})


def _box(axes: Any, task: Definition, vertex: str, at: tuple[float, float]) -> Any:
    shape, colour = KINDS[_kind(task, vertex)]
    words = vertex.partition(".")[2]
    box = {"boxstyle": shape, "facecolor": colour, "edgecolor": "#555555", "linewidth": 0.8}
    return axes.text(*at, words, ha="center", va="center", bbox=box, zorder=3)


def _kind(task: Definition, vertex: str) -> str:
    if vertex in task.conversation_profile.success_mark:
        return "success"
    if vertex == AGENT + START:
        return "start"
    if vertex.startswith(USER):
        return "user state"
    return "mandatory action" if vertex.removeprefix(AGENT) in task.mandatory else "action"


def _arrow(axes: Any, one: Any, two: Any, start: Any, end: Any) -> None:
    """An arrow between two boxes. One that goes back, or past a layer, is bent."""
    layers = start[1] - end[1]
    outward = -1 if start[0] > end[0] else 1
    bend = 0.0 if layers == 1 else 0.35 if layers <= 0 else 0.22 * outward
    axes.annotate(
        "", xy=end, xytext=start, zorder=2 if bend else 1,
        arrowprops={
            "arrowstyle": "-|>", "mutation_scale": 10, "linewidth": 0.8,
            "color": "#b06a3b" if layers <= 0 else "#555555",
            "patchA": one.get_bbox_patch(), "patchB": two.get_bbox_patch(),
            "connectionstyle": f"arc3,rad={bend}",
        },
    )  # fmt: skip


def layout(graph: nx.DiGraph) -> tuple[dict[str, tuple[float, float]], float, int]:
    """Where each vertex stands (inches across, layers down as negative numbers), the width in
    inches and the number of layers."""
    layers = _layers(graph)
    for sweep in range(SWEEPS):
        _uncross(graph, layers, down=sweep % 2 == 0)
    sizes = [[COLUMN * _letters(v) + 0.45 for v in layer] for layer in layers]
    width = max(map(sum, sizes))
    places = {}
    for depth, (layer, wide) in enumerate(zip(layers, sizes, strict=True)):
        gap = (width - sum(wide)) / len(layer)
        across = 0.0
        for vertex, size in zip(layer, wide, strict=True):
            places[vertex] = (across + (gap + size) / 2, -float(depth))
            across += gap + size
    return places, width, len(layers)


def _letters(vertex: str) -> int:
    name = vertex.partition(".")[2]
    return sum(1 if letter.isascii() else 2 for letter in name)


def _layers(graph: nx.DiGraph) -> list[list[str]]:
    """Vertices by how far down they stand; edges that lead back to what dominates them aside."""
    import networkx as nx

    start = AGENT + START
    forward = graph.copy()
    if start in graph:
        before = nx.immediate_dominators(graph, start)
        for one, two in list(graph.edges):
            at: str | None = one
            while at is not None and at != two and at != start:
                at = before.get(at)
            if at == two:
                forward.remove_edge(one, two)
    if nx.is_directed_acyclic_graph(forward):
        return [list(layer) for layer in nx.topological_generations(forward)]
    reached = [list(layer) for layer in nx.bfs_layers(graph, [start])] if start in graph else []
    rest = [v for v in graph if all(v not in layer for layer in reached)]
    return [*reached, rest] if rest else reached


def _uncross(graph: nx.DiGraph, layers: list[list[str]], down: bool) -> None:
    """Order each layer by where the neighbours in the layers before it stand (barycentres)."""
    where = {v: n / len(layer) for layer in layers for n, v in enumerate(layer)}
    for layer in layers if down else reversed(layers):
        near = graph.predecessors if down else graph.successors
        mean = {v: _mean([where[n] for n in near(v)], where[v]) for v in layer}
        layer.sort(key=mean.__getitem__)
        where |= {v: n / len(layer) for n, v in enumerate(layer)}


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default

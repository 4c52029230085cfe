"""What a turn costs in shops of several sizes, from the first line of a talk to the last.

Reading a prompt and writing an answer are told apart, where the engine tells them. What is left of
a turn's seconds is the grammar, the requests to the engine and Haggle's own work.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from data_gen.worlds import sample_shop
from eval.serving import LINES, Tell, Timed, open_session, timed_turn
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError

MEASURED = ("prompt_tokens", "read_tokens", "made_tokens", "read_s", "write_s", "seconds")
PICTURE = (10.5, 7)  # inches
SPANS = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 30))


def size_and_length(
    engine: Engine, method: str, ask_below: float, sizes: Sequence[int], length: int, tell: Tell
) -> list[dict[str, Any]]:
    """Talk `length` turns in a shop of each size. Gives for each its `items`, its `turns` with what
    was measured of each, and how it `ended` before its length ("" where it did not).

    A talk that outgrows the engine's context ends there.
    """
    talks = []
    for size in sizes:
        shop = sample_shop(random.Random(size), "test", (size, size))
        session = open_session(shop.world, method)
        turns: list[dict[str, Any]] = []
        ended = ""
        for number in range(length):
            line = LINES[number % len(LINES)]
            try:
                turns.append(_measured(timed_turn(engine, "state", session, line, ask_below)[0]))
            except HaggleError as error:
                ended = f"after {number} of {length} turns: {error}"
                break
            tell(f"{size} items: turn {number + 1} of {length}")
        talks.append({"items": size, "turns": turns, "ended": ended})
    return talks


def _measured(turn: Timed) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in MEASURED}


def cost_rows(talks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians over the first turn, turns 2 to 5, and so on; None for what the engine does not tell.

    `token_ms` are the milliseconds of writing for a token of the answer.
    """
    rows = []
    for talk in talks:
        for low, high in SPANS:
            if some := talk["turns"][low - 1 : high]:
                span = {"turn": f"{low}-{high}" if high > low else "1", "turns": len(some)}
                medians = {name: statistics.median(t[name] for t in some) for name in MEASURED}
                shown = medians | {"token_ms": statistics.median(map(_token_ms, some))}
                rows.append(
                    {"items": talk["items"]} | span | {k: v or None for k, v in shown.items()}
                )
    return rows


def _token_ms(turn: dict[str, Any]) -> float:
    return 1000 * float(turn["write_s"]) / max(turn["made_tokens"], 1)


def draw_cost(figure: Any, talks: Sequence[dict[str, Any]]) -> None:
    """Four panels over the turns of a talk, a colour for each shop."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    (tokens, reading), (token, whole) = figure.subplots(2, 2)
    panels: tuple[tuple[Any, str, Callable[[dict[str, Any]], float], str], ...] = (
        (tokens, "prompt tokens (dotted) and those read anew", lambda t: t["read_tokens"], "-"),
        (tokens, "", lambda t: t["prompt_tokens"], ":"),
        (reading, "seconds of reading", lambda t: t["read_s"], "-"),
        (token, "milliseconds of writing for a token", _token_ms, "-"),
        (whole, "seconds of a turn", lambda t: t["seconds"], "-"),
    )
    for axis, title, value, style in panels:
        for number, talk in enumerate(talks):
            values = [value(turn) for turn in talk["turns"]]
            if any(values):  # else the engine does not tell it
                turns = range(1, len(values) + 1)
                label = f"{talk['items']} items"
                axis.plot(turns, values, style, color=f"C{number}", linewidth=1.2, label=label)
        if title:
            axis.set_title(title, loc="left")
            axis.set_xlabel("turn")
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    tokens.set_yscale("log")  # the first turn reads the whole prompt
    for numbers in (tokens.yaxis.set_major_formatter, tokens.yaxis.set_minor_formatter):
        numbers(ScalarFormatter())
    for axis in (reading, token, whole):
        axis.set_ylim(bottom=0)
    if talks:
        whole.legend()

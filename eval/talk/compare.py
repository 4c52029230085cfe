"""Two runs of conversations with the same goals, held against the first (`haggle eval compare`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.journal import METRICS, PREDICTIONS
from eval.talk.conversation import SETTING, kept_setting
from eval.talk.measures import TURN_RATES
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from haggle.rates import clustered_difference, clustered_rate, paired_difference, share

SHOWN = ("wrong", "harmful", "questions_answered", "relevant", "contradicts", "repeats_last")


def is_talk(path: Path) -> bool:
    """Whether a directory holds conversations."""
    marker = path / SETTING
    return marker.is_file() and read_json(marker).get("kind") == "talk"


def compare_talks(paths: Sequence[Path], names: Sequence[str]) -> dict[str, Any]:
    """Hold runs against the first, over the goals that all of them have played to an end.

    Gives `n` goals, `reference`, `left_out`, and for each of `runs` the rates with their intervals
    and `differences` from the reference, in pairs of the same goal. Raises HaggleError for runs
    that are not measured yet or had other goals.
    """
    settings = [kept_setting(path) for path in paths]
    for path, setting in zip(paths, settings, strict=True):
        if setting.goals != settings[0].goals:
            raise HaggleError(
                f"had other goals than {paths[0]}",
                where=str(path),
                hint="play the same --goals, or the same --world, --n and --seed",
            )
    runs = [_ended(path) for path in paths]
    ids = [name for name in runs[0] if all(name in run for run in runs)]
    if not ids:
        raise HaggleError("no goal was played by all the runs", where=str(paths[0]))
    judged = [name for name in ids if all(run[name]["reached"] is not None for run in runs)]
    return {
        "kind": "talk",
        "reference": names[0],
        "n": len(ids),
        "left_out": len(set().union(*runs)) - len(ids),
        "runs": [
            {"name": name, "model": setting.model, "guard": setting.guard}
            | _held(run, runs[0], ids, judged)
            for name, setting, run in zip(names, settings, runs, strict=True)
        ],
    }


def _ended(path: Path) -> dict[str, dict[str, Any]]:
    """The conversations of a run that are over, by goal."""
    if not (path / METRICS).is_file():
        raise HaggleError(
            "is not measured yet", where=str(path), hint=f"haggle eval talk report --out {path}"
        )
    return {r["id"]: r for r in read_jsonl(path / PREDICTIONS) if r["ended"]}


def _held(
    run: dict[str, Any], first: dict[str, Any], ids: Sequence[str], judged: Sequence[str]
) -> dict[str, Any]:
    goals = [[r[name]["reached"] for name in judged] for r in (run, first)]
    rates, differences = {"goals": share(goals[0])}, {"goals": paired_difference(*goals)}
    for measure in SHOWN:
        mine, theirs = ([TURN_RATES[measure](r[name]) for name in ids] for r in (run, first))
        rates[measure] = clustered_rate(mine)
        differences[measure] = clustered_difference(mine, theirs)
    return rates | {"differences": differences}

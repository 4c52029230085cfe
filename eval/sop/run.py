"""SOP prediction over a directory of tasks, in folds by task (PCA, 6.1: five).

haggle eval sop --tasks tasks --method order --out runs/sop
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from eval.journal import finish, keep, resume
from eval.sop.measures import TIMEOUT_S, compare
from eval.sop.planners import open_planner
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.rates import clustered_mean, harmonic_of_means, share
from haggle.sop.definition import Definition
from haggle.sop.folds import in_folds, load_definitions

__all__ = ["in_folds", "load_definitions", "run_plans", "score"]

FOLDS = 5


def run_plans(
    tasks: Mapping[str, Definition],
    method: str,
    out: Path,
    *,
    engine: Engine | None = None,
    constrained: bool = False,
    folds: int = FOLDS,
    seed: int = 0,
    timeout_s: float = TIMEOUT_S,
    progress: bool = True,
) -> dict[str, Any]:
    """Predict every task's procedure by a planner that saw the other folds; writes `metrics.json`
    and `predictions.jsonl` to `out`; resumes."""
    from rich.progress import track

    if not 2 <= folds <= len(tasks):
        raise HaggleError(f"{len(tasks)} tasks make no {folds} folds", where="--folds",
                          hint=f"choose 2 to {len(tasks)}")  # fmt: skip
    texts = "".join(name + task.model_dump_json() for name, task in tasks.items())
    about = {
        "method": method, "engine": engine.name if engine else "", "folds": folds, "seed": seed,
        "model": engine.model if engine else "", "constrained": constrained,
    }  # fmt: skip
    identity = about | {"timeout_s": timeout_s, "tasks": sha256(texts.encode()).hexdigest()}
    planner = open_planner(method, engine, constrained)
    done = resume(out, identity)
    groups = list(enumerate(in_folds(list(tasks), folds, seed)))
    work = [(fold, name) for fold, names in groups for name in names if name not in done]
    fitted = -1
    for fold, name in track(work, "tasks", disable=not progress or not work):
        if fold != fitted:
            held = {*groups[fold][1]}
            planner.fit([task for other, task in tasks.items() if other not in held])
            fitted = fold
        plan = planner.plan(tasks[name])
        likeness = compare(plan.adjacency_list, tasks[name].sop.adjacency_list, timeout_s)
        record = {"id": name, "fold": fold} | likeness.model_dump() | {"plan": plan.model_dump()}
        done[name] = record
        keep(out, record)
    records = [done[name] for name in tasks]
    metrics = score(records) | about
    finish(out, records, metrics)
    return metrics


def score(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over tasks, with 95% intervals from a bootstrap over tasks.

    `path_f1` is the harmonic mean of mean precision and mean recall, as the paper's figures are.
    `exact` are the tasks whose graph is right, the `bounded` ones those whose figure is a bound.
    """
    by_fold: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        by_fold.setdefault(record["fold"], []).append(record)
    return {
        "n": len(records),
        "path_precision": _mean(records, "precision"),
        "path_recall": _mean(records, "recall"),
        "path_f1": harmonic_of_means([(r["precision"], r["recall"]) for r in records]),
        "ged": _mean(records, "ged"),
        "gedr": _mean(records, "gedr"),
        "exact": share(record["ged"] == 0 for record in records),
        "valid_json": share(record["plan"]["valid"] for record in records),
        "ged_bounded": sum(record["ged_bounded"] for record in records),
        "paths_bounded": sum(record["paths_bounded"] for record in records),
        "path_f1_by_fold": [
            harmonic_of_means([(r["precision"], r["recall"]) for r in group])["value"]
            for _, group in sorted(by_fold.items())
        ],
    }


def _mean(records: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    return clustered_mean([[float(record[key])] for record in records])

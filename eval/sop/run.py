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
from eval.sop.published import published
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.rates import clustered_mean, harmonic_of_means, share
from haggle.sop.definition import Definition
from haggle.sop.folds import in_folds, load_definitions, three_ways

__all__ = ["in_folds", "load_definitions", "run_plans", "score"]

FOLDS = 5


def run_plans(
    tasks: Mapping[str, Definition],
    method: str,
    out: Path,
    *,
    engine: Engine | None = None,
    constrained: bool = False,
    folds: int | None = FOLDS,
    seed: int = 0,
    timeout_s: float = TIMEOUT_S,
    progress: bool = True,
) -> dict[str, Any]:
    """Predict every task's procedure by a planner that saw the other folds; writes `metrics.json`
    and `predictions.jsonl` to `out`; resumes. Without `folds` the test tasks of the paper's split
    are predicted, by a planner that saw those for training."""
    from rich.progress import track

    groups = _groups(list(tasks), folds, seed)
    texts = "".join(name + task.model_dump_json() for name, task in tasks.items())
    about = {
        "method": method, "engine": engine.name if engine else "", "folds": folds, "seed": seed,
        "model": engine.model if engine else "", "constrained": constrained,
    }  # fmt: skip
    identity = about | {"timeout_s": timeout_s, "tasks": sha256(texts.encode()).hexdigest()}
    planner = open_planner(method, engine, constrained)
    done = resume(out, identity)
    work = [
        (fold, name) for fold, (_, test) in enumerate(groups) for name in test if name not in done
    ]
    fitted = -1
    for fold, name in track(work, "tasks", disable=not progress or not work):
        if fold != fitted:
            planner.fit([tasks[other] for other in groups[fold][0]])
            fitted = fold
        plan = planner.plan(tasks[name])
        likeness = compare(plan.adjacency_list, tasks[name].sop.adjacency_list, timeout_s)
        record = {"id": name, "fold": fold} | likeness.model_dump() | {"plan": plan.model_dump()}
        done[name] = record
        keep(out, record)
    predicted = {name for _, test in groups for name in test}
    records = [done[name] for name in tasks if name in predicted]
    metrics = score(records) | about
    metrics["published"] = [row.model_dump() for row in published(method)]
    finish(out, records, metrics)
    return metrics


def _groups(
    names: Sequence[str], folds: int | None, seed: int
) -> list[tuple[list[str], list[str]]]:
    """The tasks to learn from and those to predict, once for each fold."""
    if folds is None:
        train, _, test = three_ways(names, 0)  # as the recipes split them, whatever the seed
        return [(train, test)]
    if not 2 <= folds <= len(names):
        raise HaggleError(f"{len(names)} tasks make no {folds} folds", where="--folds",
                          hint=f"choose 2 to {len(names)}")  # fmt: skip
    found = in_folds(names, folds, seed)
    return [([name for name in names if name not in held], held) for held in found]


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

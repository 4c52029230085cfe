"""Preference pairs from a model's own mistakes: the right answer against what it wrote instead.

    haggle eval turns --dataset runs/data/fresh --split train --n 2000 --out runs/turns/fresh
    haggle preferences --answers runs/turns/fresh --dataset runs/data/fresh --out runs/data/own

Unlike mistakes made on purpose (`data_gen.dataset.preferences`) these are the ones the model is
prone to. Rows have the same columns, so training takes both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from data_gen.dataset.preferences import put_in_place, said, write_pairs
from data_gen.language.phrasebook import Split
from eval.compare import AnsweredRun, read_answered
from eval.turns import turns_of
from haggle import __version__
from haggle.core.config import Record, claim_directory
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, write_json
from haggle.grammar.json_text import DecodeError, to_json
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCHEMA_VERSION
from haggle.trade.wire import decode_compact, encode_compact

KIND = "own"
SPLIT: Split = "train"


class _Claim(Record):
    """What a directory of pairs was made from: the same run may be answered anew."""

    answers: Path
    dataset: Path
    answered: str


def make_own_pairs(answers: Path, dataset: Path, out: Path) -> dict[str, Any]:
    """Write a pair for each wrong answer of a run of `haggle eval turns` under `out`; returns the
    summary written.

    `dataset` is what was asked, its train split: answers to test turns, and to hand-written cases,
    are not for training. A finished set is returned as it is. Raises HaggleError when the run is
    unfinished or was asked another data set, when `out` holds other pairs, or when no answer is
    wrong.
    """
    run = read_answered(answers, answers.name)
    rows = list(own_pairs(run, dataset))
    if not rows:
        raise HaggleError(
            f"all {len(run.records)} answers are right: there is nothing to learn from",
            where=str(answers),
            hint="answer more turns, or harder ones",
        )
    answered = sha256(to_json([row["rejected"] for row in rows]).encode()).hexdigest()
    claim = _Claim(answers=answers, dataset=dataset, answered=answered)
    claim_directory(out, claim, "pairs of other answers")
    if (out / "summary.json").exists():
        return dict(read_json(out / "summary.json"))
    parts = out / "unfinished"
    put_in_place({SPLIT: write_pairs(iter(rows), parts, SPLIT, len(rows))}, out)
    rmtree(parts)
    variants = Counter(row["variant"] for row in rows)
    summary = {
        "version": __version__,
        "answers": len(run.records),
        "splits": {SPLIT: {"pairs": len(rows), "variants": dict(sorted(variants.items()))}},
    }
    write_json(out / "summary.json", summary)
    return summary


def own_pairs(run: AnsweredRun, dataset: Path) -> Iterator[dict[str, Any]]:
    """The pairs of a run, in the order of the data set's turns."""
    if run.of_cases:
        raise HaggleError(
            "holds answers to cases, which are for measuring only",
            where=str(run.path),
            hint="answer turns of training data: haggle eval turns --split train",
        )
    missing = set(run.records)
    for turn in turns_of(dataset, SPLIT):
        record = run.records.get(turn["id"])
        if record is None:
            continue
        missing.discard(turn["id"])
        if any(record.get(name) != turn[name] for name in ("player", "right")):
            raise _other(run, dataset, f"{turn['id']!r} is another turn there")
        wrong = _mistakes(record)
        rejected = _rejected(turn["right"], record)
        if not wrong or rejected == turn["right"]:
            continue
        yield {
            "schema_version": SCHEMA_VERSION,
            "id": f"{turn['id']}/{KIND}",
            "kind": KIND,
            "variant": wrong[0],
            "act": turn["act"],
            "faults": wrong,
            "prompt": turn["messages"],
            "chosen": said(turn["right"]),
            "rejected": said(rejected),
        }
    if missing:
        raise _other(run, dataset, f"its split {SPLIT} has no turn {min(missing)!r}")


def _mistakes(record: dict[str, Any]) -> list[str]:
    """What of an answer is wrong, the most telling first; empty for a right one."""
    if not record["valid"]:
        return ["format"]
    return [name for name in ("state", "cart", "bid", "last") if record[name] is False]


def _rejected(right: str, record: dict[str, Any]) -> str:
    """The answer as the model gave it; in the right state, with the right answer's spoken line.

    So the two differ where the mistake is and nowhere else: by other words for the same thing a
    pair teaches nothing. What is no JSON stays as it is.
    """
    answer = str(record["answer"])
    if not record["valid"]:
        return answer
    procedure = load_procedure()
    try:
        wanted, given = (decode_compact(text, procedure) for text in (right, answer))
    except DecodeError:
        return answer
    if wanted.state != given.state:
        return answer
    return encode_compact(replace(given, say=wanted.say), procedure)


def _other(run: AnsweredRun, dataset: Path, why: str) -> HaggleError:
    return HaggleError(
        f"holds answers to other turns than those of {dataset}: {why}",
        where=str(run.path),
        hint="name the data set that `haggle eval turns --split train` was run with",
    )

"""The same turns answered by several models, files or engines: how do the answers differ?

    haggle eval compare runs/turns/merged runs/turns/Q8_0 runs/turns/Q4_0 --out compare.json

Reads what `haggle eval turns` or `haggle eval cases` wrote. The first run is the reference: for an
export that is the merged model in bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.journal import PROGRESS, RUN
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from haggle.grammar.json_text import DecodeError
from haggle.rates import paired_difference, rate, share
from haggle.trade.agreement import agreement
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.wire import Proposal, decode_compact
from haggle.trade.world import normalise

# What a turn's record must share with the others of its id to be the same turn.
ASKED = ("player", "right")
# In a run's identity: what it was asked, as a whole.
QUESTIONS = ("turns", "cases", "worlds")


@dataclass(frozen=True, slots=True)
class AnsweredRun:
    """A finished run: its name here, its answers by id, what it was asked and with what."""

    name: str
    path: Path
    records: dict[str, dict[str, Any]]
    identity: dict[str, Any]

    @property
    def of_cases(self) -> bool:
        """Whether it is a run of hand-written cases."""
        return any("turn" in record for record in self.records.values())


def compare_runs(paths: Sequence[Path]) -> dict[str, Any]:
    """Hold each run against the first, over the turns that all of them answered.

    Gives `n`, `reference`, `left_out` (turns that not all answered) and for each of `runs`: joint,
    state and (of turns) cart accuracy; `same_text` and `same_decision` with the reference;
    `differences` of joint and state from it, in pairs of the same turn; and the ids that differ.
    All rates carry 95% intervals. Carts are not paired: one where none is right counts as wrong,
    so the turns that have a cart differ. Raises HaggleError for runs that are unfinished or were
    asked different things.
    """
    runs = [read_answered(path, name) for path, name in zip(paths, run_names(paths), strict=True)]
    ids = common_turns(runs)
    first = runs[0]
    procedure = load_procedure()
    return {
        "reference": first.name,
        "kind": "cases" if first.of_cases else "turns",
        "n": len(ids),
        "left_out": len(set().union(*(run.records for run in runs))) - len(ids),
        "runs": [_held_against(first, run, ids, procedure) for run in runs],
    }


def run_names(paths: Sequence[Path]) -> list[str]:
    """The directories' names, with as much of the path before as tells them apart.

    Raises HaggleError for fewer than two directories, or one named twice.
    """
    if len(paths) < 2:
        raise HaggleError("needs two runs or more", where="eval compare")
    parts = [path.resolve().parts for path in paths]
    for path in paths:
        if sum(path.resolve() == other.resolve() for other in paths) > 1:
            raise HaggleError("is named twice", where=str(path))
    depth = 1
    while len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    return ["/".join(part[-depth:]) for part in parts]


def read_answered(path: Path, name: str) -> AnsweredRun:
    """What `haggle eval turns` or `eval cases` wrote to `path`.

    Raises HaggleError where that is not finished, or no answers are in it.
    """
    predictions, marker = path / "predictions.jsonl", path / RUN
    if not predictions.is_file():
        raise HaggleError(
            "holds no predictions.jsonl",
            where=str(path),
            hint="give the --out of `haggle eval turns` or `eval cases`; one broken off is "
            "finished by the same command",
        )
    if (path / PROGRESS).exists():
        raise HaggleError(
            "holds a run that is not finished", where=str(path), hint="finish it: same command"
        )
    records = read_jsonl(predictions)
    if not records or not all("joint" in r and "id" in r for r in records):
        raise HaggleError("holds no judged answers", where=str(predictions))
    identity = read_json(marker) if marker.is_file() else {}
    return AnsweredRun(name, path, {r["id"]: r for r in records}, identity)


def common_turns(runs: Sequence[AnsweredRun]) -> list[str]:
    """Ids that all runs answered, in the first's order. Raises HaggleError where they mean other
    turns."""
    first = runs[0]
    ids = [key for key in first.records if all(key in run.records for run in runs[1:])]
    for run in runs[1:]:
        if run.of_cases != first.of_cases or not any(key in first.records for key in run.records):
            raise _other(first, run, "they share no turn")
        for key in ids:
            mine, theirs = first.records[key], run.records[key]
            if any(mine.get(name) != theirs.get(name) for name in ASKED):
                raise _other(first, run, f"{key!r} is another turn there")
        if set(run.records) == set(first.records):
            for name in QUESTIONS:
                if first.identity.get(name) != run.identity.get(name):
                    raise _other(first, run, f"the {name} have the same ids, but other contents")
    if not ids:
        raise HaggleError(
            "no turn was answered by all the runs",
            where=", ".join(str(run.path) for run in runs),
            hint=_SAME,
        )
    return ids


_SAME = "run them with the same data set, split, --n and --seed, or with the same cases"


def _other(first: AnsweredRun, run: AnsweredRun, why: str) -> HaggleError:
    return HaggleError(
        f"was asked other things than {first.path}: {why}", where=str(run.path), hint=_SAME
    )


def _held_against(
    first: AnsweredRun, run: AnsweredRun, ids: Sequence[str], procedure: Procedure
) -> dict[str, Any]:
    pairs = [(key, first.records[key], run.records[key]) for key in ids]
    texts = [key for key, a, b in pairs if _text(a) != _text(b)]
    decisions = [key for key, a, b in pairs if not _same_decision(a, b, procedure)]
    mine, theirs = (_outcomes([of.records[key] for key in ids]) for of in (run, first))
    carts = [b.get("cart") for _, _, b in pairs] if not run.of_cases else []
    n = len(pairs)
    return {
        "name": run.name,
        "engine": run.identity.get("engine"),
        "model": run.identity.get("model"),
        "guard": run.identity.get("guard", "off"),
        **{name: share(right) for name, right in mine.items()},
        "cart": share(bool(right) for right in carts if right is not None),
        "same_text": rate(n - len(texts), n),
        "same_decision": rate(n - len(decisions), n),
        "differences": {name: paired_difference(mine[name], theirs[name]) for name in mine},
        "other_text": texts,
        "other_decision": decisions,
        "lost": [key for key, a, b in pairs if a["joint"] and not b["joint"]],
        "gained": [key for key, a, b in pairs if b["joint"] and not a["joint"]],
    }


def _outcomes(records: Sequence[dict[str, Any]]) -> dict[str, list[bool]]:
    """Of each turn whether it is right, by what is compared in pairs."""
    return {
        "joint": [bool(record["joint"]) for record in records],
        "state": [_state_right(record) for record in records],
    }


def _text(record: dict[str, Any]) -> str:
    """What the model itself wrote."""
    return str(record["answer"] if "answer" in record else record["turn"]["raw"])


def _state_right(record: dict[str, Any]) -> bool:
    if "failed" in record:
        return "state" not in record["failed"]
    return bool(record["state"])


def _same_decision(one: dict[str, Any], two: dict[str, Any], procedure: Procedure) -> bool:
    """Whether two answers come to the same, but for the spoken line.

    Of turns: state, cart, items shown and bid, as the model wrote them. Of cases: state, items and
    price as the player got them.
    """
    if "turn" in one:
        return _outcome(one) == _outcome(two)
    a, b = (_proposal(_text(record), procedure) for record in (one, two))
    if a is None or b is None:
        return a is b  # neither can be read: the same safe line
    verdict = agreement(_text(one), _text(two), str(one.get("note", "")), procedure)
    return verdict.joint and verdict.bid is not False and _shown(a) == _shown(b)


def _proposal(text: str, procedure: Procedure) -> Proposal | None:
    try:
        return decode_compact(text, procedure)
    except DecodeError:
        return None


def _shown(proposal: Proposal) -> list[str]:
    return [normalise(name) for name in proposal.show or ()]


def _outcome(record: dict[str, Any]) -> tuple[Any, ...]:
    details = record["response"].get("context_details") or {}
    return record["state"], record["cart"], details.get("sale_price")

"""Each turn of a data set answered with its true history: do the labels agree?

    haggle eval turns --dataset runs/data/default --split test --n 500 --out runs/turns

The guard is off and answers are greedy. Unlike whole dialogues, one error does not lead to others,
so hundreds of turns are measured in minutes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from eval.asking import asking_curve
from eval.journal import answered, finish
from haggle.agreement import agreement
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.episode import latest
from haggle.core.errors import HaggleError
from haggle.dataset import decisions, iter_rows
from haggle.grammar.json_text import DecodeError, to_json
from haggle.rates import percentiles, share
from haggle.trade.merchant import MAX_TOKENS
from haggle.trade.procedure import load_procedure
from haggle.trade.session import MAX_EXCHANGES
from haggle.trade.wire import UNLISTED, decode_compact

SPOKEN_KEY = '"say":'  # with the line in it, an answer's probability is not the decision's
GROUPS = ("act", "teacher", "voice", "scenario", "goal_state", "linked")


def turns_of(path: Path, split: str) -> Iterator[dict[str, Any]]:
    """Every turn of a split: the messages that serving would send, the right answer, labels.

    Of a long dialogue the oldest rounds are left out, as a session leaves them out.
    """
    for row in iter_rows(path, split):
        answers = decisions(row["messages"])
        messages = [{key: m[key] for key in ("role", "content")} for m in row["messages"]]
        texts = [message["content"] for message in messages]
        opening = answers[0] - 1 if answers else 0  # the system message, where there is one
        for number, (at, turn) in enumerate(zip(answers, row["turns"], strict=True), start=1):
            first = next(iter(latest(range(number - 1), MAX_EXCHANGES)), 0)
            yield {
                "id": f"{row['id']}/{number}",
                "messages": [
                    *messages[:opening],
                    *messages[answers[first] - 1 : at],
                ],
                "right": texts[at],
                "player": turn["player"],
                "act": turn["act"] or "none",
                "goal_state": turn["state"],
                "scenario": row["scenario"],
                "teacher": row.get("teacher") or "none",
                "voice": (row.get("player") or "none").rsplit("-", 1)[-1],
                "linked": _linked(texts[at - 1], texts[at]),
            }


def _linked(line: str, right: str) -> str:
    """Whether the user message has the names of all goods that the right cart needs: "yes", "no",
    or "none" where it needs none. What is called by another name has to be guessed."""
    try:
        proposal = decode_compact(right, load_procedure())
    except DecodeError:
        return "none"
    named = proposal.cart if proposal.change is None else proposal.change
    names = [name for name, _ in named or () if not name.startswith(UNLISTED)]
    return ("yes" if all(name in line for name in names) else "no") if names else "none"


def sample_turns(path: Path, split: str, n: int, seed: int) -> list[dict[str, Any]]:
    """`n` turns of a split drawn with equal chances (reservoir sampling), in their order.

    Raises HaggleError when the split has no turn.
    """
    rng = random.Random(seed)
    kept: list[tuple[int, dict[str, Any]]] = []
    for number, turn in enumerate(turns_of(path, split)):
        if len(kept) < n:
            kept.append((number, turn))
        elif (place := rng.randrange(number + 1)) < n:
            kept[place] = (number, turn)
    if not kept:
        raise HaggleError("holds no turn", where=str(path), hint="generate more dialogues")
    return [turn for _, turn in sorted(kept, key=lambda pair: pair[0])]


def run_turns(
    path: Path,
    engine: Engine,
    out: Path,
    *,
    split: str = "test",
    n: int = 500,
    seed: int = 0,
    batch: int = 8,
    served: float = 0.0,
    progress: bool = True,
) -> dict[str, Any]:
    """Answer a sample of turns; writes `metrics.json` and `predictions.jsonl` to `out`; resumes.

    `served` is the probability below which the model asks where it is served (`eval.asking`).
    `usage` in the metrics has tokens, cost and model versions of an engine behind an API.
    """
    turns = sample_turns(path, split, n, seed)
    by_id = {turn["id"]: turn for turn in turns}
    identity = {
        "engine": engine.name,
        "model": engine.model,
        "turns": sha256(to_json(turns).encode()).hexdigest(),
    }

    def ask(names: list[str]) -> Iterator[dict[str, Any]]:
        group = [by_id[name] for name in names]
        requests = [
            GenerationRequest(
                tuple(Message(m["role"], m["content"]) for m in t["messages"]),
                max_tokens=MAX_TOKENS,
                scored=SPOKEN_KEY not in t["right"],
            )
            for t in group
        ]
        return map(_prediction, group, engine.generate(requests))

    records, usage = answered(
        out, identity, engine, list(by_id), ask, what="turns", batch=batch, progress=progress
    )
    metrics = score(records)
    metrics["by"] = {
        group: {
            value: score([r for r in records if r[group] == value])
            for value in sorted({r[group] for r in records})
        }
        for group in GROUPS
    }
    if curve := asking_curve(records, served):
        metrics["asking"] = curve
    metrics["latency_s"] = percentiles([r["latency_s"] for r in records])
    metrics |= {"engine": engine.name, "model": engine.model, "guard": "off"}
    if usage:
        metrics["usage"] = usage
    finish(out, records, metrics)
    return metrics


def _prediction(turn: dict[str, Any], answer: Generation) -> dict[str, Any]:
    line = turn["messages"][-1]["content"]
    verdict = agreement(turn["right"], answer.text, line)
    return {
        **{key: turn[key] for key in ("id", "player", "right", *GROUPS)},
        "note": line.partition("\n")[0],
        "answer": answer.text,
        "joint": verdict.joint,
        **{"cart": None, "bid": None} | asdict(verdict),
        "probability": answer.probability,
        "latency_s": answer.latency_s,
        "completion_tokens": answer.completion_tokens,
    }


def score(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rates with intervals; cart and bid where the right answer carries one."""
    return {
        "n": len(records),
        "valid_json": share(r["valid"] for r in records),
        **{
            name: share(r[name] for r in records if r[name] is not None)
            for name in ("last", "state", "cart", "bid", "joint")
        },
    }

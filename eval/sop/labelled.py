"""Planners on labelled dialogues (PCA, 6.2): accuracy of actions, and BLEU of responses.

Every turn is asked with the true history. `haggle eval planner --labelled DIR` reads public
dialogues (PCA-D, JSON); `--made N` takes dialogues of our own characters that made no mistake.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

from data_gen.sop.labelled import Labelled, begun, taken
from data_gen.sop.source import played
from data_gen.sop.users import draw_user
from eval.journal import answered, finish
from eval.sop.published import published
from eval.together import Together
from haggle.core.config import install_hint
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import DecodeError, read_object, text_of
from haggle.planning.config import PlanConfig
from haggle.planning.planner import Planner, keeps_procedure
from haggle.rates import clustered_mean, clustered_rate, share
from haggle.sop.definition import AGENT
from haggle.sop.domain import Action, Talk
from haggle.sop.planning import SopProblem
from haggle.sop.task import Task

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def made(tasks: Sequence[Task], n: int, seed: int) -> list[Labelled]:
    """`n` dialogues of each of our tasks, of users from the test split with a character that makes
    no mistake."""
    return [_made(task, number, seed) for task in tasks for number in range(n)]


def _made(task: Task, number: int, seed: int) -> Labelled:
    rng = random.Random(f"labelled/{task.task}/{seed}/{number}")
    user, talk = draw_user(task, rng, "test"), Talk(task)
    turns = [
        (turn.player, Action(user=turn.user_state, act=turn.act, say=turn.says))
        for turn in played(user, talk, rng)
    ]
    return Labelled(id=f"{task.task}-{number}", task=task, turns=turns)


def run_labelled(
    dialogues: Sequence[Labelled],
    method: str,
    engine: Engine,
    out: Path,
    *,
    config: PlanConfig | None = None,
    constrained: bool = True,
    seed: int = 0,
    batch: int = 1,
    progress: bool = True,
) -> dict[str, Any]:
    """Plan every turn of some dialogues, `batch` of them side by side; writes `metrics.json` and
    `predictions.jsonl`; resumes."""
    config = config or PlanConfig()
    together = Together(engine)
    planner = Planner(method, SopProblem(keeps_procedure(method)), together, config, constrained)
    by_name = {one.id: one for one in dialogues}
    texts = "".join(one.model_dump_json() for one in dialogues)
    about = {
        "method": method, "engine": engine.name, "model": engine.model, "seed": seed,
        "constrained": constrained, "planning": config.model_dump(),
    }  # fmt: skip
    identity = about | {"dialogues": sha256(texts.encode()).hexdigest()}

    def play(group: list[str]) -> Iterator[dict[str, Any]]:
        def one(name: str) -> dict[str, Any]:
            with together.taking_part():
                return _planned(by_name[name], planner, seed)

        with ThreadPoolExecutor(len(group)) as pool:
            yield from pool.map(one, group)

    records, usage = answered(
        out, identity, engine, list(by_name), play, what="dialogues", batch=batch,
        progress=progress,
    )  # fmt: skip
    metrics = about | score(records)
    metrics["published"] = [row.model_dump() for row in published(method)]
    finish(out, records, metrics | ({"usage": usage} if usage else {}))
    return metrics


def _planned(one: Labelled, planner: Planner[Talk], seed: int) -> dict[str, Any]:
    """The plan of every turn of a dialogue, each behind the true turns before it."""
    talk = begun(one)
    turns = []
    for line, right in one.turns:
        plan = planner.plan(talk, line, seed)
        act = plan.choice.act if plan.choice else ""
        tokens = plan.cost.prompt_tokens + plan.cost.completion_tokens + plan.cost.thought_tokens
        turns.append({
            "player": line, "right": right.act, "act": act, "said": right.say,
            "says": _words(plan.text), "truth": right.user,
            "user_state": plan.choice.heard if plan.choice else "",
            "in_sop": AGENT + right.act in one.task.sop.vertex,
            "calls": plan.cost.calls, "tokens": tokens, "seconds": plan.cost.seconds,
        })  # fmt: skip
        taken(talk, line, right)
    return {"id": one.id, "task": one.task.task, "turns": turns}


def _words(text: str) -> str:
    try:
        return text_of(read_object(text), "say")
    except DecodeError:
        return ""


def score(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The paper's measures: accuracies of turns (T), SOP actions (C), proactive actions (P) and
    whole dialogues (D), with intervals from a bootstrap over dialogues, and BLEU-2/4 over all
    turns."""

    def correct(record: Mapping[str, Any], wanted: bool | None = None) -> list[bool]:
        turns = [t for t in record["turns"] if wanted is None or t["in_sop"] is wanted]
        return [turn["act"] == turn["right"] for turn in turns]

    turns = [turn for record in records for turn in record["turns"]]
    return {
        "dialogues": len(records),
        "turns": len(turns),
        "acc_t": clustered_rate([correct(record) for record in records]),
        "acc_c": clustered_rate([correct(record, True) for record in records]),
        "acc_p": clustered_rate([correct(record, False) for record in records]),
        "acc_d": share(all(correct(record)) for record in records),
        "user_state": clustered_rate(
            [[t["user_state"] == t["truth"] for t in r["turns"]] for r in records]
        ),
        **bleu([turn["says"] for turn in turns], [turn["said"] for turn in turns]),
        "per_turn": {
            key: clustered_mean([[float(t[key]) for t in r["turns"]] for r in records])
            for key in ("calls", "tokens", "seconds")
        },
    }


def bleu(said: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """BLEU over one- and two-, and over one- to four-word sequences, 0 to 100. Chinese is cut into
    characters. Raises HaggleError where sacrebleu is not installed."""
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise HaggleError("BLEU needs sacrebleu", hint=install_hint("data")) from None
    cut = "zh" if any(_CHINESE.search(text) for text in right) else "13a"
    return {
        f"bleu_{n}": float(
            BLEU(max_ngram_order=n, tokenize=cut).corpus_score(list(said), [list(right)]).score
        )
        for n in (2, 4)
    }

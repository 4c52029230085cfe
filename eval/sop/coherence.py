"""How coherent a planner's talks are, 0 to 1 (PCA, 6.3 and Table 6): a model judges, or people do.

haggle eval coherence --out runs/mcts --judge gemini_flash
haggle eval coherence --out runs/mcts --scores ours.jsonl
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field as Bounded

from eval.journal import METRICS, PREDICTIONS, answered, finish
from eval.judging import MAX_TOKENS, judge_name, judged
from haggle.core.config import Record, parse, read_text
from haggle.core.engine import Engine, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.core.storage import numbered_jsonl, read_jsonl
from haggle.core.text import clean_utterance, prompts
from haggle.grammar.json_text import to_json
from haggle.grammar.values import Field, Fields, Label, Spoken, Value
from haggle.rates import clustered_mean

PROMPTS = Path(__file__).parent / "prompts"
TEMPLATE = "coherence.jinja"
SCORES = ("0", "0.25", "0.5", "0.75", "1")
FOLDER = "coherence"
PEOPLE = "people"


class Score(Record):
    """What a person says of one talk."""

    id: str
    coherence: Annotated[float, Bounded(ge=0, le=1)]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CoherenceAnswer:
    """The answers that a judge may give."""

    def tree(self) -> Value:
        """A reason first, so that the score follows from it."""
        return Fields((Field("reason", Spoken()), Field("coherence", Label(SCORES))))


def judge_coherence(
    run: Path, engine: Engine, *, batch: int = 8, progress: bool = True
) -> dict[str, Any]:
    """Have a model score every talk of a finished run of `haggle eval planner`; writes the figures
    and scores under `coherence/` there; resumes. A talk that it gives no readable score, three
    times asked, is left out and counted (`unscored`)."""
    talks = _talks(run)
    name = judge_name(engine)
    identity = {
        "judge": name, "engine": engine.name, "model": engine.model,
        "talks": sha256(to_json(list(talks.values())).encode()).hexdigest(),
        "prompt": sha256(read_text(PROMPTS / TEMPLATE).encode()).hexdigest()[:16],
    }  # fmt: skip

    def ask(names: list[str]) -> Iterator[dict[str, Any]]:
        read = judged(engine, [_request(talks[one]) for one in names], CoherenceAnswer())
        for one, found in zip(names, read, strict=True):
            score = found and float(found["coherence"])
            yield {"id": one, "coherence": score, "reason": found["reason"] if found else ""}

    out = run / FOLDER / name
    records, usage = answered(
        out, identity, engine, list(talks), ask, what="talks", batch=batch, progress=progress
    )
    return _finished(out, name, records, len(talks), {"usage": usage} if usage else {})


def import_coherence(run: Path, file: Path) -> dict[str, Any]:
    """Take over people's scores of a run's talks, JSON Lines of `id` and `coherence`; several
    scores of a talk are averaged, talks without one are counted (`unscored`). All are taken, or
    none."""
    talks = _talks(run)
    scores: dict[str, list[Score]] = {}
    for number, data in numbered_jsonl(file):
        score = parse(data, Score, f"{file}:{number}")
        if score.id not in talks:
            hint = f"ids stand in {run / PREDICTIONS}"
            raise HaggleError(f"unknown talk {score.id!r}", where=f"{file}:{number}", hint=hint)
        scores.setdefault(score.id, []).append(score)
    if not scores:
        raise HaggleError("holds no scores", where=str(file))
    records = [
        {
            "id": name,
            "coherence": sum(score.coherence for score in found) / len(found),
            "reason": " ".join(filter(None, (score.reason for score in found))),
        }
        for name, found in scores.items()
    ]
    return _finished(run / FOLDER / PEOPLE, PEOPLE, records, len(talks), {})


def _finished(
    out: Path, judge: str, records: list[dict[str, Any]], talks: int, more: Mapping[str, Any]
) -> dict[str, Any]:
    """The mean over talks, with an interval over users: talks with the same user are alike."""
    users: dict[str, list[float]] = {}
    for record in records:
        if record["coherence"] is not None:
            user, _, _trial = record["id"].rpartition("/")
            users.setdefault(user, []).append(record["coherence"])
    metrics = {
        "judge": judge,
        "coherence": clustered_mean(users.values()),
        "unscored": talks - sum(map(len, users.values())),
        **more,
    }
    out.mkdir(parents=True, exist_ok=True)
    finish(out, records, metrics)
    return metrics


def _talks(run: Path) -> dict[str, Mapping[str, Any]]:
    """The talks of a finished run by id. Raises HaggleError where there are none."""
    path = run / PREDICTIONS
    found = list(read_jsonl(path)) if path.is_file() and (run / METRICS).is_file() else []
    if not found or not all("agent" in talk for talk in found):
        hint = (
            "name the --out of a finished `haggle eval planner` with simulated users, made by this "
        )
        raise HaggleError("holds no talks", where=str(run), hint=hint)
    return {talk["id"]: talk for talk in found}


def _request(talk: Mapping[str, Any]) -> GenerationRequest:
    turns = [{key: clean_utterance(t[key]) for key in ("player", "says")} for t in talk["turns"]]
    told = prompts(PROMPTS).get_template(TEMPLATE).render(agent=talk["agent"], turns=turns)
    return GenerationRequest(
        (Message("user", told.strip()),), CoherenceAnswer(), max_tokens=MAX_TOKENS
    )

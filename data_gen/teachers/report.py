"""What became of the answers of models: accepted, rejected by reason, tokens, cost, versions.

Every number in a report is a count, so that the reports of workers and of resumed runs add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from haggle.core.engine import Engine, Generation
from serving.engines.accounting import public_model, usage_of

Report = dict[str, Any]
REASONS = ("rejected", "given_up", "ended")


@dataclass
class RoleTally:
    """One role's answers. `turns` are lines or turns wanted, `answers` what was asked for them.

    `accepted` turns got a usable answer, `at_once` of them the first time. `rejected` counts
    answers by reason, `given_up` turns by what happened then, `ended` dialogues by how.
    """

    turns: int = 0
    answers: int = 0
    accepted: int = 0
    at_once: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    given_up: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)

    def answered(self, answer: Generation) -> None:
        """Count an answer and its tokens."""
        self.answers += 1
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self.thought_tokens += answer.thought_tokens

    def accept(self, attempt: int) -> None:
        """Count a turn as done at this attempt (from 0)."""
        self.accepted += 1
        self.at_once += attempt == 0

    def reject(self, reason: str) -> None:
        """Count an answer as rejected."""
        self.rejected[reason] += 1

    def add(self, other: RoleTally) -> None:
        """Take another tally in."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def as_dict(self) -> Report:
        """Plain numbers; reasons in alphabetical order."""
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
            if value or name not in REASONS
        }


@dataclass
class Tally:
    """The answers of a dialogue, or of many, by role; and what became of the dialogues."""

    roles: dict[str, RoleTally] = field(default_factory=dict)
    dialogues: Counter[str] = field(default_factory=Counter)

    def role(self, name: str) -> RoleTally:
        """The tally of a role."""
        return self.roles.setdefault(name, RoleTally())

    def add(self, other: Tally) -> None:
        """Take another tally in."""
        for name, tally in other.roles.items():
            self.role(name).add(tally)
        self.dialogues.update(other.dialogues)

    def as_dict(self) -> Report:
        """The report of these counts."""
        report: Report = {"dialogues": dict(sorted(self.dialogues.items()))}
        return report | {name: tally.as_dict() for name, tally in sorted(self.roles.items())}


def engine_report(engine: Engine) -> Report:
    """What an engine says of itself: model, and usage with cost and versions where it counts them.

    None values are left out, so that what remains can be added up.
    """
    return {"model": public_model(engine)} | usage_of(engine)


def readable(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A report as lines for people: what it is about, and the figure."""
    if not report:
        return
    for what, number in report.get("dialogues", {}).items():
        yield f"dialogues {what}", str(number)
    for role in ("teacher", "player", "rewriter"):
        if role in report:
            yield from _readable_role(role, report[role])
    for name, engine in report.get("engines", {}).items():
        yield from _readable_engine(name, engine)


def _readable_role(role: str, tally: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    turns, answers = tally.get("turns", 0), tally.get("answers", 0)
    yield f"{role}: turns accepted", _share(tally.get("accepted", 0), turns)
    yield f"{role}: at once", _share(tally.get("at_once", 0), turns)
    wrong = tally.get("rejected", {})
    yield f"{role}: answers rejected", _share(sum(wrong.values()), answers)
    for reason, number in sorted(wrong.items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"  {reason}", str(number)
    for kind in ("given_up", "ended"):
        for what, number in tally.get(kind, {}).items():
            yield f"{role}: {kind.replace('_', ' ')}, {what}", str(number)
    tokens = [tally.get(f"{kind}_tokens", 0) for kind in ("prompt", "completion", "thought")]
    yield f"{role}: tokens read, written, thought", ", ".join(f"{n:,}" for n in tokens)


def _readable_engine(name: str, engine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"engine {name}: model", str(engine.get("model", ""))
    if "cost" in engine:
        cost = f"{engine['cost']:.4f} {engine.get('currency', '')}".strip()
        yield f"engine {name}: cost", f"{cost} at prices of {engine.get('prices_as_of', '?')}"
    if "from_cache" in engine:
        yield (
            f"engine {name}: answers from the cache",
            _share(engine["from_cache"], engine.get("answers", 0)),
        )
    for version, number in engine.get("model_versions", {}).items():
        yield f"engine {name}: answered as {version}", str(number)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0"

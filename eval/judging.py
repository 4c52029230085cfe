"""Asking a model as a judge: one question each, in a form; what cannot be read is asked again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from data_gen.teachers.asking import Rejected, checked_ending, drive, until_accepted
from data_gen.teachers.report import RoleTally
from haggle.core.codec import ActionSpec, fits
from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.grammar.json_text import DecodeError, read_object

ATTEMPTS = 3
MAX_TOKENS = 240


def judge_name(engine: Engine) -> str:
    """A name for a model as a judge: what its engine calls it, fit for a folder."""
    return re.sub(r"[^\w.@+-]+", "-", engine.model.rsplit("/", 1)[-1]).strip("-.")[:80] or "judge"


def judged(
    engine: Engine, requests: Sequence[GenerationRequest], form: ActionSpec
) -> list[dict[str, Any] | None]:
    """The judge's answer to each request, as an object of the form; None where three attempts gave
    none."""

    def read(_: int, answer: Generation) -> dict[str, Any]:
        text = checked_ending(answer)
        try:
            data = read_object(text)
        except DecodeError as error:
            raise Rejected("format", str(error)) from None
        if not fits(form, text):
            raise Rejected("schema", "it did not have the fields and labels that were asked for")
        return data

    asking = until_accepted("judge", requests, read, ATTEMPTS, RoleTally())
    (found,) = drive([asking], lambda asks: engine.generate([ask.request for ask in asks]), width=1)
    return [found.get(number) for number in range(len(requests))]

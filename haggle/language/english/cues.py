"""The words by which code reads English, from `cues.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from haggle.core.config import Record, load_config


def _split(text: str) -> list[str]:
    return text.split()


def _places(texts: list[str]) -> dict[str, int]:
    return {word: place for place, text in enumerate(texts) for word in text.split()}


Words = Annotated[frozenset[str], BeforeValidator(_split)]
InOrder = Annotated[tuple[str, ...], BeforeValidator(_split)]
Places = Annotated[dict[str, int], BeforeValidator(_places)]


class Cues(Record):
    """The words of `cues.yaml`, which says what each list is for."""

    hollow: Words
    containers: Words
    measures: Words
    singular_in_f: InOrder
    singular_in_fe: InOrder
    joining: Words
    modal: Words
    doers: Words
    before_doers: Words
    modal_then: Words
    pronouns: Words
    before_verbs: Words
    noun_follows: Words
    objects: Words
    fillers: Words
    each_of: Words
    each: Words
    offering: Words
    times: Words
    joints: Words
    ordinals: Places
    last: Words
    ones: Words
    sized_ones: Words
    sizes: Places
    praise: Words
    pointing: Words
    such_ones: Words
    describing: Words
    compared: Words
    degrees: Words
    cheap: Words
    dear: Words
    better: Words
    priced: Words
    less: Words
    more: Words
    units: InOrder
    tens: InOrder
    scales: dict[str, int]
    fixed_numbers: dict[str, int]
    counting: dict[str, int]
    articles: Words
    packs: Words
    sets: Words
    handling: Words
    holding: Words
    mass: Words
    leading_on: Words
    currencies: Words
    pieces: Words
    paired: Words
    no_plurals: Words
    amounts: Words
    coins: Words
    directions: InOrder
    settling: list[str]
    setting_ends: list[str]
    of_them: InOrder
    by: Words
    only: Words
    twice: Words
    pairs: Words
    shared: Words
    half: Words
    wish: InOrder
    owning: InOrder
    parts: InOrder
    paying: InOrder
    denials: Words
    plain_no: Words
    denied_through: Words
    contractions: dict[str, str]
    dropped_g: InOrder
    titles: InOrder
    signs: dict[str, str]
    slang: dict[str, InOrder]
    notes: dict[str, int]
    adding: Words
    beside: Words
    common: Words


CUES = load_config(Path(__file__).with_name("cues.yaml"), Cues)

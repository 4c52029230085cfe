"""Evidence for a user state, read by code in the player's words and the user profile.

A task file says which words a state needs (`evidence`). At guard `state` a step behind such a state
is not taken without them, whatever a model takes the line for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import Field

from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.language.tokens import Token, asides, hidden_characters, tokens

FILE = Path(__file__).with_suffix(".yaml")
FormName = Literal["name", "shows", "says"]
Doubt = Literal["denial", "condition", "time", "others", "question"]
MAX_LINE = 500  # characters; what is longer is evidence of nothing

_SLOT = re.compile(r"\{([^\W\d][\w ]*?)(?:\.(first|last))?\}")
_SET = re.compile(r"(?<!\?)(?<!P)<([a-z]+)>")
_IS = {"it", "that", "this", "here", "there", "he", "she", "what", "who", "where", "name"}


class Evidence(Record):
    """What a line must say to be evidence of a user state.

    `words` are regular expressions over the line in canonical spelling (small letters, no
    punctuation but commas), one of which must be found. `{Key}` stands for a value of the user
    profile, `{Key.first}` and `{Key.last}` for its first and last word, `<agree>` for a set of
    words in `evidence.yaml`. `form` says how they must
    stand there: as the speaker's own `name`, as a thing that the speaker `shows` or hands over, or
    just so (`says`). `also` must be found in the same sentence, `never` nowhere in the line.
    `allows` names doubts that do not count here.
    """

    words: list[str] = Field(min_length=1)
    form: FormName = "says"
    also: list[str] = []
    never: list[str] = []
    allows: list[Doubt] = []


class Form(Record):
    """How words stand in a sentence."""

    open: str = ""
    after: str = ""
    bare: str = ""


class English(Record):
    """The words of `evidence.yaml`."""

    lead: str
    forms: dict[FormName, Form]
    manners: str
    doubts: dict[Doubt, str]
    pretence: str
    signs: str
    taken_back: str
    sets: dict[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a line is evidence; `doubt` has the words that keep it from being so."""

    holds: bool
    doubt: str = ""


@cache
def english() -> English:
    """The words of doubt and showing."""
    return load_config(FILE, English)


def read_evidence(line: str, wanted: Evidence, profile: Mapping[str, str]) -> Finding:
    """Whether a line is evidence of what is wanted."""
    words = english()
    if len(line) > MAX_LINE or hidden_characters(line) or re.search(words.signs, line):
        return Finding(False)
    sentences = list(_sentences(line))
    whole = " . ".join(sentences)
    for pattern in (words.pretence, *(filled(never, profile) for never in wanted.never)):
        if doubt := re.search(pattern, whole):
            return Finding(False, doubt[0])
    best = Finding(False)
    for number, sentence in enumerate(sentences):
        if not _says(sentence, wanted, profile):
            continue
        best = _doubted(sentence, wanted)
        for later in sentences[number + 1 :]:
            if best.holds and (back := re.match(words.taken_back, later)):
                best = Finding(False, back[0])
        if best.holds:
            return best
    return best


def _says(sentence: str, wanted: Evidence, profile: Mapping[str, str]) -> bool:
    """Whether the words stand in a sentence in their form."""
    words, form = english(), english().forms[wanted.form]
    also = [filled(pattern, profile) for pattern in wanted.also]
    if also and not any(re.search(rf"\b(?:{pattern})\b", sentence) for pattern in also):
        return False
    for pattern in wanted.words:
        said = rf"(?:{filled(pattern, profile)})\b{form.after}"
        forms = [rf"^{words.lead}{said}{form.bare}" if form.open else rf"\b{said}"]
        if form.open:
            forms.append(rf"(?:^|, |\band ){words.lead}{form.open} {said}")
        if any(re.search(each, sentence) for each in forms):
            return True
    return False


def _doubted(sentence: str, wanted: Evidence) -> Finding:
    words = english()
    plain = re.sub(words.manners, "", sentence)
    for kind, pattern in words.doubts.items():
        if kind not in wanted.allows and (doubt := re.search(pattern, plain)):
            return Finding(False, doubt[0])
    return Finding(True)


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line in canonical spelling; a question keeps its mark."""
    said: list[str] = []
    for before, token in pairwise([None, *asides(tokens(line, {}, ()))]):
        assert token is not None
        ends = token.kind == "stop" or token.text in {"?", "..."}
        said += [_written(token, before)] if not ends or token.text == "?" else []
        if ends and said:
            yield " ".join(said)
            said = []
    if said:
        yield " ".join(said)


def _written(token: Token, before: Token | None) -> str:
    """A word; the end of a name's `'s` as it was typed."""
    if token.shortened and token.text == "is" and before and before.text not in _IS:
        return "'s"
    return token.text if token.text in {":", "?"} else "," if token.kind == "comma" else token.text


def filled(pattern: str, profile: Mapping[str, str]) -> str:
    """A regular expression with its sets, and the user profile's values in its slots.

    Raises HaggleError for an unknown name.
    """

    def value(slot: re.Match[str]) -> str:
        if slot[1] not in profile:
            raise HaggleError(f"evidence: unknown slot {slot[0]}", hint=nearest(slot[1], profile))
        said = [token.text for token in tokens(profile[slot[1]], {}, ())]
        kept = {"first": said[:1], "last": said[-1:]}.get(slot[2] or "", said)
        return re.escape(" ".join(kept)).replace(r"\ ", " ")

    def words(name: re.Match[str]) -> str:
        sets = english().sets
        if name[1] not in sets:
            raise HaggleError(f"evidence: unknown set {name[0]}", hint=nearest(name[1], sets))
        return sets[name[1]]

    return _SET.sub(words, _SLOT.sub(value, pattern))


def check_evidence(wanted: Evidence, profile: Mapping[str, str]) -> None:
    """Raise HaggleError for an expression that cannot be read."""
    for pattern in (*wanted.words, *wanted.also, *wanted.never):
        try:
            re.compile(filled(pattern, profile))
        except re.error as error:
            raise HaggleError(f"evidence: {pattern!r} is no regular expression: {error}") from None

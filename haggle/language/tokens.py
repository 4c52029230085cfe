"""A line as words in canonical spelling: what people type, made comparable."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from haggle.language.chosen import CUES, DIGITS

Kind = Literal["word", "number", "sign", "stop", "comma"]

_TOKEN = re.compile(
    rf"(?P<number>{DIGITS})"
    r"|(?P<word>'?[^\W\d_]+(?:'[^\W\d_]+)*'?[0-9]*(?![^\W_]))"
    r"|(?P<comma>[:;]-?[)d](?!\w)|<3|\^\^|[\ufe0f\U0001f3fb-\U0001f3ff]|[,:~]|\s[-–—/]+\s|[–—]|--+)"
    r"|(?P<stop>[!;\n]+|\.(?!\.)|\.\.+)"
    r"|(?P<sign>\S)"
)
_SHORTENED = frozenset(CUES.contractions.values()) - CUES.denials
_SPOKEN_IN = re.compile(rf"([a-z]{{2,}}(?:{'|'.join(CUES.dropped_g)}))'")
_TIMES = re.compile(r"x\d+")
_STRETCHED = re.compile(r"(.)\1{2,}")
_APOSTROPHES = re.compile("[’´ʼ`‘]")
_TITLES = re.compile(rf"\b({'|'.join(CUES.titles)})\.(?=\s+\w)")  # no end of a sentence
NEGATIONS = CUES.denials | CUES.plain_no
LEAST_MENDED = 5  # letters of a word that may be misspelt by one


@dataclass(frozen=True, slots=True)
class Token:
    """One word in canonical spelling, and where it stands in the line as it was typed."""

    text: str
    kind: Kind
    start: int
    end: int
    aside: bool = False  # between asterisks or brackets: what is done, not said
    shortened: bool = False  # the end of a contraction, which no clause ends with: `it's`


def tokens(line: str, spellings: Mapping[str, str], known: Container[str]) -> list[Token]:
    """The words, numbers and signs of a line.

    `spellings` says what a word stands for; `known` are the words that need no mending. A word
    that is not known may be one of them with letters drawn out (`yesss`), or two letters swapped.
    """
    plain = _APOSTROPHES.sub("'", line.casefold())
    if len(plain) != len(line):  # a letter that casefolding spells out: places would not agree
        same = (c.lower() if len(c.lower()) == 1 else c for c in line)
        plain = _APOSTROPHES.sub("'", "".join(same))
    plain = _TITLES.sub(r"\1 ", re.sub(r"(?<=[a-z])-(?=[a-z])", " ", plain))
    found: list[Token] = []
    for match in _TOKEN.finditer(plain):
        kind = match.lastgroup
        assert kind is not None
        start, end = match.span()
        if _TIMES.fullmatch(match[0]):  # x3
            found.append(Token("x", "word", start, start + 1))
            found.append(Token(match[0][1:], "number", start + 1, end))
        elif kind == "word":
            said = _canonical(match[0], spellings, known)
            found += [Token(word, _kind(word), start, end) for word in said]
            if len(said) > 1 and "'" in match[0] and said[-1] in _SHORTENED:
                found[-1] = replace(found[-1], shortened=True)
        elif kind == "stop" and match[0].startswith(".."):
            found.append(Token("...", "sign", start, end))
        else:
            found.append(Token(match[0], kind, start, end))  # type: ignore[arg-type]
    return found


def _kind(word: str) -> Kind:
    return "number" if word.isdecimal() else "word"


def _canonical(
    typed: str, spellings: Mapping[str, str], known: Container[str], mend: bool = True
) -> list[str]:
    """The words that one typed word stands for."""
    if typed in spellings:
        return spellings[typed].split()
    if typed in known:
        return [typed]
    if typed.startswith("'") or (typed.endswith("'") and not _SPOKEN_IN.fullmatch(typed)):
        quoted = [part for part in re.split("(')", typed) if part]
        return [w for part in quoted for w in ([part] if part == "'" else
                _canonical(part, spellings, known))]  # fmt: skip
    if _SPOKEN_IN.fullmatch(typed):
        return _canonical(typed[:-1] + "g", spellings, known)
    for ending, full in CUES.contractions.items():
        if typed.endswith(ending) and len(typed) > len(ending):
            return [*_canonical(typed.removesuffix(ending), spellings, known, False), full]
    return _mended(typed, spellings, known) if mend else [typed]


def _mended(typed: str, spellings: Mapping[str, str], known: Container[str]) -> list[str]:
    if not typed.isascii():
        return [typed]
    if _STRETCHED.search(typed):
        for short in (_STRETCHED.sub(r"\1", typed), _STRETCHED.sub(r"\1\1", typed)):
            if short in spellings:
                return spellings[short].split()
            if short in known:
                return [short]
        typed = _STRETCHED.sub(r"\1", typed)
    return [typed]


def asides(found: Sequence[Token]) -> list[Token]:
    """The tokens with what stands between asterisks or brackets marked, as sentences of its own."""
    closing = {"*": "*", "(": ")"}
    marked: list[Token] = []
    at = 0
    while at < len(found):
        token = found[at]
        close = closing.get(token.text)
        end = next((i for i in range(at + 1, len(found)) if found[i].text == close), None)
        if close is None or end is None:
            marked.append(token)
            at += 1
            continue
        inside = [replace(t, aside=True) for t in found[at + 1 : end] if t.kind != "stop"]
        marked += [replace(token, kind="stop"), *inside, replace(found[end], kind="stop")]
        at = end + 1
    return marked


def slips(words: Collection[str]) -> dict[str, str]:
    """What may be meant by a word with two letters swapped, or one left out or doubled behind its
    first letter; what may be two words is none."""
    meant: dict[str, set[str]] = {}
    for word in words:
        places = range(1, len(word))
        wrong = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1]}
        if len(word) >= LEAST_MENDED:
            wrong |= {word[:i] + word[i + 1 :] for i in places}
            wrong |= {word[:i] + word[i] + word[i:] for i in range(len(word))}
        for slip in wrong - {word}:
            meant.setdefault(slip, set()).add(word)
    return {slip: found.pop() for slip, found in meant.items() if len(found) == 1}


def spoken(found: Iterable[Token]) -> Iterator[tuple[list[list[str]], bool]]:
    """The sentences of a line, each as its clauses' words, and whether it is asked."""
    clauses: list[list[str]] = [[]]
    for token in (*found, Token(".", "stop", 0, 0)):
        if token.kind == "comma":
            clauses.append([])
        elif token.kind == "stop" or token.text == "?":
            if any(clauses):
                yield [clause for clause in clauses if clause], token.text == "?"
            clauses = [[]]
        else:
            clauses[-1].append(token.text)


def affirmed(words: Sequence[str], phrases: Iterable[str]) -> bool:
    """Whether one of these phrases stands among the words of a clause, and no denial of it right
    before: not in `I never forget a face`, `I am not going to say goodbye`."""
    said = f" {' '.join(words)} "
    for phrase in phrases:
        before, found, _ = said.partition(f" {phrase} ")
        if found:
            led = before.split()
            while led and led[-1] in CUES.denied_through:
                led.pop()
            if not led or led[-1] not in CUES.denials:
                return True
    return False


def holds(words: Iterable[str], phrases: Iterable[str]) -> bool:
    """Whether one of these phrases stands among the words."""
    said = f" {' '.join(words)} "
    return any(f" {phrase} " in said for phrase in phrases)


_STRUCK = re.compile(r"~~|^\s*[>!]|\s!\w|^\W*--.*--\W*$")


def is_marked(line: str) -> bool:
    """Whether a line is quoted, struck out or negated by signs: `> yes`, `~~deal~~`, `!accept`."""
    return _STRUCK.search(line) is not None


def hidden_characters(line: str) -> bool:
    """Whether a line holds characters that cannot be seen, or that no keyboard types."""
    return any(unicodedata.category(c) in {"Cf", "Co", "Cn", "Cs"} and c != "\u200d" and
               c != "\ufe0f" for c in line)  # fmt: skip

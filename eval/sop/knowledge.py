"""What a character says that nobody told it: numbers and names from nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from haggle.grammar.json_text import to_json
from haggle.sop.task import Task

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SENTENCE = re.compile(r"(?:^|[.!?:;\"“”*]\s*)[^\w]*$")
_ALWAYS = {"i", "sir", "madam", "mr", "mrs", "ms", "miss"}


def invented(task: Task, said: Iterable[str], line: str) -> list[str]:
    """The numbers and proper names in a line that neither the task nor the talk has.

    A proper name is a capitalised word inside a sentence. The words of a task are its whole file;
    `said` is what the user said.
    """
    known = " ".join((to_json(task.model_dump(mode="json")), *said))
    words = {word.casefold() for word in _WORD.findall(known)} | _ALWAYS
    numbers = set(_NUMBER.findall(known))
    found = [number for number in _NUMBER.findall(line) if number not in numbers]
    for match in _WORD.finditer(line):
        word = match.group()
        first = _SENTENCE.search(line[: match.start()]) is not None
        bare = word.removesuffix("'s").casefold()
        if word[0].isupper() and not first and not {bare, word.casefold()} & words:
            found.append(word)
    return found

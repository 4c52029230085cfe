"""Preference pairs in tokens: what serving sends, and the two answers to it.

A data set of pairs is one that `haggle preferences` writes, or any with the columns `prompt`,
`chosen` and `rejected`, each a list of {role, content} (TRL's conversational preference form).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.text import is_outcome
from haggle.dataset import located_rows
from training.data import Tokenized, messages_in
from training.templates import Messages, encode, marked_template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

COLUMNS = ("prompt", "chosen", "rejected")


@dataclass(frozen=True, slots=True)
class TextPair:
    """A pair as read: the messages before the answer, and the two answers."""

    prompt: Messages
    chosen: str
    rejected: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair in token ids: the prompt up to its answer, each answer with its end of turn."""

    prompt: list[int]
    chosen: list[int]
    rejected: list[int]

    @property
    def length(self) -> int:
        """Tokens of the prompt with the longer answer."""
        return len(self.prompt) + max(len(self.chosen), len(self.rejected))

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and both answers."""
        return len(self.prompt) + len(self.chosen) + len(self.rejected)

    @property
    def supervised(self) -> int:
        """Tokens of both answers."""
        return len(self.chosen) + len(self.rejected)

    def answers(self) -> tuple[list[int], list[int]]:
        """The prompt with the right answer, and 1 where that is."""
        return self.prompt + self.chosen, [0] * len(self.prompt) + [1] * len(self.chosen)


def read_pairs(path: str | Path, limit: int | None = None) -> list[TextPair]:
    """Every train row of a data set of pairs, or the first `limit`.

    Raises HaggleError naming a bad row and its file.
    """
    rows = islice(located_rows(path, columns=COLUMNS), limit)
    pairs = [_checked_pair(row, where) for where, row in rows]
    if not pairs:
        raise HaggleError("dataset is empty", where=str(path), hint="make more pairs")
    return pairs


def _checked_pair(row: dict[str, Any], where: str) -> TextPair:
    """A row's pair. Raises HaggleError naming what is wrong with it."""
    prompt = messages_in(row, "prompt", where)
    if prompt[-1]["role"] != "user":
        raise HaggleError("'prompt' does not end with the player's message", where=where)
    answers = []
    for name in ("chosen", "rejected"):
        messages = messages_in(row, name, where)
        if [message["role"] for message in messages] != ["assistant"]:
            raise HaggleError(f"{name!r} is not one assistant message", where=where)
        answers.append(messages[0]["content"])
    chosen, rejected = answers
    if chosen == rejected:
        raise HaggleError("'chosen' and 'rejected' are the same", where=where)
    return TextPair(prompt, chosen, rejected)


def tokenize_pairs(
    pairs: Iterable[TextPair], tokenizer: PreTrainedTokenizerBase, *, max_length: int
) -> Tokenized[Pair]:
    """Tokenize pairs in the chat template that serving uses.

    Where a prompt and the longer of its answers exceed `max_length` tokens, the prompt's oldest
    rounds are left out one by one, as serving leaves them out of a long dialogue; the system
    message stays. What is too long even so is dropped.
    """
    template = marked_template(tokenizer)
    done: list[Pair] = []
    shortened = dropped = 0
    digest = hashlib.sha256()
    for text in pairs:
        for prompt in shorter_and_shorter(text.prompt):
            pair = encode_pair(prompt, text, tokenizer, template)
            if pair.length <= max_length:
                break
        else:
            dropped += 1
            continue
        shortened += prompt is not text.prompt
        done.append(pair)
        digest.update(repr((pair.prompt, pair.chosen, pair.rejected)).encode())
    if not done:
        raise HaggleError(
            f"no pair has its last round within max_length={max_length}", hint="raise max_length"
        )
    how = "without their oldest rounds"
    return Tokenized(done, shortened, dropped, digest.hexdigest(), "pairs", how)


def encode_pair(
    prompt: Messages, text: TextPair, tokenizer: PreTrainedTokenizerBase, template: str
) -> Pair:
    """The token ids of a pair, the prompt shortened or not.

    Raises HaggleError when the template writes the prompt otherwise before another answer.
    """
    before, chosen = _split(prompt, text.chosen, tokenizer, template)
    again, rejected = _split(prompt, text.rejected, tokenizer, template)
    if before != again:
        raise HaggleError(
            "the chat template writes a prompt differently before different answers",
            hint="use a base model of a known family (ChatML, Gemma, Llama 3)",
        )
    return Pair(before, chosen, rejected)


def _split(
    prompt: Messages, answer: str, tokenizer: PreTrainedTokenizerBase, template: str
) -> tuple[list[int], list[int]]:
    """Ids before the last answer, and those of the answer with its end of turn."""
    said = [*prompt, {"role": "assistant", "content": answer}]
    ids, mask = encode(said, tokenizer, template)
    end = len(mask) - mask[::-1].index(1)
    start = end
    while start and mask[start - 1]:
        start -= 1
    return ids[:start], ids[start:end]


def shorter_and_shorter(prompt: Messages) -> Iterator[Messages]:
    """The prompt, then without its oldest rounds, one more each time; the system message stays."""
    yield prompt
    first = 1 if prompt[0]["role"] == "system" else 0
    for start in range(first + 1, len(prompt)):
        if prompt[start]["role"] == "user" and not is_outcome(prompt[start]["content"]):
            yield [*prompt[:first], *prompt[start:]]


def to_pair_columns(pairs: Iterable[Pair]) -> dict[str, list[list[int]]]:
    """The columns of TRL's DPOTrainer: prompt_ids, chosen_ids, rejected_ids."""
    pairs = list(pairs)
    return {
        "prompt_ids": [pair.prompt for pair in pairs],
        "chosen_ids": [pair.chosen for pair in pairs],
        "rejected_ids": [pair.rejected for pair in pairs],
    }

"""The turns of a data set of dialogues: what serving sends, and the right answer to it.

A turn is all messages up to one of the player's; the answer behind it carries the labels that
rewards are told from. The data sets are those of supervised training (`training.data`).
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.dataset import decisions, located_rows
from haggle.grammar.json_text import DecodeError
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact
from haggle.weights.chat_template import tokenizer_family
from training.data import Tokenized, messages_in
from training.pairs import shorter_and_shorter
from training.templates import Messages, marked_template, serving_prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PRICED = re.compile(r"^(.+?) \d[\d.,]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TextTurn:
    """A turn as read: the messages before the answer, and the right answer."""

    prompt: Messages
    right: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn ready to be answered: the prompt's text and ids, the right answer's text and ids (with
    the end of turn), the names of the shop's items, and the user message that is answered."""

    text: str
    prompt: list[int]
    right: str
    answer: list[int]
    names: list[str]
    line: str

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt)

    @property
    def supervised(self) -> int:
        """Tokens of the right answer."""
        return len(self.answer)

    def answers(self) -> tuple[list[int], list[int]]:
        """The prompt with the right answer, and 1 where that is."""
        return self.prompt + self.answer, [0] * len(self.prompt) + [1] * len(self.answer)


def read_turns(path: str | Path, number: int | None = None, seed: int = 0) -> list[TextTurn]:
    """Every turn of the train rows, or `number` of them drawn with equal chances.

    Raises HaggleError naming file and row of a right answer that is none of the compact format, and
    for a data set without a turn.
    """
    rng = random.Random(seed)
    kept: list[TextTurn] = []
    seen = 0
    for where, row in located_rows(path, columns=["messages"]):
        for turn in turns_in(messages_in(row, "messages", where), where):
            seen += 1
            if number is None or len(kept) < number:
                kept.append(turn)
            elif (place := rng.randrange(seen)) < number:
                kept[place] = turn
    if not kept:
        raise HaggleError(
            "holds no turn: no player's message with an answer behind it",
            where=str(path),
            hint="make a dataset with `haggle generate`",
        )
    return kept


def turns_in(messages: Messages, where: str = "") -> list[TextTurn]:
    """The turns of one dialogue. Raises HaggleError for an answer that cannot be read."""
    procedure = load_procedure()
    turns = []
    for at in decisions(messages):
        right = messages[at]["content"]
        try:
            decode_compact(right, procedure)
        except DecodeError as error:
            raise HaggleError(
                f"messages[{at}] is no answer of the compact format: {error}",
                where=where,
                hint="rewards compare answers with it; generate with method astp-compact",
            ) from None
        turns.append(TextTurn(messages[:at], right))
    return turns


def item_names(prompt: Messages) -> list[str]:
    """The items of the shop, from the price list in the system message."""
    first = prompt[0]
    return _PRICED.findall(first["content"]) if first["role"] == "system" else []


def tokenize_turns(
    turns: Iterable[TextTurn],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    max_completion_length: int,
) -> Tokenized[Turn]:
    """Turns as serving would send them, byte for byte.

    Where a prompt and `max_completion_length` tokens exceed `max_length`, the prompt's oldest
    rounds are left out one by one; what is too long even so is dropped, and so is a turn whose
    right answer is longer than an answer may be. Raises HaggleError when nothing is left.
    """
    marked_template(tokenizer)  # raises where training and serving would differ
    family = tokenizer_family(tokenizer)
    done: list[Turn] = []
    shortened = dropped = longest = 0
    digest = hashlib.sha256()

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    for turn in turns:
        answer = [*ids(turn.right), end_of_turn(tokenizer)]
        longest = max(longest, len(answer))
        for messages in shorter_and_shorter(turn.prompt):
            text = serving_prompt(tokenizer, messages, family)
            prompt = ids(text)
            if len(prompt) + max_completion_length <= max_length:
                break
        else:
            dropped += 1
            continue
        if len(answer) > max_completion_length:
            dropped += 1
            continue
        shortened += messages is not turn.prompt
        line = messages[-1]["content"]
        done.append(Turn(text, prompt, turn.right, answer, item_names(messages), line))
        digest.update(repr((prompt, turn.right)).encode())
    if not done:
        raise HaggleError(
            f"no turn is left: the longest right answer has {longest} tokens and trainer."
            f"max_completion_length is {max_completion_length}, prompts have what that leaves of "
            f"max_length={max_length}",
            hint="raise trainer.max_completion_length, or max_length",
        )
    how = "without their oldest rounds"
    return Tokenized(done, shortened, dropped, digest.hexdigest(), "turns", how)


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that ends an answer: the family's, else the tokenizer's own end of text."""
    family = tokenizer_family(tokenizer)
    number = tokenizer.eos_token_id
    if family is not None:
        number = tokenizer.convert_tokens_to_ids(family.end.strip())
    assert isinstance(number, int)
    return number


def to_turn_columns(turns: Iterable[Turn]) -> dict[str, list[Any]]:
    """The columns of TRL's GRPOTrainer: prompt (text), and what the rewards are told."""
    turns = list(turns)
    return {
        "prompt": [turn.text for turn in turns],
        "right": [turn.right for turn in turns],
        "names": [turn.names for turn in turns],
        "line": [turn.line for turn in turns],
    }

"""Read dialogue datasets and turn them into token ids with a loss weight for each token.

A dataset is a directory of shards as `haggle generate` writes it, or one Parquet or JSON Lines
file (`haggle.dataset`). Each row has `messages`: a list of {role, content}; other columns are
left alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from haggle.core.errors import HaggleError
from haggle.dataset import located_rows
from training.templates import Messages, encode, marked_template

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
ROLES = ("system", "user", "assistant")
SPOKEN_KEY = '"say":"'
Overlong = Literal["cut", "drop"]


class Row(Protocol):
    """A row in tokens."""

    @property
    def tokens(self) -> int: ...
    @property
    def supervised(self) -> int: ...
    def answers(self) -> tuple[list[int], list[int]]:
        """Ids with a right answer among them, and 1 where they are the answer, else 0."""


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Tokenized(Generic[R]):
    """Rows ready to train on, and how many were shortened or dropped as too long."""

    rows: list[R]
    shortened: int
    dropped: int
    sha256: str
    name: str = "dialogues"
    how: str = "cut"

    @property
    def tokens(self) -> int:
        return sum(row.tokens for row in self.rows)

    @property
    def supervised(self) -> int:
        return sum(row.supervised for row in self.rows)

    def facts(self) -> dict[str, Any]:
        """What the run's resolved config says of the data."""
        return {
            "data_sha256": self.sha256,
            self.name: len(self.rows),
            "tokens": self.tokens,
            "supervised_tokens": self.supervised,
            "cut" if self.name == "dialogues" else "shortened": self.shortened,
            "dropped": self.dropped,
        }

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{len(self.rows):,} {self.name}, {self.tokens:,} tokens, {self.supervised:,} "
            f"supervised; {self.shortened} {self.how} and {self.dropped} dropped as too long"
        )


@dataclass(frozen=True, slots=True)
class Example:
    """One dialogue in tokens. `weights` is 0 where the model is not to learn, else above 0."""

    ids: list[int]
    weights: list[float]

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @property
    def supervised(self) -> int:
        return sum(weight > 0 for weight in self.weights)

    def answers(self) -> tuple[list[int], list[int]]:
        return self.ids, [int(weight > 0) for weight in self.weights]


def read_dialogues(path: str | Path, limit: int | None = None) -> list[Messages]:
    """The `messages` of every train row, or of the first `limit`.

    Raises HaggleError naming file and row of a bad one.
    """
    rows = islice(located_rows(path, columns=["messages"]), limit)
    dialogues = [_checked_messages(row, where) for where, row in rows]
    if not dialogues:
        raise HaggleError("dataset is empty", where=str(path), hint="generate more dialogues")
    return dialogues


def _checked_messages(row: dict[str, Any], where: str) -> Messages:
    """A row's `messages`, of roles and texts alone. Raises HaggleError naming what is wrong."""
    messages = messages_in(row, "messages", where)
    if not any(message["role"] == "assistant" for message in messages):
        raise HaggleError("no assistant message to learn from", where=where)
    return messages


def messages_in(row: dict[str, Any], name: str, where: str) -> Messages:
    """The messages in column `name` of a row. Raises HaggleError naming the first bad one."""
    messages = row.get(name)
    if not isinstance(messages, list) or not messages:
        raise HaggleError(
            f"{name!r} must be a list of {{role, content}}",
            where=where,
            hint="keys of the row: " + ", ".join(map(str, row)),
        )
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES or (role == "system" and index > 0):
            raise HaggleError(
                f"{name}[{index}].role is {role!r}",
                where=where,
                hint="use system (first only), user or assistant",
            )
        if not isinstance(message.get("content"), str):
            raise HaggleError(f"{name}[{index}].content is not a text", where=where)
        if message.get("weight", 1) not in (0, 1):
            raise HaggleError(f"{name}[{index}].weight is neither 0 nor 1", where=where)
    return [{key: m[key] for key in ("role", "content", "weight") if key in m} for m in messages]


def tokenize(
    dialogues: Sequence[Messages],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    overlong: Overlong = "cut",
    spoken_weight: float = 1.0,
) -> Tokenized[Example]:
    """Tokenize whole dialogues; each answer and its end of turn carry weight, all else none, nor do
    answers whose message has the weight 0.

    A dialogue above `max_length` tokens is cut behind its last answer that fits, or dropped.
    `spoken_weight` is the weight of the spoken line's tokens (the decision has 1).
    """
    template = marked_template(tokenizer)
    text_of = cache(lambda token: str(tokenizer.decode([token])))
    examples, cut, dropped = [], 0, 0
    digest = hashlib.sha256()
    for messages in dialogues:
        ids, mask = encode(messages, tokenizer, template)
        whole = list(mask)
        _leave_out(mask, messages)
        if len(ids) > max_length:
            keep = _last_whole_turn(whole, max_length) if overlong == "cut" else 0
            cut += bool(keep)
            ids, mask = ids[:keep], mask[:keep]
        if not any(mask):
            dropped += 1
            continue
        weights = [float(bit) for bit in mask]
        if spoken_weight != 1.0:
            _weigh_spoken(ids, weights, text_of, spoken_weight)
        examples.append(Example(ids, weights))
        digest.update(repr((ids, weights)).encode())
    if not examples:
        raise HaggleError(
            f"no dialogue has a whole turn within max_length={max_length}", hint="raise max_length"
        )
    return Tokenized(examples, cut, dropped, digest.hexdigest())


def _leave_out(mask: list[int], messages: Messages) -> None:
    """Take the marks off answers of weight 0. The marks come in runs, one for each answer."""
    at = 0
    for message in messages:
        if message["role"] != "assistant":
            continue
        start = mask.index(1, at)
        at = mask.index(0, start) if 0 in mask[start:] else len(mask)
        if not message.get("weight", 1):
            mask[start:at] = [0] * (at - start)


def _last_whole_turn(mask: Sequence[int], limit: int) -> int:
    """Length of the longest prefix within `limit` that ends with a whole answer; 0 if none."""
    for end in range(min(limit, len(mask)), 0, -1):
        if mask[end - 1] and (end == len(mask) or not mask[end]):
            return end
    return 0


def _weigh_spoken(
    ids: Sequence[int],
    weights: list[float],
    text_of: Callable[[int], str],
    spoken_weight: float,
) -> None:
    """Lower the weight between the spoken line's opening quote and the end of its answer."""
    start = 0
    while start < len(ids):
        if not weights[start]:
            start += 1
            continue
        end = start
        while end < len(ids) and weights[end]:
            end += 1
        pieces = [text_of(token) for token in ids[start:end]]
        opening = "".join(pieces).find(SPOKEN_KEY)
        if opening >= 0:
            position, inside_from = 0, opening + len(SPOKEN_KEY)
            # The closing brace and the end of turn stay at full weight: they end the answer.
            for offset, piece in enumerate(pieces[:-2]):
                if position >= inside_from:
                    weights[start + offset] = spoken_weight
                position += len(piece)
        start = end


@dataclass(frozen=True, slots=True)
class Collator:
    """Pads a batch on the right, so that causal attention needs no padding mask."""

    pad_id: int

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        import torch

        width = max(len(row["input_ids"]) for row in rows)
        ids = torch.full((len(rows), width), self.pad_id, dtype=torch.long)
        labels = torch.full((len(rows), width), IGNORED, dtype=torch.long)
        weights = torch.zeros((len(rows), width), dtype=torch.float32)
        for index, row in enumerate(rows):
            length = len(row["input_ids"])
            ids[index, :length] = torch.tensor(row["input_ids"])
            labels[index, :length] = torch.tensor(row["labels"])
            weights[index, :length] = torch.tensor(row["loss_weights"])
        return {"input_ids": ids, "labels": labels, "loss_weights": weights}


def to_columns(examples: Sequence[Example]) -> dict[str, list[Any]]:
    """The columns the trainer reads: input_ids, labels (-100 where ignored), loss_weights."""
    return {
        "input_ids": [example.ids for example in examples],
        "labels": [
            [t if w > 0 else IGNORED for t, w in zip(e.ids, e.weights, strict=True)]
            for e in examples
        ],
        "loss_weights": [example.weights for example in examples],
    }


class BucketSampler:
    """Row numbers in an order in which each run of `batch_size` rows has similar lengths.

    The order depends on seed and epoch alone, so a resumed run sees the same batches. The odd
    batch, if any, comes last, as the data loader cuts batches from the front.
    """

    POOL_BATCHES = 50

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths = list(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"{self.seed}/{self.epoch}")
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        odd = len(order) % self.batch_size
        tail = order[len(order) - odd :]
        order = order[: len(order) - odd]
        batches: list[list[int]] = []
        pool = self.batch_size * self.POOL_BATCHES
        for first in range(0, len(order), pool):
            part = sorted(order[first : first + pool], key=lambda row: self.lengths[row])
            batches += [part[i : i + self.batch_size] for i in range(0, len(part), self.batch_size)]
        rng.shuffle(batches)
        if tail:
            batches.append(tail)
        return (row for batch in batches for row in batch)

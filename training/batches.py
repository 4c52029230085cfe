"""An endless row of training batches, each made from its place alone.

Rows come in pools: fresh ones by number, and a share from fixed data sets. A pool is sorted by
length and cut into batches within a number of tokens, so that little is padding; then the batches
are shuffled. A batch's place is the number of its pool and its own in there, so a checkpoint needs
two numbers to go on with the very next batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import torch

from training.data import Example

FreshRows = Callable[[int], list[Example]]  # the fresh rows of a pool, by its number


@dataclass(frozen=True, slots=True)
class Place:
    """The next batch: `batch` of `pool`."""

    pool: int = 0
    batch: int = 0

    def record(self) -> dict[str, int]:
        """As a checkpoint holds it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Rows of a data set, `count` of them in each pool: all once in an order of their own before
    any comes again."""

    rows: Sequence[Example]
    count: int
    name: str

    def of_pool(self, pool: int, seed: int) -> list[Example]:
        """The rows that a pool takes."""
        places = range(pool * self.count, (pool + 1) * self.count)
        orders: dict[int, list[int]] = {}
        chosen = []
        for place in places:
            epoch, at = divmod(place, len(self.rows))
            if epoch not in orders:
                orders[epoch] = list(range(len(self.rows)))
                random.Random(f"{seed}/{self.name}/{epoch}").shuffle(orders[epoch])
            chosen.append(self.rows[orders[epoch][at]])
        return chosen


class BatchStream:
    """Batches one after the other, from `place` on."""

    def __init__(
        self, fresh: FreshRows, fixed: Sequence[Fixed], *, batch_tokens: int, seed: int
    ) -> None:
        self.fresh = fresh
        self.fixed = fixed
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.place = Place()
        self._batches: list[list[Example]] | None = None

    def go_to(self, place: Place) -> None:
        """Go on with the batch at `place`."""
        self.place, self._batches = place, None

    def next(self) -> list[Example]:
        """The rows of the next batch."""
        if self._batches is None:
            self._batches = self._pool(self.place.pool)
        rows = self._batches[self.place.batch]
        self.place = Place(self.place.pool, self.place.batch + 1)
        if self.place.batch == len(self._batches):
            self.go_to(Place(self.place.pool + 1))
        return rows

    def _pool(self, pool: int) -> list[list[Example]]:
        rows = list(self.fresh(pool))
        for fixed in self.fixed:
            rows += fixed.of_pool(pool, self.seed)
        batches = list(within(rows, self.batch_tokens))
        random.Random(f"{self.seed}/{pool}").shuffle(batches)
        return batches


def within(rows: Sequence[Example], tokens: int) -> Iterator[list[Example]]:
    """Rows in groups of similar length, each at most `tokens` with its padding (or one row)."""
    group: list[Example] = []
    for row in sorted(rows, key=lambda row: row.tokens, reverse=True):
        if group and (len(group) + 1) * group[0].tokens > tokens:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded on the right. `places` are the positions, counted through all rows, whose next
    token is learnt; `targets` these tokens, `weights` theirs in the loss.

    The places are found here, on the CPU: a mask on the GPU would make each pass wait for it.
    """

    ids: torch.Tensor
    places: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        parts = (self.ids, self.places, self.targets, self.weights)
        if device.type == "cuda":
            parts = tuple(part.pin_memory() for part in parts)  # type: ignore[assignment]
        return Batch(*(part.to(device, non_blocking=True) for part in parts))


def collate(rows: Sequence[Example], pad_id: int) -> Batch:
    """Rows as one batch. Causal attention never looks at padding on the right."""
    width = max(row.tokens for row in rows)
    ids = torch.full((len(rows), width), pad_id, dtype=torch.long)
    weights = torch.zeros((len(rows), width), dtype=torch.float32)
    for number, row in enumerate(rows):
        ids[number, : row.tokens] = torch.tensor(row.ids)
        weights[number, : row.tokens] = torch.tensor(row.weights)
    row_numbers, columns = torch.nonzero(weights[:, 1:], as_tuple=True)
    return Batch(
        ids,
        row_numbers * width + columns,
        ids[row_numbers, columns + 1],
        weights[row_numbers, columns + 1],
    )


def weight_of(rows: Sequence[Example]) -> float:
    """What the tokens of a batch weigh in the loss together."""
    return sum(sum(row.weights[1:]) for row in rows)

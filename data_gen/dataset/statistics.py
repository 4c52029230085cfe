"""What a data set holds, in figures: counts, coverage, lengths, variety, duplicates, token lengths.

    haggle stats runs/data/default --out runs/data/default

Rows are read one at a time. Memory grows with the numbers of different words, n-grams, lines and
shops (eight bytes each for all but words) and with the signatures of at most `MAX_COMPARED`
dialogues; everything else is counted or sampled, with the size of the sample beside the figure.
The same data set gives the same figures.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from data_gen.dataset.counting import Tally
from data_gen.dataset.lengths import TokenLengths, load_tokenizer, token_lengths
from data_gen.dataset.records import Comparison, HeldOut, Statistics
from haggle.core.config import read_mapping
from haggle.core.errors import HaggleError, nearest
from haggle.dataset import count_rows, dataset_splits, located_rows

CONFIG, SUMMARY = "config.resolved.yaml", "summary.json"
HINT = "make one with `haggle generate`"


def collect(
    path: Path,
    *,
    splits: Sequence[str] | None = None,
    limit: int | None = None,
    tokenizers: Sequence[str] = (),
    progress: bool = False,
) -> Statistics:
    """The statistics of a data set: of all its splits, or of `splits`.

    With `limit`, of that many dialogues a split, drawn at random but always the same. `tokenizers`
    are names or directories to measure lengths with. Raises HaggleError for a data set that is not
    there, is empty or cannot be read.
    """
    found = splits_of(path)
    loaded = {name: load_tokenizer(name) for name in tokenizers}  # a wrong name is told at once
    for name in splits or ():
        if name not in found:
            raise HaggleError(f"no split {name!r}", where=str(path), hint=nearest(name, found))
    tallies = {
        name: _tally(path, name, found[name], limit, progress)
        for name in (splits or found)
        if found[name]
    }
    if not tallies:
        raise HaggleError("data set is empty: no dialogue in it", where=str(path), hint=HINT)
    lengths: dict[str, list[TokenLengths]] = {name: [] for name in tallies}
    for label, tokenizer in loaded.items():
        for name, tally in tallies.items():
            lengths[name].append(token_lengths(label, tokenizer, tally.messages.kept))
    config, summary = path / CONFIG, path / SUMMARY
    return Statistics(
        name=path.resolve().stem if path.is_file() else path.resolve().name,
        config=read_mapping(config) if config.is_file() else None,
        report=read_mapping(summary).get("report") or None if summary.is_file() else None,
        splits={
            name: tally.statistics(found[name], lengths[name]) for name, tally in tallies.items()
        },
        held_out=_held_out(tallies),
    )


def compare(
    path: Path, baseline: Path, *, limit: int | None = None, progress: bool = False
) -> Comparison:
    """Two data sets at equal size: as many dialogues of each as the smaller one has (or `limit`).

    Compares the train split where both have one, else the first split of each.
    """
    ours, theirs = splits_of(path), splits_of(baseline)
    both = "train" in ours and "train" in theirs
    names = ("train", "train") if both else (next(iter(ours)), next(iter(theirs)))
    size = min(ours[names[0]], theirs[names[1]], *([limit] if limit else []))
    if not size:
        empty = path if not ours[names[0]] else baseline
        raise HaggleError("data set is empty: no dialogue in it", where=str(empty), hint=HINT)
    first, second = (
        collect(where, splits=[split], limit=size, progress=progress)
        for where, split in zip((path, baseline), names, strict=True)
    )
    return Comparison(
        names=(first.name, second.name),
        split=names[0],
        dialogues=size,
        ours=first.splits[names[0]],
        baseline=second.splits[names[1]],
    )


def splits_of(path: Path) -> dict[str, int]:
    """The splits of a data set with their numbers of dialogues. Raises HaggleError without any."""
    names = dataset_splits(path) or ["train"]  # reading `train` then says what is wrong
    return {name: count_rows(path, name) for name in names}


def _tally(path: Path, split: str, rows: int, limit: int | None, progress: bool) -> Tally:
    from rich.progress import track

    wanted = min(rows, limit) if limit else rows
    chosen = _chosen(located_rows(path, split), rows, wanted)
    tally = Tally()
    text = f"reading {split}"
    for where, row in track(chosen, text, total=wanted, disable=not progress, transient=True):
        tally.add(row, where)
    return tally


def _chosen(
    rows: Iterator[tuple[str, dict[str, Any]]], of: int, wanted: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """`wanted` of the `of` rows, each as likely as the others (Knuth's algorithm S)."""
    rng = random.Random(0)
    for index, row in enumerate(rows):
        if rng.random() * (of - index) < wanted:
            wanted -= 1
            yield row


def _held_out(tallies: dict[str, Tally]) -> HeldOut | None:
    """What test has in common with train; None without both."""
    if not {"train", "test"} <= set(tallies):
        return None
    train, test = tallies["train"], tallies["test"]
    lines = test.player.line_keys
    return HeldOut(
        shops=test.shops.shared_with(train.shops),
        genres=sorted(set(test.genres) & set(train.genres)),
        voices=sorted(set(test.voices) & set(train.voices)),
        player_lines=lines.shared_with(train.player.line_keys) / max(1, len(lines)),
        dialogues=test.dialogue_keys.shared_with(train.dialogue_keys),
        acts_in_test_only=sorted(set(test.acts) - set(train.acts)),
    )

"""Preference pairs: the right answer to a player's line against one with a mistake in it.

    haggle preferences --config configs/data/preferences.yaml --out runs/data/preferences

Turns come from a data set or straight from the generator. Each is played again in its shop, so that
every mistake is resolved and checked before it counts as one. Rows are in TRL's conversational
preference form. The same config gives the same bytes.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from data_gen.config import DataConfig, check, needs_compact
from data_gen.dataset.corruptions import KINDS, VARIANTS, Kind, Moment, Wrong, corrupt, faults
from data_gen.dataset.replayed import Told, generated, moments, stored
from data_gen.language.phrasebook import SPLITS, Split
from haggle import __version__
from haggle.core.config import Record, claim_directory, load_config, parse
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_path, read_json, write_json
from haggle.core.text import neutralise_markup
from haggle.dataset import dataset_files, shard_name
from haggle.trade.edits import shortened
from haggle.trade.records import SCHEMA_VERSION
from haggle.trade.wire import decode_compact, encode_compact

PATIENCE = 3000  # dialogues in a row without a usable turn, after which the generator gives up
Share = Annotated[float, Field(ge=0, le=1000)]
Row = dict[str, Any]


class PreferenceConfig(Record):
    """What pairs to make.

    `train` and `test` are numbers of pairs, `kinds` the shares of the kinds of mistakes (any
    scale; a kind left out or 0 is not made), `per_dialogue` how many pairs one dialogue gives at
    most, each of another kind, `shard` how many go into one file. Dialogues are those of the data
    set in the directory `dataset`, else made as `data` says (its `train`, `test`, `shard` and
    `corpus` do not matter).
    """

    train: Annotated[int, Field(ge=0, le=10_000_000)] = 4000
    test: Annotated[int, Field(ge=0, le=1_000_000)] = 400
    seed: Annotated[int, Field(ge=0)] = 0
    shard: Annotated[int, Field(ge=1, le=100_000)] = 5000
    per_dialogue: Annotated[int, Field(ge=1, le=len(KINDS))] = 3
    kinds: dict[Kind, Share] = dict.fromkeys(KINDS, 1.0)
    dataset: Path | None = None
    data: DataConfig = DataConfig()

    @field_validator("kinds")
    @classmethod
    def _some_kind_is_wanted(cls, kinds: dict[Kind, float]) -> dict[Kind, float]:
        if not any(kinds.values()):
            raise ValueError("no kind of mistake has a share above 0")
        return kinds

    def quotas(self, total: int) -> dict[Kind, int]:
        """How many pairs of each kind make up `total`."""
        whole = sum(self.kinds.values())
        exact = {kind: total * share / whole for kind, share in self.kinds.items()}
        quotas = {kind: int(number) for kind, number in exact.items()}
        by_rest = sorted(exact, key=lambda kind: (quotas[kind] - exact[kind], KINDS.index(kind)))
        for kind in by_rest[: total - sum(quotas.values())]:
            quotas[kind] += 1
        return quotas


def load_preference_config(path: str | Path, **changes: Any) -> PreferenceConfig:
    """A config with the values given (those not None) in place of the file's.

    Raises HaggleError naming file and field.
    """
    data = load_config(path, PreferenceConfig).model_dump()
    data |= {key: value for key, value in changes.items() if value is not None}
    return parse(data, PreferenceConfig, "options" if changes else str(path))


@dataclass
class Tally:
    """What was made of a split, and what could not be."""

    pairs: Counter[str] = field(default_factory=Counter)
    variants: Counter[str] = field(default_factory=Counter)
    dialogues: int = 0
    unfit: int = 0  # turns whose own answer is not free of faults

    def summary(self, quotas: dict[Kind, int]) -> dict[str, Any]:
        """Counts; `short` says which kinds found too few occasions, and by how many pairs."""
        short = {kind: n - self.pairs[kind] for kind, n in quotas.items() if n > self.pairs[kind]}
        return {
            "pairs": self.pairs.total(),
            "kinds": dict(sorted(self.pairs.items())),
            "variants": dict(sorted(self.variants.items())),
            "dialogues": self.dialogues,
            "unfit_turns": self.unfit,
            "short": short,
        }


def make_preferences(
    config: PreferenceConfig, out: Path, *, progress: bool = True
) -> dict[str, Any]:
    """Write `train` and `test` pairs as Parquet shards under `out`; returns the summary written.

    A finished set is returned as it is; a run broken off starts over. Raises HaggleError when
    `out` holds pairs of another config, when nothing is asked for, or when no pair can be made.
    """
    if config.train + config.test == 0:
        raise HaggleError("nothing to make", hint="set train or test above 0 (or --n)")
    if config.dataset is None:
        check(config.data.model_copy(update={"train": 1}))
        if not config.data.scripted:
            raise HaggleError(
                "pairs from a model's dialogues need the finished data set",
                hint="make it with `haggle generate`, then name its directory as `dataset`",
            )
        needs_compact(config.data.method, "data.method")
    else:
        for split, count in (("train", config.train), ("test", config.test)):
            if count:  # told before anything is written to `out`
                dataset_files(config.dataset, split)
    claim_directory(out, config, "pairs of another config")
    if (out / "summary.json").exists():
        return dict(read_json(out / "summary.json"))
    started = time.perf_counter()
    parts = out / "unfinished"
    shutil.rmtree(parts, ignore_errors=True)
    splits: dict[str, Any] = {}
    finished: dict[Split, list[Path]] = {}
    with _bar(config.train + config.test, progress) as advance:
        for split, number in zip(SPLITS, (config.train, config.test), strict=True):
            if not number:
                continue
            tally = Tally()
            rows = _advancing(pairs(config, split, number, tally), advance)
            finished[split] = write_pairs(rows, parts, split, config.shard)
            splits[split] = tally.summary(config.quotas(number))
    if not any(finished.values()):
        raise HaggleError(
            "no turn gave occasion for the mistakes asked for",
            where=str(config.dataset or "data"),
            hint="give other `kinds`, or more dialogues",
        )
    put_in_place(finished, out)
    shutil.rmtree(parts, ignore_errors=True)
    summary = {
        "version": __version__,
        "config": config.model_dump(mode="json"),
        "splits": splits,
        "seconds": round(time.perf_counter() - started, 3),
    }
    write_json(out / "summary.json", summary)
    return summary


def pairs(
    config: PreferenceConfig, split: Split, number: int, tally: Tally | None = None
) -> Iterator[Row]:
    """Up to `number` pairs of a split, kinds in the shares asked for as far as turns allow.

    A kind's number is spread evenly over its variants; what some of them leave open is made up by
    the others in a second pass. A pass ends with the data set, or when the generator's dialogues
    offer nothing more.
    """
    tally = tally if tally is not None else Tally()
    quotas = config.quotas(number)
    given: Counter[str] = Counter()  # pairs by dialogue
    made: set[str] = set()
    for even in (True, False):
        idle = 0
        source = stored(config.dataset, split) if config.dataset else generated(config.data, split)
        for told in source:
            wanted = _wanted(quotas, tally, even)
            if not wanted or (config.dataset is None and idle == PATIENCE):
                break
            room = config.per_dialogue - given[told.id]
            chosen = _choose(told, wanted, quotas, tally, config.seed, made)[:room]
            tally.dialogues += even
            idle = 0 if chosen else idle + 1
            for row in chosen:
                given[told.id] += 1
                made.add(row["id"])
                tally.pairs[row["kind"]] += 1
                tally.variants[f"{row['kind']}/{row['variant']}"] += 1
                yield row


def _wanted(quotas: dict[Kind, int], tally: Tally, even: bool) -> dict[Kind, list[str]]:
    """The kinds still wanted, each with the variants that may be taken for it."""
    wanted: dict[Kind, list[str]] = {}
    for kind, quota in quotas.items():
        if tally.pairs[kind] < quota:
            most = -(-quota // len(VARIANTS[kind])) if even else quota
            free = [v for v in VARIANTS[kind] if tally.variants[f"{kind}/{v}"] < most]
            if free:
                wanted[kind] = free
    return wanted


def _choose(
    told: Told,
    wanted: dict[Kind, list[str]],
    quotas: dict[Kind, int],
    tally: Tally,
    seed: int,
    made: set[str],
) -> list[Row]:
    """A pair of each kind wanted that a dialogue allows, those that lag behind most first."""
    rng = random.Random(f"{seed}/{told.id}")
    found: dict[Kind, list[Row]] = {}
    for index, moment in enumerate(moments(told)):
        if moment is None:
            tally.unfit += 1
            continue
        prompt: list[dict[str, str]] = []
        for kind, variants in wanted.items():
            identifier = f"{told.id}/{index}/{kind}"
            if identifier in made:
                continue
            for wrong in corrupt(moment, kind, rng, variants):
                prompt = prompt or _prompt(moment)
                row = {"id": identifier, "kind": kind, "prompt": prompt, **_answers(moment, wrong)}
                found.setdefault(kind, []).append(row)

    def rarity(row: Row) -> int:
        return tally.variants[f"{row['kind']}/{row['variant']}"]

    chosen = []
    for kind in sorted(found, key=lambda kind: (tally.pairs[kind] / quotas[kind], kind)):
        least = min(map(rarity, found[kind]))
        chosen.append(rng.choice([row for row in found[kind] if rarity(row) == least]))
    return chosen


def _prompt(moment: Moment) -> list[dict[str, str]]:
    """The messages up to the player's line, as serving sends them."""
    return [asdict(message) for message in moment.session.messages(moment.utterance)]


def _answers(moment: Moment, wrong: Wrong) -> Row:
    """The two answers to a turn, and what tells them apart."""
    session = moment.session
    variant, proposal = wrong
    right = moment.told or shortened(session, moment.utterance, moment.right)
    if proposal.cart == moment.right.cart:  # told in the same way
        proposal = replace(proposal, cart=right.cart, change=right.change)
    else:
        proposal = shortened(session, moment.utterance, proposal)
    text = encode_compact(proposal, session.procedure)
    assert decode_compact(text, session.procedure) == proposal, text
    return {
        "schema_version": SCHEMA_VERSION,
        "variant": variant,
        "act": moment.act,
        "faults": faults(session, proposal, moment.goal),
        "chosen": said(encode_compact(right, session.procedure)),
        "rejected": said(text),
    }


def said(answer: str) -> list[dict[str, str]]:
    """An answer as a column of a pair holds it."""
    return [{"role": "assistant", "content": neutralise_markup(answer)}]


def write_pairs(rows: Iterator[Row], folder: Path, split: Split, size: int) -> list[Path]:
    """Write rows as Parquet files of `size` rows each to `folder`; returns them in order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    layout = schema()
    paths: list[Path] = []
    while batch := list(islice(rows, size)):
        path = folder / f"{split}-{len(paths):05d}.parquet"
        with atomic_path(path) as temporary:
            pq.write_table(pa.Table.from_pylist(batch, layout), temporary, compression="zstd")
        paths.append(path)
    return paths


def put_in_place(written: Mapping[Split, Sequence[Path]], out: Path) -> None:
    """Give finished files the names of shards in `out`, where a data set is read from."""
    for split, parts in written.items():
        for index, part in enumerate(parts):
            part.replace(out / shard_name(split, index, len(parts)))


def schema() -> Any:
    """The columns of a set of pairs (Arrow)."""
    import pyarrow as pa

    text = pa.string()
    messages = pa.list_(pa.struct([("role", text), ("content", text)]))
    labels = [(name, text) for name in ("id", "kind", "variant", "act")]
    return pa.schema(
        [
            ("schema_version", pa.int64()), *labels, ("faults", pa.list_(text)),
            ("prompt", messages), ("chosen", messages), ("rejected", messages),
        ]
    )  # fmt: skip


@contextmanager
def _bar(total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar; yields what to call with the number of pairs made."""
    from rich.progress import Progress

    with Progress(disable=not shown) as progress:
        task = progress.add_task("pairs", total=total)
        yield lambda made: progress.advance(task, made)


def _advancing(rows: Iterator[Row], advance: Callable[[int], None]) -> Iterator[Row]:
    for row in rows:
        advance(1)
        yield row

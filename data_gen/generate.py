"""Write a labelled data set: scripted players, the oracle merchant, random worlds.

    haggle generate --config configs/data/demo.yaml --out runs/data

Rows are whole dialogues. The same seed gives the same bytes; an interrupted run resumes.
"""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from data_gen.corpus_io import corpus_rows
from data_gen.phrasebook import Split
from data_gen.play import Play, play_oracle, start_play
from data_gen.worlds import sample_shop
from haggle import __version__
from haggle.config import Record, claim_directory, load_config, parse
from haggle.errors import HaggleError
from haggle.merchant import Merchant
from haggle.methods import DEFAULT_METHOD, get_method
from haggle.records import SCENARIOS, SCHEMA_VERSION, Dialogue
from haggle.scripted import NullEngine
from haggle.storage import (
    atomic_path,
    dumps,
    read_jsonl,
    write_json,
    write_jsonl,
)

PART = 250


class DataConfig(Record):
    """What to generate. `items` bounds how many items a shop sells, `invented` the share of names
    with a made-up word, `recommendation` the share of scenario 2, `corpus` how many times the
    hand-written dialogues of a split go in."""

    train: Annotated[int, Field(ge=0, le=10_000_000)] = 1000
    test: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    seed: Annotated[int, Field(ge=0)] = 0
    items: tuple[int, int] = (4, 14)
    invented: Annotated[float, Field(ge=0, le=1)] = 0.2
    recommendation: Annotated[float, Field(ge=0, le=1)] = 0.4
    corpus: Annotated[int, Field(ge=0, le=100)] = 0
    method: str = DEFAULT_METHOD


def load_data_config(path: str | Path) -> DataConfig:
    """A data config. Raises HaggleError naming file and field."""
    return load_config(path, DataConfig)


def override(path: str | Path, **changes: Any) -> DataConfig:
    """A data config with the values given (those not None) in place of the file's."""
    data = load_data_config(path).model_dump()
    data |= {key: value for key, value in changes.items() if value is not None}
    return parse(data, DataConfig, "options")


def make_dialogue(config: DataConfig, split: Split, index: int) -> tuple[Play, Dialogue]:
    """The dialogue number `index` of a split; depends on nothing but the config and the number."""
    rng = random.Random(f"{config.seed}/{split}/{index}")
    shop = sample_shop(rng, split, config.items, config.invented)
    scenario = SCENARIOS[1] if rng.random() < config.recommendation else SCENARIOS[0]
    seed = rng.randrange(2**31)
    play = start_play(shop, scenario, seed, split, get_method(config.method), f"{split}-{index}-")
    merchant = Merchant(NullEngine(), "state")
    dialogue = play_oracle(play, merchant)
    for turn in dialogue.turns:
        if turn.failed or turn.interventions or turn.state != turn.goal_state:
            raise AssertionError(f"{dialogue.id}: oracle turn fails {turn.failed} {turn.act}")
    return play, dialogue


def to_row(play: Play, dialogue: Dialogue) -> dict[str, Any]:
    """One row of the data set: the chat messages to train on and the labels beside them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "id": dialogue.id,
        "seed": dialogue.seed,
        "scenario": dialogue.scenario,
        "world": dialogue.world,
        "method": dialogue.method,
        "messages": [asdict(message) for message in play.all_messages()],
        "turns": [
            {
                "player": turn.player,
                "act": turn.act,
                "last": turn.last,
                "state": turn.state,
                "cart": dumps(turn.cart),
                "npc_dialogue": turn.response.npc_dialogue,
            }
            for turn in dialogue.turns
        ],
    }


def generate(config: DataConfig, out: Path, *, progress: bool = True) -> dict[str, Any]:
    """Write `train` and `test` as JSONL and Parquet under `out`; returns the summary written.

    Finished parts are kept, so a killed run goes on where it stopped. Raises HaggleError when `out`
    holds data of another config, or when nothing is asked for.
    """
    if config.train + config.test + config.corpus == 0:
        raise HaggleError("nothing to generate", hint="set train or test above 0 (or --n)")
    if config.items[0] > config.items[1] or config.items[0] < 1:
        raise HaggleError(f"items {list(config.items)} is no range", hint="e.g. items: [4, 14]")
    claim_directory(out, config, "data of another config")
    started = time.perf_counter()
    made = 0
    counts: dict[str, Any] = {}
    for split, number in (("train", config.train), ("test", config.test)):
        made += _write_parts(config, split, number, out / "parts", progress)  # type: ignore[arg-type]
        made += _write_corpus(config, split, out)  # type: ignore[arg-type]
        if number or config.corpus:
            counts[split] = _join(out, split)
    shutil.rmtree(out / "parts", ignore_errors=True)
    seconds = time.perf_counter() - started
    summary = {
        "version": __version__,
        "config": config.model_dump(mode="json"),
        "splits": counts,
        "made_now": made,
        "seconds": round(seconds, 3),
        "dialogues_per_second": round(made / seconds, 1) if made else None,
    }
    write_json(out / "summary.json", summary)
    return summary


def _write_parts(config: DataConfig, split: Split, number: int, parts: Path, progress: bool) -> int:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    if (parts.parent / f"{split}.parquet").exists():
        return 0
    made = 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task(f"{split} dialogues", total=number)
        for first in range(0, number, PART):
            size = min(PART, number - first)
            path = parts / f"{split}-{first:08d}.jsonl"
            if not path.exists():
                write_jsonl(
                    path, (to_row(*make_dialogue(config, split, first + i)) for i in range(size))
                )
                made += size
            bar.advance(task, size)
    return made


def _write_corpus(config: DataConfig, split: Split, out: Path) -> int:
    """The hand-written dialogues of a split as a part of their own, once per copy."""
    path = out / "parts" / f"{split}-corpus.jsonl"
    if not config.corpus or path.exists() or (out / f"{split}.parquet").exists():
        return 0
    rows = list(corpus_rows(split))
    copies = [row | {"id": f"{row['id']}-{copy}"} for copy in range(config.corpus) for row in rows]
    write_jsonl(path, copies)
    return len(copies)


def _join(out: Path, split: str) -> dict[str, int]:
    """Join the parts of a split into one JSONL and one Parquet file; returns its counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    jsonl, parquet = out / f"{split}.jsonl", out / f"{split}.parquet"
    parts = sorted((out / "parts").glob(f"{split}-*.jsonl"))
    if not parquet.exists():
        with atomic_path(jsonl) as temporary, temporary.open("wb") as whole:
            for part in parts:
                whole.write(part.read_bytes())
        writer = None
        with atomic_path(parquet) as temporary:
            for part in parts:
                table = pa.Table.from_pylist(
                    read_jsonl(part), schema=writer.schema if writer else _schema()
                )
                writer = writer or pq.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()
    rows = pq.read_table(parquet, columns=["turns"])
    turns = sum(len(value) for value in rows["turns"].to_pylist())
    return {"dialogues": rows.num_rows, "turns": turns}


def _schema() -> Any:
    import pyarrow as pa

    text = pa.string()
    message = pa.struct([("role", text), ("content", text)])
    turn = pa.struct(
        [(k, text) for k in ("player", "act", "last", "state", "cart", "npc_dialogue")]
    )
    return pa.schema(
        [
            ("schema_version", pa.int64()), ("id", text), ("seed", pa.int64()), ("scenario", text),
            ("world", text), ("method", text), ("messages", pa.list_(message)),
            ("turns", pa.list_(turn)),
        ]
    )  # fmt: skip

"""Bring your own shop: worlds from YAML, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from haggle.core.config import explain, named_config, parse_mapping, read_mapping, read_text
from haggle.core.errors import HaggleError, nearest
from haggle.trade.world import Confirmation, World

COLUMNS = ("item_id", "item_name", "price", "quantity", "plural", "description", "facts")
CSV_META = (
    "name", "currency", "confirmation", "merchant", "persona", "manner", "samples",
    "location", "time", "background",
)  # fmt: skip
BAR = "|"  # between the facts of a cell, and between the samples of a heading


def load_world(path: str | Path) -> World:
    """A world from `.yaml`, `.json` or `.csv`.

    A CSV has one item a row (columns item_id, item_name, price, quantity; empty price and quantity
    for what is not sold; `facts` stand in one cell with bars between them) and may open with
    comment rows `# currency: gold` giving name, currency, confirmation, merchant, persona,
    manner, samples, location, time, background. Raises HaggleError naming file, field and row.
    """
    path = Path(path)
    form = path.suffix.lower().lstrip(".")
    if form not in {"csv", "json", "yaml", "yml"}:
        raise HaggleError(
            f"cannot read a world from {path.suffix or 'a file without ending'}",
            where=str(path),
            hint="use .yaml, .json or .csv",
        )
    if form == "csv":
        return parse_world(read_text(path), form, str(path), named=path.stem)
    return _world({"name": path.stem} | read_mapping(path), None, str(path))


def parse_world(
    text: str, form: str, where: str, given: Mapping[str, str] | None = None, named: str = ""
) -> World:
    """A world from the text of a `csv`, `json` or `yaml` file; `where` names its source in errors.
    Of a CSV `given` stands for its headings, `named` for a name that it lacks.

    Raises HaggleError."""
    if form == "csv":
        data, rows = _from_csv(text, where, given or {})
        return _world({"name": named} | data if named else data, rows, where)
    return _world(parse_mapping(text, form == "json", where), None, where)


def _world(data: dict[str, Any], rows: list[int] | None, where: str) -> World:
    try:
        return World.model_validate(data)
    except ValidationError as error:
        raise explain(error, World, _where(where, data, rows, error)) from None


def world_text(world: World, form: str) -> str:
    """A world as the text of a yaml, json or csv file that reads as the same world. A CSV leaves
    out how the merchant haggles. Raises HaggleError for what a CSV cannot hold."""
    data = world.model_dump(mode="json", exclude_defaults=True)
    if form == "csv":
        return _to_csv(world)
    if form == "json":
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False))


def _to_csv(world: World) -> str:
    situation, merchant = world.situation, world.merchant
    meta = {
        "name": world.name, "currency": world.currency, "confirmation": world.confirmation,
        "merchant": merchant.name, "persona": merchant.persona,
        "samples": _joined(merchant.samples), "location": situation.location,
        "time": situation.time, "background": situation.background,
    }  # fmt: skip
    out = io.StringIO()
    for key, value in meta.items():
        if value and (value != " ".join(value.split()) or value[-1] in ", "):
            raise HaggleError(
                f"{key}: a CSV cannot hold {value[:40]!r}", hint="take yaml or json instead"
            )
        out.write(f"# {key}: {value}\n" if value else "")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for item in world.items:
        cells = item.model_dump()
        cells["facts"] = _joined(item.facts)
        table.writerow(["" if cells[key] is None else cells[key] for key in COLUMNS])
    return out.getvalue()


def _joined(parts: list[str]) -> str:
    if any(BAR in part for part in parts):
        raise HaggleError(
            f"a CSV cannot hold {BAR!r} in facts or samples", hint="take yaml or json instead"
        )
    return BAR.join(parts)


@cache
def named_world(name: str) -> World:
    """A shipped world by name, or a world file by path."""
    return load_world(named_config("worlds", name))


def with_confirmation(world: World, confirmation: str | None) -> World:
    """The world with another way to confirm sales; as it is with None. Raises HaggleError for an
    unknown one."""
    if confirmation is None:
        return world
    for known in get_args(Confirmation):
        if known == confirmation:
            return world.model_copy(update={"confirmation": known})
    hint = nearest(confirmation, get_args(Confirmation))
    raise HaggleError(f"unknown confirmation {confirmation!r}", where="confirmation", hint=hint)


def load_worlds(directory: str | Path) -> dict[str, World]:
    """Every world file of a directory by its file name without ending."""
    directory = Path(directory)
    if not directory.is_dir():
        raise HaggleError("no such directory", where=str(directory), hint="give a folder of worlds")
    files = sorted(p for p in directory.iterdir() if p.suffix in {".yaml", ".yml", ".json", ".csv"})
    if not files:
        raise HaggleError("holds no .yaml, .json or .csv world", where=str(directory))
    return {path.stem: load_world(path) for path in files}


def _where(path: str, data: dict[str, Any], rows: list[int] | None, error: ValidationError) -> str:
    """File, and the row or item the first problem is in."""
    location = error.errors(include_url=False)[0]["loc"]
    if len(location) < 2 or location[0] != "items" or not isinstance(location[1], int):
        return path
    number = location[1]
    if rows is not None:
        return f"{path}:{rows[number]}"
    item = data["items"][number]
    label = item.get("item_id") or item.get("item_name") if isinstance(item, dict) else None
    return f"{path}: item {number + 1}" + (f" ({label})" if label else "")


def _heading(line: str) -> str:
    """What a `# key: value` row says, however a spreadsheet quoted or padded it; else nothing."""
    cells = next(csv.reader([line]), [])
    if not cells or not cells[0].lstrip().startswith("#"):
        return ""
    return ",".join(cells).rstrip(", ").lstrip().removeprefix("#") or " "


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(BAR) if part.strip()]


def _item(row: dict[str, str]) -> dict[str, Any]:
    """The filled cells of a row; facts as a list."""
    filled: dict[str, Any] = {key: cell.strip() for key, cell in row.items() if cell.strip()}
    if "facts" in filled:
        filled["facts"] = _parts(filled["facts"])
    return filled


def _from_csv(text: str, where: str, given: Mapping[str, str]) -> tuple[dict[str, Any], list[int]]:
    """World data of a CSV, and the line number of each item. `given` goes before its headings."""
    lines = text.splitlines()
    meta: dict[str, str] = {}
    body_start = 0
    for number, line in enumerate(lines):
        heading = _heading(line)
        if heading:
            key, colon, value = heading.partition(":")
            if colon and key.strip() in CSV_META:
                meta[key.strip()] = value.strip()
            elif colon and key.strip().isidentifier():
                hint = nearest(key.strip(), CSV_META)
                raise HaggleError(
                    f"unknown heading {key.strip()!r}", where=f"{where}:{number + 1}", hint=hint
                )
        elif line.strip(", "):
            body_start = number
            break
    else:
        raise HaggleError("holds no rows", where=where, hint=f"columns: {', '.join(COLUMNS)}")
    reader = csv.DictReader(io.StringIO("\n".join(lines[body_start:])), strict=True)
    for column in reader.fieldnames or []:
        if column not in COLUMNS:
            raise HaggleError(
                f"unknown column {column!r}",
                where=f"{where}:{body_start + 1}",
                hint=nearest(column, COLUMNS),
            )
    items, rows = [], []
    try:
        for row in reader:
            line_number = body_start + reader.line_num
            if None in row or None in row.values():
                raise HaggleError(
                    f"another number of cells than the heading's {len(reader.fieldnames or [])}",
                    where=f"{where}:{line_number}",
                )
            items.append(_item(row))
            rows.append(line_number)
    except csv.Error as error:
        raise HaggleError(
            f"not CSV: {error}", where=f"{where}:{body_start + reader.reader.line_num}"
        ) from None
    meta |= given
    world: dict[str, Any] = {
        "merchant": {
            "name": meta.get("merchant", "Merchant"),
            "persona": meta.get("persona", "An honest shopkeeper."),
            "manner": meta.get("manner"),
            "samples": _parts(meta.get("samples", "")),
        },
        "currency": meta.get("currency", "gold"),
        "situation": {k: meta[k] for k in ("location", "time", "background") if k in meta},
        "items": items,
    }
    world |= {key: meta[key] for key in ("name", "confirmation") if key in meta}
    return world, rows

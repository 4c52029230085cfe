"""Read YAML and JSON into pydantic records, with errors that name file, field and remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import atomic_write_text

_PACKAGE = Path(__file__).resolve().parents[1]
# A wheel has configs and models inside the package (see setup.py), a checkout beside it.
IN_WHEEL = (_PACKAGE / "shipped").is_dir()
ROOT = _PACKAGE / "shipped" if IN_WHEEL else _PACKAGE.parent
CONFIGS = ROOT / "configs"
CLAIM = "config.resolved.yaml"  # what marks a directory as the place of a config's results
SUFFIXES = {".yaml", ".yml", ".json", ".csv"}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where PyYAML was built with it


class Record(BaseModel):
    """Base of every config and record: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, which works out anew what this one has worked out of its fields."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


M = TypeVar("M", bound=BaseModel)


def install_hint(extra: str) -> str:
    """What to do where the packages of an extra (see pyproject.toml) are not installed."""
    if IN_WHEEL:
        return f'pip install "haggle[{extra}]"'
    return f'in Haggle\'s directory: pip install -e ".[{extra}]"'


def read_text(path: Path) -> str:
    """The UTF-8 text of a file. Raises HaggleError when it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise HaggleError("no such file", where=str(path), hint="check the path") from None
    except IsADirectoryError:
        raise HaggleError("is a directory, not a file", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise HaggleError(
            f"not UTF-8 text (byte {error.start})", where=str(path), hint="save it as UTF-8"
        ) from None
    except OSError as error:
        raise HaggleError(f"cannot be read: {error.strerror}", where=str(path)) from None


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file. Raises HaggleError naming file and line."""
    return parse_mapping(read_text(path), path.suffix == ".json", str(path))


def parse_mapping(text: str, is_json: bool, where: str) -> dict[str, Any]:
    """The mapping in a text that is JSON, or else YAML. Raises HaggleError naming the line."""
    try:
        data = json.loads(text) if is_json else yaml.load(text, Loader=_LOADER)
    except json.JSONDecodeError as error:
        raise HaggleError(f"not JSON: {error.msg}", where=f"{where}:{error.lineno}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise HaggleError(f"not YAML: {problem}", where=f"{where}{line}") from None
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise HaggleError(f"cannot be read: {error}", where=where) from None
    if not isinstance(data, dict):
        raise HaggleError("holds no mapping of keys to values at the top", where=where)
    return data


def read_config(path: Path, below: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The mapping in a config file, merged over that of the file it names under `extends:`.

    The name is a path seen from the file's own folder. `below` are the files that led here. Raises
    HaggleError naming the file whose `extends` is missing, no path, or a circle.
    """
    data = read_mapping(path)
    if (name := data.pop("extends", None)) is None:
        return data
    if not isinstance(name, str):
        raise HaggleError(f"extends: must be the path of one file (got {name!r})", where=str(path))
    chain, base = (*below, path.resolve()), path.parent / name
    if base.resolve() in chain:
        names = " -> ".join(file.name for file in (*chain, base))
        raise HaggleError(f"extends: goes in a circle: {names}", where=str(path))
    if not base.is_file():
        beside = [file.name for file in base.parent.glob("*.*") if file.suffix in SUFFIXES]
        hint = nearest(base.name, beside)
        raise HaggleError(f"extends: no such file: {base}", where=str(path), hint=hint)
    return merged(read_config(base, chain), data)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the changes in it; mappings in both are merged key by key."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def _field_names(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Names of the fields beside the one at `location`, as far as the annotations tell."""
    current: Any = model
    for part in location[:-1]:
        if isinstance(part, int) or not hasattr(current, "model_fields"):
            continue
        field = current.model_fields.get(part)
        if field is None:
            return []
        current = next(
            (
                candidate
                for candidate in (field.annotation, *getattr(field.annotation, "__args__", ()))
                if isinstance(candidate, type) and issubclass(candidate, BaseModel)
            ),
            None,
        )
        if current is None:
            return []
    return list(current.model_fields) if hasattr(current, "model_fields") else []


def explain(error: ValidationError, model: type[BaseModel], where: str) -> HaggleError:
    """The first problem of a pydantic error as a HaggleError naming the field and its remedy."""
    problems = error.errors(include_url=False)
    first = problems[0]
    if first["type"] == "missing":  # more often misspelt than left out
        beside = (p for p in problems if p["loc"][:-1] == first["loc"][:-1])
        first = next((p for p in beside if p["type"] == "extra_forbidden"), first)
    location = first["loc"]
    field = ".".join(str(part) for part in location) or "(whole record)"
    more = error.error_count() - 1
    others = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
    if first["type"] == "extra_forbidden":
        hint = nearest(str(location[-1]), _field_names(model, location))
        return HaggleError(f"unknown key {field!r}{others}", where=where, hint=hint)
    if first["type"] == "missing":
        return HaggleError(f"missing key {field!r}{others}", where=where, hint="add it")
    value = repr(first.get("input"))
    shown = value if len(value) <= 60 else value[:57] + "..."
    return HaggleError(f"{field}: {first['msg']} (got {shown}){others}", where=where)


def parse(data: Any, model: type[M], where: str) -> M:
    """Validate `data` as `model`; `where` names its source in errors."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise explain(error, model, where) from None


def load_config(path: str | Path, model: type[M]) -> M:
    """Read a YAML or JSON config, with what it extends. Raises HaggleError naming file, key and the
    nearest right key."""
    path = Path(path)
    return parse(read_config(path), model, str(path))


def named_config(kind: str, name: str) -> Path:
    """The file `configs/<kind>/<name>.yaml`, or `name` itself where it is a path to a file."""
    direct = Path(name)
    if direct.suffix.lower() in SUFFIXES:
        return direct
    folder = CONFIGS / kind
    files = {p.stem: p for p in sorted(folder.glob("*.*"), reverse=True) if p.suffix in SUFFIXES}
    if name not in files:
        raise HaggleError(f"no {kind} config is named {name!r}", hint=nearest(name, files))
    return files[name]


@contextmanager
def located(where: str) -> Iterator[None]:
    """Say where an error lies that does not say so itself."""
    try:
        yield
    except HaggleError as error:
        if error.where:
            raise
        raise HaggleError(error.message, where=where, hint=error.hint) from error


def claim_directory(out: Path, config: BaseModel, other: str) -> bool:
    """Mark `out` as the place of this config's results, in `config.resolved.yaml`.

    Returns whether it was not so marked before. Raises HaggleError saying that it holds `other`
    when it is another config's, or is a file.
    """
    if out.exists() and not out.is_dir():
        raise HaggleError("is a file, not a directory", where=str(out))
    text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=True)
    marker = out / CLAIM
    new = not marker.exists()
    if not new and marker.read_text(encoding="utf-8") != text:
        raise HaggleError(
            f"holds {other}", where=str(out), hint="choose another --out or delete it"
        )
    atomic_write_text(marker, text)
    return new

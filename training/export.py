"""Turn a trained adapter into files that can be served: adapter, merged weights, GGUF, Modelfiles.

Run it with `haggle export RUN/adapter --out OUT`. Every file is read back and compared with the
merged original, the LoRA as GGUF on its base too; the figures go to OUT/export.json. How answers
to real turns differ is measured with `haggle eval turns` and `haggle eval compare`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, write_json
from haggle.weights.adapters import ADAPTER_INFO, METHOD, check_adapter, folded
from haggle.weights.chat_template import Family, tokenizer_family
from haggle.weights.gguf_file import (
    LlamaShape,
    check_quantizations,
    llama_shape,
    metadata_from_directory,
    metadata_from_gguf,
    write_gguf,
    write_lora_gguf,
)
from haggle.weights.merging import tuned_metadata
from haggle.weights.models import BaseModel, check_model_dir, resolve_base
from haggle.weights.saving import write_model
from training.modelfile import write_modelfile

if TYPE_CHECKING:
    from training.verify import Check

# Not Q4_1: the offline base was unpacked from it, and rounding to the same grid again takes back
# most of what a small adapter changed (answers' tokens as in the merged model: 70%, Q4_0 91%).
DEFAULT_QUANTIZATIONS = ("Q8_0", "Q4_0")
EXPORT_FILE = "export.json"
LORA_GGUF = "adapter-f16.gguf"


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written. `checks` has the figures of each file by its name; empty if unverified.

    `card` is there where the adapter lies in the directory of its run.
    """

    out_dir: Path
    base: str
    adapter: Path | None
    merged: Path
    ggufs: dict[str, Path]
    modelfiles: dict[str, Path] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    card: Path | None = None


def export(
    adapter_dir: str | Path,
    out_dir: str | Path,
    base: str | None = None,
    quantizations: Sequence[str] = DEFAULT_QUANTIZATIONS,
    verify: bool = True,
    echo: Callable[[str], None] = print,
) -> ExportResult:
    """Write adapter/, merged/ (bf16 safetensors) and one GGUF for each quantisation to `out_dir`,
    each GGUF with a Modelfile for Ollama, and a model card where the run's files are at hand.

    `adapter_dir` is a run's adapter/ (or model/, after full fine-tuning). `base` overrides the base
    model that the adapter names. Raises HaggleError when the adapter does not belong to the base,
    a file is cut off, or a file read back does not answer as the original does.
    """
    out = Path(out_dir)
    check_quantizations(quantizations)
    origin = _origin(Path(adapter_dir), base, bool(quantizations), echo)
    source, shape = origin.source, origin.shape

    echo("Merging ...")
    model = _merged_model(source, origin.base)
    merged, family = _save_merged(model, source, out / "merged", origin.config_dir)
    adapter = None if origin.full else _copy_adapter(source, out / "adapter", shape)
    ggufs = {} if shape is None else _write_ggufs(model, origin, merged, out, quantizations, echo)
    modelfiles = _write_modelfiles(ggufs, family, origin.licence, echo)
    checks: dict[str, Check] = {}
    if verify:
        from training.verify import verify_export

        with _base_as_gguf(None if adapter is None else origin.base, shape, merged) as plain:
            lora = (plain, adapter / LORA_GGUF) if plain and adapter else None
            checks = verify_export(model, origin.base, adapter, merged, ggufs, echo, lora)

    result = ExportResult(out, origin.info["base"], adapter, merged, ggufs, modelfiles, checks)
    write_json(out / EXPORT_FILE, _summary(result, origin.licence))
    if bad := [name for name, check in checks.items() if not check.ok]:
        raise HaggleError(
            "read back, these do not answer as the merged model does: " + ", ".join(bad),
            where=str(out / EXPORT_FILE),
            hint="see the figures there; leave the file out or use a finer quantisation",
        )
    return replace(result, card=_write_card(source, out, origin.name, echo))


@dataclass(frozen=True, slots=True)
class _Origin:
    """What is exported: an adapter of `base`, or a `full` model; `shape` where GGUFs are wanted."""

    source: Path
    full: bool
    info: dict[str, Any]
    base: BaseModel | None
    shape: LlamaShape | None

    @property
    def config_dir(self) -> Path:
        return self.base.path if self.base and not self.full else self.source

    @property
    def name(self) -> str:
        return f"{self.info['base'].split('/')[-1]}-haggle"

    @property
    def method(self) -> str | None:
        return self.info.get(METHOD)

    @property
    def licence(self) -> str:
        return str(self.info.get("licence", "unknown"))


def _origin(source: Path, base: str | None, as_gguf: bool, echo: Callable[[str], None]) -> _Origin:
    """Find the base of what is exported. Raises HaggleError where the two do not fit."""
    full = (source / "config.json").is_file()
    info = _read_info(source, full)
    found = None
    if base or not full:
        found = resolve_base(base or info["base"], echo=echo)
        echo(f"Base: {found.describe()}")
        if not full:
            check_adapter(source, found)
    origin = _Origin(source, full, info, found, None)
    if not as_gguf:
        return origin
    config = json.loads((origin.config_dir / "config.json").read_text(encoding="utf-8"))
    return replace(origin, shape=llama_shape(config, str(origin.config_dir)))


def _write_ggufs(
    model: Any,
    origin: _Origin,
    merged: Path,
    out: Path,
    quantizations: Sequence[str],
    echo: Callable[[str], None],
) -> dict[str, Path]:
    """The merged model as GGUF, a file for each quantisation."""
    assert origin.shape is not None
    own = origin.base.gguf_path if origin.base is not None else None
    metadata = metadata_from_gguf(own) if own else metadata_from_directory(merged)
    metadata = tuned_metadata(metadata, origin.name, origin.licence, origin.method)
    tensors = {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    paths = {}
    for quantization in quantizations:
        path = out / f"{origin.name}-{quantization}.gguf"
        echo(f"Writing {path.name} ...")
        write_gguf(path, tensors, origin.shape, metadata, quantization)
        paths[quantization] = path
    return paths


def _write_modelfiles(
    ggufs: dict[str, Path], family: Family | None, licence: str, echo: Callable[[str], None]
) -> dict[str, Path]:
    """Ollama's file for each GGUF, as far as Ollama can have one."""
    if family is None:
        return {}
    written = {}
    for quantization, path in ggufs.items():
        try:
            written[quantization] = write_modelfile(path, quantization, family, licence)
        except HaggleError as error:
            echo(f"No Modelfile: {error.message}")
    return written


def _read_info(source: Path, full: bool) -> dict[str, Any]:
    """Base name and licence, from our own note or from what PEFT writes."""
    if not source.is_dir():
        raise HaggleError("no such directory", where=str(source), hint="train first")
    if full:
        check_model_dir(source)
    note = source / ADAPTER_INFO
    if note.is_file():
        info: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        return info
    settings = source / "adapter_config.json"
    if not settings.is_file():
        if full:
            return {"base": source.name, "licence": "unknown"}
        raise HaggleError(
            "holds neither an adapter nor a model",
            where=str(source),
            hint="give a run's adapter/ or model/ directory",
        )
    told = json.loads(settings.read_text(encoding="utf-8"))
    return {"base": told.get("base_model_name_or_path") or "", "licence": "unknown"}


def _merged_model(source: Path, base: BaseModel | None) -> Any:
    """The fine-tuned model in float32, adapters folded into its weights."""
    import torch
    from transformers import AutoModelForCausalLM

    if base is None or (source / "config.json").is_file():
        return AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    return folded(source, base)


def _save_merged(
    model: Any, source: Path, target: Path, origin: Path
) -> tuple[Path, Family | None]:
    from transformers import AutoTokenizer

    holder = source if (source / "tokenizer.json").is_file() else origin
    tokenizer = AutoTokenizer.from_pretrained(holder)
    write_model(target, model, tokenizer)
    return target, tokenizer_family(tokenizer)


@contextmanager
def _base_as_gguf(
    base: BaseModel | None, shape: LlamaShape | None, merged: Path
) -> Iterator[Path | None]:
    """The base model as GGUF: its own, or one written in F16 for the time being."""
    if base is None or shape is None or find_spec("xllamacpp") is None:
        yield None
        return
    if base.gguf_path is not None:
        yield base.gguf_path
        return
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32)
    tensors = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    with tempfile.TemporaryDirectory(dir=merged.parent) as folder:
        path = Path(folder) / "base-F16.gguf"
        write_gguf(path, tensors, shape, metadata_from_directory(merged), "F16")
        del model, tensors
        yield path


def _write_card(source: Path, out: Path, name: str, echo: Callable[[str], None]) -> Path | None:
    from training.model_card import is_run, own_card, write_card

    target = out / "README.md"
    if not is_run(source.parent):
        return None
    if target.exists() and not own_card(target, outdated_by=source):
        echo(f"Kept as it is: {target}")
        return target
    try:
        return write_card(source, target, measures=[out / EXPORT_FILE], name=name)
    except HaggleError as error:
        echo(f"No model card: {error}")
        return None


def _copy_adapter(source: Path, target: Path, shape: LlamaShape | None) -> Path:
    if target.resolve() != source.resolve():
        with atomic_dir(target) as directory:
            for file in source.iterdir():
                if file.is_file() and file.suffix != ".gguf":
                    shutil.copyfile(file, directory / file.name)
    if shape is not None:
        from safetensors.torch import load_file

        loaded = load_file(target / "adapter_model.safetensors")
        tensors = {name: tensor.float().numpy() for name, tensor in loaded.items()}
        settings = json.loads((target / "adapter_config.json").read_text(encoding="utf-8"))
        write_lora_gguf(target / LORA_GGUF, tensors, shape, float(settings["lora_alpha"]))
    return target


def _summary(result: ExportResult, licence: str) -> dict[str, Any]:
    files = {}
    paths = [result.merged / "model.safetensors", *result.ggufs.values()]
    if result.adapter is not None:
        paths += [result.adapter / "adapter_model.safetensors", result.adapter / LORA_GGUF]
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            entry = {"bytes": path.stat().st_size, "sha256": digest}
            files[path.relative_to(result.out_dir).as_posix()] = entry
    return {
        "base": result.base,
        "licence": licence,
        "modelfiles": {name: path.name for name, path in result.modelfiles.items()},
        "files": files,
        "checks": {name: asdict(check) for name, check in result.checks.items()},
        "versions": {name: version(name) for name in ("torch", "transformers", "peft", "gguf")},
    }

"""A model card written from a run's own files, in the form that the Hugging Face hub reads.

    haggle card runs/train/mine --measures runs/turns/mine --measures runs/cases/mine

Every figure is read from a file; what no file says is said to be missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from haggle.core.config import read_mapping
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text, read_json, read_jsonl
from haggle.rates import rate_text
from haggle.weights.adapters import ADAPTER_INFO
from training.card_measures import Measured, plain_name, read_measures

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, ModelCardData

# What a run writes, and the name it has beside a model that is passed on.
CONFIG_FILES = ("config.resolved.yaml", "train.yaml")
RESULT_FILE = "result.json"
METRICS_FILE = "metrics.jsonl"
MARKER = "Written by `haggle card` from the files of the run."
NOT_RECORDED = "not recorded"
SOP = "sop"  # the method of the rows that characters with a procedure learn from
METHODS = {
    "sft": "supervised fine-tuning (SFT)",
    "dpo": "direct preference optimisation (DPO)",
    "grpo": "group relative policy optimisation (GRPO)",
}
KINDS = {
    "turns": "turns of a held-out data set (`haggle eval turns`)",
    "cases": "hand-written turns (`haggle eval cases`)",
    "dialogues": "whole dialogues (`haggle eval`)",
    "comparison": "other quantisations and engines on the same turns (`haggle eval compare`)",
}
CHARACTER_KINDS = {
    "characters": "whole dialogues with simulated users (`haggle eval character`)",
    "turns": KINDS["turns"],
}
# What the hub calls licences that are not in SPDX's list, and what goes on with them.
LICENCES = {
    "Gemma Terms of Use": ("gemma", "Gemma's terms of use go on with what is derived from it."),
    "Llama 3.2 Community License": (
        "llama3.2",
        "Built with Llama. The Llama 3.2 Community License goes on with what is derived from it.",
    ),
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run's files, read. `weights` is its adapter/ or model/; `logged` the lines of its log.

    `result` is None where the run has not ended, or its result was not passed on.
    """

    directory: Path
    weights: Path
    config: dict[str, Any]
    result: dict[str, Any] | None
    logged: list[dict[str, Any]]
    info: dict[str, Any]
    sha256: str
    size: int

    @property
    def full(self) -> bool:
        """Whether all weights were trained, not an adapter."""
        return bool(self.config.get("full_finetuning"))

    @property
    def resolved(self) -> dict[str, Any]:
        """What the run found: data, licence, versions."""
        return dict(self.config.get("resolved") or {})

    @property
    def base(self) -> str:
        """The base model's short name or hub id; of a directory its name alone."""
        base = str(self.info.get("base") or self.config["base"])
        if self.resolved.get("base_source") == "directory" and not self.info.get("hub_id"):
            return Path(base).name
        return plain_name(base)

    @property
    def character(self) -> bool:
        """Whether it learned to keep to procedures, and not to be a merchant."""
        return self.info.get("method") == SOP

    @property
    def licence(self) -> str:
        """The base's licence, or `unknown`."""
        return str(self.resolved.get("licence") or self.info.get("licence") or "unknown")


def is_run(directory: Path) -> bool:
    """Whether a directory has the config that a training run writes."""
    return (directory / CONFIG_FILES[0]).is_file()


def own_card(path: Path, outdated_by: Path | None = None) -> bool:
    """Whether a README was written here; with a weights directory, about other weights only."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if MARKER not in text:
        return False
    return outdated_by is None or _digest(_weights_file(outdated_by)) not in text


def read_run(path: Path) -> Run:
    """The run of a directory, or of the adapter/ or model/ in it.

    Raises HaggleError naming the file that is missing.
    """
    directory = path if _config_file(path) else path.resolve().parent
    config_file = _config_file(directory)
    if config_file is None:
        raise HaggleError(
            f"holds no {CONFIG_FILES[0]}, nor does the directory above",
            where=str(path),
            hint="give the directory of a training run, or the adapter/ in it",
        )
    config = read_mapping(config_file)
    for key in ("base", "dataset"):
        if key not in config:
            raise HaggleError(f"says nothing of {key!r}", where=str(config_file))
    weights = directory / ("model" if config.get("full_finetuning") else "adapter")
    file = _weights_file(weights)
    note, result, log = weights / ADAPTER_INFO, directory / RESULT_FILE, directory / METRICS_FILE
    lines = read_jsonl(log, drop_torn_tail=True) if log.is_file() else []
    return Run(
        directory=directory.resolve(),
        weights=weights,
        config=config,
        result=read_json(result) if result.is_file() else None,
        logged=[line for line in lines if "loss" in line],
        info=read_json(note) if note.is_file() else {},
        sha256=_digest(file),
        size=file.stat().st_size,
    )


def write_card(
    path: str | Path,
    out: str | Path,
    measures: Sequence[str | Path] = (),
    name: str | None = None,
) -> Path:
    """Write the card of a run (or of its adapter/) to `out` and return it.

    `measures` are directories or JSON files of evaluations, in the order in which they are shown.
    Raises HaggleError for a run or a measure that is not there, and for an `out` that somebody
    wrote by hand.
    """
    run, target = read_run(Path(path)), Path(out)
    if target.is_file() and not own_card(target):
        raise HaggleError(
            "is there already, and was not written by this command",
            where=str(target),
            hint="move it away, or choose another --out",
        )
    tables = [table for one in measures for table in read_measures(Path(one))]
    atomic_write_text(target, render_card(run, tables, name))
    return target


def render_card(run: Run, measures: Sequence[Measured], name: str | None = None) -> str:
    """The card as Markdown behind the metadata that the hub reads."""
    from huggingface_hub import ModelCard

    name = name or run.directory.name
    shown = {table.kind for table in measures}
    kinds = CHARACTER_KINDS if run.character else KINDS
    _, terms = hub_licence(run.licence)
    template = "model_card_sop.jinja" if run.character else "model_card.jinja"
    body = _environment().get_template(template).render(
        name=name,
        facts=_facts(run),
        training=_training(run),
        start=_start(run),
        measures=measures,
        missing=[what for kind, what in kinds.items() if kind not in shown],
        parameters=_parameters(run),
        terms=terms,
        adapter=not run.full,
        base=run.base,
        inside=f"/{run.weights.name}",
        marker=MARKER,
    )  # fmt: skip
    head = _head(run, measures, name).to_yaml()
    return str(ModelCard(f"---\n{head}\n---\n\n{body.strip()}\n"))


def hub_licence(licence: str) -> tuple[str, str]:
    """The hub's name of a licence, and the sentence about its terms that a card has to carry."""
    if licence in LICENCES:
        return LICENCES[licence]
    return ("other" if licence == "unknown" or " " in licence else licence.lower()), ""


def _head(run: Run, measures: Sequence[Measured], name: str) -> ModelCardData:
    from huggingface_hub import ModelCardData

    licence, _ = hub_licence(run.licence)
    results = [result for table in measures for result in _results(table)]
    return ModelCardData(
        base_model=str(run.info.get("hub_id") or run.base),
        license=licence,
        license_name=run.licence if licence == "other" else None,
        library_name="transformers" if run.full else "peft",
        pipeline_tag="text-generation",
        language="en",
        tags=["haggle", "dialogue", "state-tracking", "game-npc", *([] if run.full else ["lora"])],
        model_name=name if results else None,
        eval_results=results or None,
    )


_ACCURACIES = ("joint", "state", "cart", "bid", "last", "price")


def _results(table: Measured) -> list[EvalResult]:
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="text-generation",
            dataset_type=f"haggle-{table.kind}",
            dataset_name=table.title,
            dataset_config=table.guard or None,
            metric_type="accuracy" if figure.name.startswith(_ACCURACIES) else "rate",
            metric_name=figure.name,
            metric_value=round(figure.value, 4),
            metric_args={"n": figure.n, "low": round(figure.low, 4), "high": round(figure.high, 4)},
        )
        for figure in table.figures
    ]


def _facts(run: Run) -> list[tuple[str, str]]:
    data, lora = run.resolved, run.config.get("lora") or {}
    hub_id = run.info.get("hub_id")
    base = f"{hub_id} ({run.base})" if hub_id and hub_id != run.base else run.base
    if run.full:
        here = f"all weights, bf16, {run.size / 1e6:.1f} MB"
    else:
        # An adapter that a run went on from keeps its own rank, whatever the config says.
        settings = run.weights / "adapter_config.json"
        own = read_json(settings) if settings.is_file() else {}
        rank, alpha = own.get("r", lora.get("r")), own.get("lora_alpha", lora.get("alpha"))
        layers = lora.get("target_modules", NOT_RECORDED)
        layers = layers if isinstance(layers, str) else ", ".join(layers)
        size = f"{run.size / 1e6:.1f} MB"
        here = f"LoRA adapter (PEFT), r={rank}, alpha={alpha}, layers: {layers}, {size}"
    dataset = Path(run.config["dataset"])
    where = f"{dataset.parent.name}/{dataset.name}" if dataset.suffix else dataset.name
    counts = [f"{data[key]:,} {key.replace('_', ' ')}" for key in _COUNTS if key in data]
    return [
        ("base", base),
        ("licence", run.licence),
        ("what is here", here),
        ("SHA-256 of the weights", run.sha256),
        ("data", f"{where}: {', '.join(counts) or NOT_RECORDED}"),
        ("SHA-256 of the data", str(data.get("data_sha256") or NOT_RECORDED)),
    ]


_COUNTS = (
    "dialogues", "pairs", "turns", "tokens", "supervised_tokens", "cut", "shortened", "dropped",
)  # fmt: skip


def _training(run: Run) -> list[tuple[str, str]]:
    config, result = run.config, run.result
    last = run.logged[-1] if run.logged else {}
    method = METHODS.get(kind := config.get("method", "sft"), kind)
    rows = [("method", method + (f", {q} base" if (q := config.get("quantization")) else ""))]
    if result is not None:
        total, steps = result.get("total_steps"), result["steps"]
        ended = f"{steps} of {total} steps ({result['stopped']})"
        rows += [
            ("extent", f"{ended}, {result['tokens']:,} tokens, {result['minutes']:.0f} minutes"),
            ("speed", f"{result['tokens_per_s']:.0f} tokens/s"),
            ("loss, last logged", f"{result['loss']:.3f}"),
        ]
        rows += [(key, f"{value:.4g}") for key, value in (result.get("figures") or {}).items()]
        if best := result.get("best"):
            share = rate_text({"value": best["joint"], "low": best["low"], "high": best["high"]})
            turns = f"{best['n']} held-out turns, step {best['step']}"
            rows.append(("joint, best while training", f"{share} of {turns}"))
        if (step := result.get("weights_step")) is not None and step != steps:
            rows.append(("weights kept", f"those of step {step}"))
    elif last:
        extent = f"{last['step']} steps, {last['tokens']:,} tokens"
        rows += [
            ("extent", f"{extent}, {last['elapsed_s'] / 60:.0f} minutes, by the last line logged"),
            ("loss, last logged", f"{last['loss']:.3f}"),
        ]
    else:
        rows.append(("extent", NOT_RECORDED))
    if run.logged:
        first = run.logged[0]
        rows.append(("loss, first logged", f"{first['loss']:.3f} at step {first['step']}"))
    rows.append(("longest dialogue", f"{config.get('max_length')} tokens"))
    if config.get("spoken_weight") is not None:
        rows.append(("loss weight of the spoken line", str(config["spoken_weight"])))
    trainer = config.get("trainer") or {}
    said = ", ".join(f"{key} {_plain(value)}" for key, value in trainer.items())
    versions = ", ".join(f"{k} {v}" for k, v in (run.resolved.get("versions") or {}).items())
    return [
        *rows,
        ("seed", str(config.get("seed", NOT_RECORDED))),
        ("trainer (TRL)", said or "defaults"),
        ("versions", versions or NOT_RECORDED),
    ]


def _start(run: Run) -> str:
    """What is to be said of the adapter that a run went on from."""
    if run.config.get("start_from") is None:
        return ""
    file = Path(run.config["start_from"]) / "adapter_model.safetensors"
    digest = run.resolved.get("adapter_sha256") or (_digest(file) if file.is_file() else None)
    which = f" (SHA-256 of its weights {digest})" if digest else ""
    return (
        f"The run went on from an adapter trained before{which}; what that one was trained on "
        "comes on top of the data above."
    )


def _parameters(run: Run) -> str:
    """The size of the base as its name says it, e.g. 135M."""
    words = run.base.replace("_", "-").upper().split("/")[-1].split("-")
    return next((w for w in words if w[:-1].replace(".", "").isdigit() and w[-1] in "MB"), "")


def _plain(value: Any) -> str:
    return plain_name(value) if isinstance(value, str) else str(value)


def _config_file(directory: Path) -> Path | None:
    return next((directory / n for n in CONFIG_FILES if (directory / n).is_file()), None)


def _weights_file(weights: Path) -> Path:
    for name in ("adapter_model.safetensors", "model.safetensors"):
        if (weights / name).is_file():
            return weights / name
    raise HaggleError(
        "holds no weights (adapter_model.safetensors or model.safetensors)",
        where=str(weights),
        hint="the run has to end first: the same `haggle train` command goes on",
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cell(value: object) -> str:
    """Text that cannot break a Markdown table."""
    return " ".join(str(value).replace("|", "\\|").split())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown; what comes from files goes through `cell`
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["rate"] = lambda figure: rate_text(asdict(figure))
    return environment

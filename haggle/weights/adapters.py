"""LoRA adapters on disk: whether one belongs to a base model, and its weights put into one.

Heavy libraries are imported inside functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, read_json, write_json
from haggle.weights.models import KNOWN, BaseModel, check_safetensors

ADAPTER_INFO = "haggle_adapter.json"
METHOD = "method"  # in the note: the prompting method that the model was taught
METHOD_KEY = "haggle.method"  # the same in a GGUF


def check_adapter(source: Path, base: BaseModel) -> None:
    """Raise HaggleError unless each LoRA pair fits a weight of the base model."""
    weights = source / "adapter_model.safetensors"
    if not (source / "adapter_config.json").is_file():
        raise HaggleError(
            "adapter_config.json is missing",
            where=str(source),
            hint="an adapter is a directory that `haggle train` wrote",
        )
    check_safetensors(weights)
    shapes = _base_shapes(base.path)
    belongs = f"this adapter was trained on another base than {base.name}"
    note = source / ADAPTER_INFO
    told = read_json(note) if note.is_file() else {}
    its_own = f" ({told['base']})" if told.get("base") else ""
    hint = f"use the base it was trained on{its_own}, or train an adapter for this one"
    for name, shape in _safetensors_shapes(weights).items():
        plain = name.removeprefix("base_model.model.").removesuffix(".weight")
        module, _, side = plain.rpartition(".")
        target = shapes.get(f"{module}.weight")
        if target is None or side not in ("lora_A", "lora_B"):
            raise HaggleError(
                f"{belongs}: it has {name}, the base no {module}", where=str(weights), hint=hint
            )
        fits = shape[1] == target[1] if side == "lora_A" else shape[0] == target[0]
        if not fits:
            raise HaggleError(
                f"{belongs}: {name} has shape {shape}, the base's weight {target}",
                where=str(weights),
                hint=hint,
            )
    config = read_json(base.path / "config.json")
    now = {"layers": config["num_hidden_layers"], "vocab_size": config["vocab_size"]}
    for key, value in now.items():
        if told.get(key, value) != value:
            raise HaggleError(
                f"{belongs}: {key} {told[key]} against {value}", where=str(source), hint=hint
            )


def adapter_note(base: BaseModel, config: Any, method: str | None = None) -> dict[str, Any]:
    """What an adapter (or a model) belongs to, from its base and transformers' config of that.

    `method` is the prompting method that it was taught, where that is known.
    """
    known = KNOWN.get(base.name)
    told = {} if method is None else {METHOD: method}
    return told | {
        "base": base.name,
        "hub_id": known.hub_id if known else None,
        "licence": base.licence,
        "architecture": config.model_type,
        "hidden_size": config.hidden_size,
        "layers": config.num_hidden_layers,
        "vocab_size": config.vocab_size,
    }


def taught_method(directory: Path) -> str | None:
    """The prompting method that the adapter or model in a directory was taught, where it says."""
    note = directory / ADAPTER_INFO
    told: str | None = read_json(note).get(METHOD) if note.is_file() else None
    return told


def write_adapter(
    target: Path,
    tensors: dict[str, Any],
    *,
    r: int,
    alpha: float,
    note: dict[str, Any],
    tokenizer: Any = None,
) -> None:
    """Write LoRA weights (under PEFT's names) as PEFT would, for machines without it.

    `note` is what `adapter_note` says; the tokenizer is saved beside.
    """
    from safetensors.torch import save_file

    layers = {name.removesuffix(".weight").split(".")[-2] for name in tensors}
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": note["hub_id"] or note["base"],
        "r": r,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "target_modules": sorted(layers),
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    with atomic_dir(target) as directory:
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(whole, directory / "adapter_model.safetensors", metadata={"format": "pt"})
        write_json(directory / "adapter_config.json", settings)
        write_json(directory / ADAPTER_INFO, note)
        if tokenizer is not None:
            tokenizer.save_pretrained(directory)


def folded(adapter: Path, base: BaseModel) -> Any:
    """The base in float32 with an adapter folded into its weights."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32)
    return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload(safe_merge=True).eval()


def load_adapter(model: Any, directory: Path) -> None:
    """Give a PEFT model the adapter weights of `directory`, in place.

    Raises HaggleError when there are none, or when they are those of another shape.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    file = directory / "adapter_model.safetensors"
    hint = "start_from takes the adapter/ directory of a run with the same base and lora settings"
    if not file.is_file() or not hasattr(model, "peft_config"):
        raise HaggleError("no adapter to start from", where=str(directory), hint=hint)
    try:
        outcome = set_peft_model_state_dict(model, load_file(file))
    except RuntimeError as error:
        message = f"adapter does not fit: {str(error).splitlines()[-1].strip()}"
        raise HaggleError(message, where=str(directory), hint=hint) from None
    missing = [name for name in outcome.missing_keys if "lora_" in name]
    if missing or outcome.unexpected_keys:
        first = (missing or outcome.unexpected_keys)[0]
        raise HaggleError(f"adapter does not fit: {first}", where=str(directory), hint=hint)


def _base_shapes(path: Path) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = {}
    for file in sorted(path.glob("*.safetensors")):
        shapes |= _safetensors_shapes(file)
    return shapes


def _safetensors_shapes(path: Path) -> dict[str, list[int]]:
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}

"""Writes a trained encoder as serving reads it: `model.onnx`, weights in eight bits, and
`tokenizer.json`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir
from training.encoder import Encoder

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LEAST = 0.95  # cosine between a text's rows in eight bits and in full
PROBES = ("How long does it burn?", "Something for cold feet.", "Brass Lamp. It burns nine hours.")


class States(torch.nn.Module):
    """The model with its states, or what a `head` makes of the first of them, as the one output."""

    def __init__(self, model: Any, head: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.model, self.head = model, head

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        """float32 [batch, tokens, 384], with a head [batch, its outputs]"""
        states = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return states if self.head is None else self.head(states[:, 0])


def export(folder: Path) -> Path:
    """Write a sentence model's `folder`/onnx, and return it. Raises HaggleError where a package is
    missing, or the result says something else than the model."""
    from haggle.language.embeddings import MiniLM

    encoder = Encoder(folder)
    out = write(encoder, States(encoder.model), "last_hidden_state", folder)
    with torch.no_grad():
        full = encoder(PROBES).numpy()
    worst = float((MiniLM(out).embed(PROBES) * full).sum(axis=1).min())
    if worst < LEAST:
        raise HaggleError(f"says something else than the model: cosine {worst:.3f}", where=str(out))
    return out


def write(encoder: Encoder, model: torch.nn.Module, output: str, folder: Path) -> Path:
    """Write `folder`/onnx with `model.onnx`, in eight bits, and `tokenizer.json`, and return it.
    Raises HaggleError where a package is missing."""
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        hint = install_hint("train")
        raise HaggleError(f"{error.name} is not installed", where="export", hint=hint) from None
    given = dict(encoder.tokenizer(PROBES[0], return_tensors="pt"))
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens", max=512)
    out = folder / "onnx"
    with tempfile.TemporaryDirectory() as temporary, atomic_dir(out) as made:
        full = Path(temporary, "full.onnx")
        torch.onnx.export(
            model.eval(),
            tuple(given[name] for name in INPUTS),
            str(full),
            input_names=list(INPUTS),
            output_names=[output],
            dynamic_shapes=[{0: batch, 1: tokens}] * 3,
            external_data=False,
        )
        small = Path(temporary, "small.onnx")
        quantize_dynamic(full, small, weight_type=QuantType.QInt8)
        onnx.save(_without_notes(onnx.load(small)), made / "model.onnx")
        shutil.copy(folder / "tokenizer.json", made)
    return out


def _without_notes(model: Any) -> Any:
    """An ONNX model without what its exporter noted: calls, with paths of the machine."""
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    return model

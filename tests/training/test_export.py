"""Exported files answer as the model they came from, or the export says what is wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.weights.gguf_file import (
    check_gguf,
    llama_shape,
    metadata_from_directory,
    metadata_from_gguf,
    write_gguf,
)
from haggle.weights.merging import write_merged
from haggle.weights.models import resolve_base
from training.export import LORA_GGUF, ExportResult, check_adapter, export
from training.verify import probe_llama


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture(scope="module")
def adapter(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter as a run leaves it, with weights large enough to change every answer."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    target = tmp_path_factory.mktemp("run") / "adapter"
    model = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    settings = LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16, target_modules="all-linear")
    torch.manual_seed(5)
    model = get_peft_model(model, settings)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    model.save_pretrained(target, save_embedding_layers=False)
    (target / "README.md").unlink(missing_ok=True)
    info = {"base": str(tiny_base), "licence": "MIT", "layers": 2, "vocab_size": 384}
    (target / "haggle_adapter.json").write_text(json.dumps(info), encoding="utf-8")
    return target


def figure(result: ExportResult, name: str, key: str) -> float:
    """A figure of a file read back, which has to be there."""
    value = getattr(result.checks[name], key)
    assert isinstance(value, float), (name, key)
    return value


def state_dict(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "model.safetensors")


def test_every_file_is_read_back_and_its_figures_are_kept(adapter: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    result = export(adapter, tmp_path / "out", quantizations=("Q8_0", "F16"), echo=quiet)
    assert set(result.checks) == {"adapter", "merged", "Q8_0", "F16", LORA_GGUF}
    assert figure(result, "adapter", "mean_kl") < 1e-6
    assert figure(result, "merged", "top1_agreement") > 0.97
    assert figure(result, "F16", "mean_kl") < 1e-3
    # A wrong order of rows in q or k, or a wrong rotation, gives a KL above 1 here.
    assert figure(result, "Q8_0", "mean_kl") < 0.02
    assert figure(result, "F16", "greedy_prefix") == pytest.approx(1.0, abs=0.1)
    assert figure(result, "F16", "next_token") > 0.95
    assert figure(result, LORA_GGUF, "next_token") > 0.95
    assert result.checks[LORA_GGUF].mean_kl is None  # llama.cpp alone reads it
    told = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))
    assert told["licence"] == "MIT"
    assert told["checks"]["Q8_0"]["mean_kl"] == result.checks["Q8_0"].mean_kl
    assert all(entry["bytes"] > 0 for entry in told["files"].values())
    assert sorted(path.name for path in (tmp_path / "out").glob("*base*")) == []


def test_merging_changes_the_model(adapter: Path, tiny_base: Path, tmp_path: Path) -> None:
    result = export(adapter, tmp_path / "out", quantizations=(), verify=False, echo=quiet)
    name = "model.layers.0.mlp.up_proj.weight"
    before, after = state_dict(tiny_base)[name], state_dict(result.merged)[name]
    lora = load_file(adapter / "adapter_model.safetensors")
    prefix = "base_model.model.model.layers.0.mlp.up_proj"
    delta = 2.0 * lora[f"{prefix}.lora_B.weight"] @ lora[f"{prefix}.lora_A.weight"]
    torch.testing.assert_close(after.float(), before.float() + delta, rtol=0.02, atol=2e-3)
    assert "lm_head.weight" not in state_dict(result.merged)


def test_llama_cpp_applies_the_lora_file_as_the_merged_weights(
    adapter: Path, tiny_base: Path, tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    out = export(adapter, tmp_path / "out", quantizations=("F16",), verify=False, echo=quiet)
    config = json.loads((tiny_base / "config.json").read_text(encoding="utf-8"))
    tensors = {name: t.float().numpy() for name, t in state_dict(tiny_base).items()}
    plain = tmp_path / "base.gguf"
    metadata = metadata_from_directory(tiny_base)
    write_gguf(plain, tensors, llama_shape(config, "test"), metadata, "F16")
    assert out.adapter is not None
    prompts = ["<|im_start|>user\n3 of Clay Jug<|im_end|>\n<|im_start|>assistant\n"]
    merged = probe_llama(out.ggufs["F16"], prompts, 12)
    adapted = probe_llama(plain, prompts, 12, lora=out.adapter / LORA_GGUF)
    untouched = probe_llama(plain, prompts, 12)
    assert adapted is not None and merged is not None and untouched is not None
    assert adapted["texts"] == merged["texts"] != untouched["texts"]


def test_metadata_survive_the_round_trip(tiny_base: Path, tmp_path: Path) -> None:
    config = json.loads((tiny_base / "config.json").read_text(encoding="utf-8"))
    tensors = {name: t.float().numpy() for name, t in state_dict(tiny_base).items()}
    metadata = metadata_from_directory(tiny_base)
    path = tmp_path / "model.gguf"
    write_gguf(path, tensors, llama_shape(config, "test"), metadata, "Q4_0")
    again = metadata_from_gguf(path)
    assert again.keys() == metadata.keys()
    for name, field in metadata.items():
        expected = pytest.approx(field.value) if isinstance(field.value, float) else field.value
        assert again[name].value == expected, name
        assert again[name].type == field.type, name


def test_four_bits_keep_the_layers_that_bear_no_rounding(tiny_base: Path, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    config = json.loads((tiny_base / "config.json").read_text(encoding="utf-8"))
    tensors = {name: t.float().numpy() for name, t in state_dict(tiny_base).items()}
    path = tmp_path / "model.gguf"
    write_gguf(
        path, tensors, llama_shape(config, "test"), metadata_from_directory(tiny_base), "Q4_0"
    )
    types = {t.name: t.tensor_type.name for t in gguf.GGUFReader(str(path)).tensors}
    assert types["token_embd.weight"] == types["blk.0.attn_q.weight"] == "Q8_0"
    assert types["blk.0.ffn_down.weight"] == "Q8_0"
    assert types["blk.0.ffn_up.weight"] == types["blk.1.ffn_gate.weight"] == "Q4_0"
    assert types["output_norm.weight"] == "F32"
    assert "output.weight" not in types


@pytest.mark.parametrize("source", ["safetensors", "gguf"])
def test_what_numpy_merges_is_what_export_writes(
    adapter: Path, tiny_base: Path, tmp_path: Path, source: str
) -> None:
    gguf = pytest.importorskip("gguf")
    base = resolve_base(str(tiny_base), echo=quiet)
    if source == "gguf":
        config = json.loads((tiny_base / "config.json").read_text(encoding="utf-8"))
        tensors = {name: t.float().numpy() for name, t in state_dict(tiny_base).items()}
        plain = tmp_path / "base.gguf"
        shape, metadata = llama_shape(config, "test"), metadata_from_directory(tiny_base)
        write_gguf(plain, tensors, shape, metadata, "F16")
        base = replace(base, path=plain, gguf_path=plain)
    out = export(adapter, tmp_path / "out", quantizations=("F16",), verify=False, echo=quiet)
    write_merged(adapter, base, tmp_path / "merged.gguf", "F16")
    files = (out.ggufs["F16"], tmp_path / "merged.gguf")
    theirs, ours = ({t.name: t for t in gguf.GGUFReader(str(f)).tensors} for f in files)
    assert theirs.keys() == ours.keys()
    for name, tensor in ours.items():
        assert tensor.tensor_type == theirs[name].tensor_type
        assert tensor.data == pytest.approx(theirs[name].data, abs=1e-4), name
    told, ours_told = (metadata_from_gguf(file).keys() for file in files)
    assert told - {"general.license"} == ours_told  # which the adapter's own note gives


@pytest.mark.parametrize(
    ("change", "what"), [({}, "the base's is"), ({"use_rslora": True}, "not a plain LoRA")]
)
def test_numpy_merges_nothing_that_does_not_fit(
    adapter: Path, other_base: Path, tmp_path: Path, change: dict[str, bool], what: str
) -> None:
    copy = tmp_path / "adapter"
    shutil.copytree(adapter, copy)
    settings = json.loads((copy / "adapter_config.json").read_text(encoding="utf-8"))
    (copy / "adapter_config.json").write_text(json.dumps(settings | change), encoding="utf-8")
    with pytest.raises(HaggleError, match=what):
        write_merged(copy, resolve_base(str(other_base), echo=quiet), tmp_path / "m.gguf", "Q8_0")
    assert sorted(tmp_path.iterdir()) == [copy]


def test_an_adapter_for_another_base_is_refused(
    adapter: Path, other_base: Path, tmp_path: Path
) -> None:
    with pytest.raises(HaggleError, match="another base") as caught:
        export(adapter, tmp_path / "out", base=str(other_base), echo=quiet)
    assert "[8, 128]" in caught.value.message and "[96, 192]" in caught.value.message
    assert not (tmp_path / "out").exists()


def test_an_adapter_with_layers_that_the_base_lacks_is_refused(
    adapter: Path, tiny_base: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "adapter"
    shutil.copytree(adapter, copy)
    tensors = load_file(copy / "adapter_model.safetensors")
    renamed = {name.replace("layers.1.", "layers.7."): t for name, t in tensors.items()}
    save_file(renamed, copy / "adapter_model.safetensors")
    with pytest.raises(HaggleError, match=r"the base no model\.layers\.7"):
        check_adapter(copy, resolve_base(str(tiny_base), echo=quiet))


def test_an_adapter_cut_off_is_an_error_that_names_it(adapter: Path, tmp_path: Path) -> None:
    copy = tmp_path / "adapter"
    shutil.copytree(adapter, copy)
    weights = copy / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-64])
    with pytest.raises(HaggleError, match="cut off") as caught:
        export(copy, tmp_path / "out", echo=quiet)
    assert "adapter_model.safetensors" in caught.value.where


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_a_directory_without_adapter_is_an_error(tmp_path: Path, missing: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(HaggleError, match=r"no such directory|neither an adapter nor a model"):
        export(tmp_path / missing, tmp_path / "out", echo=quiet)


def test_an_unknown_quantisation_is_refused_before_any_work(adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(HaggleError, match="Q3_X") as caught:
        export(adapter, tmp_path / "out", quantizations=("Q3_X",), echo=quiet)
    assert "Q8_0" in caught.value.hint and not (tmp_path / "out").exists()


def test_a_file_that_answers_otherwise_fails_the_export(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from haggle.weights import gguf_file

    monkeypatch.setattr(gguf_file, "_permuted", lambda name, array, shape: array)
    with pytest.raises(HaggleError, match=r"do not answer .*F16") as caught:
        export(adapter, tmp_path / "out", quantizations=("F16",), echo=quiet)
    assert "export.json" in caught.value.where


def test_a_lora_file_that_changes_nothing_fails_the_export(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    from training import export as module

    written = module.write_lora_gguf

    def without_effect(path: Path, tensors: Any, shape: Any, alpha: float) -> None:
        written(path, tensors, shape, alpha * 1e-6)

    monkeypatch.setattr(module, "write_lora_gguf", without_effect)
    with pytest.raises(HaggleError, match=f"do not answer .*{LORA_GGUF}"):
        export(adapter, tmp_path / "out", quantizations=("F16",), echo=quiet)
    told = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))
    assert told["checks"]["F16"]["ok"] and not told["checks"][LORA_GGUF]["ok"]


def test_each_gguf_has_a_modelfile_of_its_own(adapter: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = export(adapter, out, quantizations=("F16", "Q8_0"), verify=False, echo=quiet)
    for name, gguf in result.ggufs.items():
        text = (out / f"Modelfile.{name}").read_text(encoding="utf-8")
        assert result.modelfiles[name] == out / f"Modelfile.{name}"
        assert f"\nFROM ./{gguf.name}\n" in text and 'LICENSE """MIT"""' in text
    told = json.loads((out / "export.json").read_text(encoding="utf-8"))
    assert told["modelfiles"] == {"F16": "Modelfile.F16", "Q8_0": "Modelfile.Q8_0"}


def test_an_export_of_a_run_gets_its_card_and_keeps_a_fuller_one(
    adapter: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(adapter, run / "adapter")
    config = {"base": "tiny", "dataset": "data/mine", "resolved": {"licence": "MIT"}}
    (run / "config.resolved.yaml").write_text(json.dumps(config), encoding="utf-8")

    def card() -> str:
        export(run / "adapter", out, quantizations=("F16",), verify=False, echo=quiet)
        return (out / "README.md").read_text(encoding="utf-8")

    first = card()
    assert "license: mit" in first and str(tmp_path) not in first
    (out / "README.md").write_text(first + "measured since\n", encoding="utf-8")
    assert card() == first + "measured since\n"
    weights = run / "adapter" / "adapter_model.safetensors"
    save_file({n: t * 0.5 for n, t in load_file(weights).items()}, weights)
    assert "measured since" not in card()  # a card of other weights says nothing about these
    (out / "README.md").write_text("by hand\n", encoding="utf-8")
    assert card() == "by hand\n"


def test_an_adapter_apart_from_its_run_is_exported_without_card(
    adapter: Path, tmp_path: Path
) -> None:
    result = export(adapter, tmp_path / "out", quantizations=(), verify=False, echo=quiet)
    assert result.card is None and not (tmp_path / "out" / "README.md").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ["Q8_0", "Q4_0"]),
        ("--quantizations f16,Q8_0 --quantizations Q8_0", ["F16", "Q8_0"]),
        ("--all", ["F16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"]),
        ("--quantizations none", []),
    ],
)
def test_the_command_says_which_files_to_write(
    options: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from haggle.cli import app

    asked: list[list[str]] = []

    def export_(adapter: Path, out: Path, base: Any, kinds: list[str], verify: bool) -> Any:
        asked.append(list(kinds))
        return ExportResult(out, "tiny", None, out / "merged", {})

    monkeypatch.setattr("training.export.export", export_)
    line = ["export", str(tmp_path), "--out", str(tmp_path / "out"), *options.split()]
    ran = CliRunner().invoke(app, line)
    assert ran.exit_code == 0, ran.output
    assert asked == [expected]


def test_a_gguf_cut_off_is_an_error(adapter: Path, tmp_path: Path) -> None:
    out = export(adapter, tmp_path / "out", quantizations=("Q8_0",), verify=False, echo=quiet)
    path = out.ggufs["Q8_0"]
    check_gguf(path)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(HaggleError, match="GGUF"):
        check_gguf(path)


def test_exporting_into_the_run_itself_keeps_the_run(adapter: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(adapter, run / "adapter")
    (run / "metrics.jsonl").write_text('{"step":1}\n', encoding="utf-8")
    export(run / "adapter", run, quantizations=("Q8_0",), verify=False, echo=quiet)
    assert read_jsonl(run / "metrics.jsonl") == [{"step": 1}]
    assert (run / "adapter" / "adapter_model.safetensors").is_file()


def test_a_fully_finetuned_model_is_exported_without_adapter(
    tiny_base: Path, tmp_path: Path
) -> None:
    result = export(tiny_base, tmp_path / "out", quantizations=("Q8_0",), echo=quiet)
    assert result.adapter is None
    assert result.checks["merged"].max_abs_diff == 0.0


@pytest.mark.slow
def test_the_real_base_keeps_its_vocabulary_and_answers(tmp_path: Path) -> None:
    base: Any = resolve_base(echo=quiet)
    if base.gguf_path is None:
        pytest.skip("the base came without GGUF")
    ours, theirs = metadata_from_directory(base.path), metadata_from_gguf(base.gguf_path)
    for name in ("tokens", "token_type", "merges", "pre", "eos_token_id", "bos_token_id"):
        key = f"tokenizer.ggml.{name}"
        assert ours[key].value == theirs[key].value, key
    config = json.loads((base.path / "config.json").read_text(encoding="utf-8"))
    tensors = {name: t.float().numpy() for name, t in state_dict(base.path).items()}
    path = tmp_path / "base.gguf"
    write_gguf(path, tensors, llama_shape(config, "base"), theirs, "Q8_0")
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    told = probe_llama(path, [prompt], 12)
    if told is None:
        pytest.skip("llama.cpp is not installed")
    assert "Paris" in told["texts"][0]

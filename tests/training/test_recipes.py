"""Every recipe goes through a step and a checkpoint, and its header tells the truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from haggle.core.config import CONFIGS
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact, encode_compact
from haggle.weights.models import KNOWN, resolve_base
from training import quantization
from training.architectures import SHAPES, config_from, known_shape, tiny_shape
from training.arguments import trainer_arguments
from training.config import TrainConfig
from training.dry_run import dry_run, sample
from training.estimate import estimate
from training.recipes import load_stages, load_train_config

RECIPES = sorted((CONFIGS / "train").glob("*.yaml"))
MEASURED = {
    "acted",
    "ablation",
    "demo",
    "pca_d_dialogues",
    "pca_d_plans",
    "rounds",
    "shipped",
    "shipped_dpo",
    "shipped_grpo",
    "smollm2_135m",
    "smollm2_135m_dpo",
    "sop",
    "sop_more",
    "sop_varied",
    "stepwise",
    "stepwise_longer",
    "talk",
    "voices",
    "stepwise_more",
}
UNCOUNTED = {"smollm2_135m_grpo"}  # most of its time goes into drawing answers
ESTIMATED = [path for path in RECIPES if path.stem not in MEASURED | UNCOUNTED]
# As the models' own files count them.
PUBLISHED = {
    "smollm2-135m-instruct": 134_515_008,
    "smollm2-360m-instruct": 361_821_120,
    "smollm2-1.7b-instruct": 1_711_376_384,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "gemma-3-270m-it": 268_098_176,
    "gemma-3-1b-it": 999_885_952,
    "llama-3.2-1b-instruct": 1_235_814_400,
    "llama-3.2-3b-instruct": 3_212_749_824,
}
WANTED = {
    "smollm2_135m", "smollm2_360m", "smollm2_1_7b", "qwen3_0_6b", "qwen3_1_7b", "gemma3_270m",
    "gemma3_1b", "llama3_2_1b", "llama3_2_3b", "llama3_2_3b_qlora",
}  # fmt: skip


def quiet(_: str) -> None:
    """Nothing to say."""


def stem(path: Path) -> str:
    return path.stem


def header(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line[1:].strip() for line in lines if line.startswith("#")]
    return " ".join(comment)


def test_there_is_a_recipe_for_each_model() -> None:
    assert {path.stem for path in RECIPES} >= WANTED
    used = {load_stages(path)[0].config.base for path in RECIPES}
    assert set(KNOWN) == set(SHAPES) == used


@pytest.mark.parametrize("path", RECIPES, ids=stem)
def test_a_recipe_takes_a_step_and_its_checkpoint_is_read_back(path: Path, tmp_path: Path) -> None:
    said: list[str] = []
    config = load_stages(path)[-1].config
    # Neither a data set nor a model of this machine: the same test everywhere.
    config = config.model_copy(update={"dataset": tmp_path / "none"})
    done = dry_run(config, tiny=True, echo=said.append)
    assert done.weights == "tiny, random" and done.method == config.method
    assert done.architecture == SHAPES[config.base]["model_type"]
    assert 0 < done.trained < done.parameters < 10_000_000
    # Answers of random weights all earn the same: nothing to learn from, no loss.
    assert done.loss == 0 if done.method == "grpo" else 0 < done.loss < 12
    assert done.reload_difference <= 0.05
    assert done.supervised_tokens > 0
    expected = {"gemma3_text": "gemma", "qwen3": "chatml"}.get(done.architecture)
    expected = expected or ("llama3" if "llama3" in path.stem else "chatml")
    assert done.template == expected
    left_out = [line for line in said if line.startswith("Left out: quantization")]
    assert bool(left_out) == (config.quantization is not None and not torch.cuda.is_available())


def test_a_dry_run_leaves_nothing_behind(tmp_path: Path) -> None:
    config = load_train_config(CONFIGS / "train" / "smollm2_135m.yaml")
    out = tmp_path / "run"
    config = config.model_copy(update={"dataset": tmp_path / "none", "output_dir": out})
    dry_run(config, tiny=True, echo=quiet)
    assert not out.exists() and list(tmp_path.iterdir()) == []


def test_a_dry_run_takes_what_the_machine_has(tiny_base: Path, tiny_dataset: Path) -> None:
    config = TrainConfig(base=str(tiny_base), dataset=tiny_dataset, output_dir="x")
    done = dry_run(config, echo=quiet)
    assert done.weights == "real" and done.data == str(tiny_dataset)
    assert done.parameters > done.trained > 0


def test_a_dry_run_of_full_finetuning_reads_the_whole_model_back(
    tiny_base: Path, tiny_dataset: Path
) -> None:
    config = TrainConfig(
        base=str(tiny_base), dataset=tiny_dataset, output_dir="x", full_finetuning=True
    )
    done = dry_run(config, echo=quiet)
    assert done.parameters == done.trained and done.reload_difference <= 0.05


def test_a_checkpoint_that_comes_back_changed_fails_the_dry_run(
    tiny_base: Path, tiny_dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft import PeftModel

    load = PeftModel.from_pretrained

    def forgetful(*args: Any, **kwargs: Any) -> Any:
        model = load(*args, **kwargs)
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.data.zero_()
        return model

    monkeypatch.setattr(PeftModel, "from_pretrained", forgetful)
    config = TrainConfig(base=str(tiny_base), dataset=tiny_dataset, output_dir="x")
    with pytest.raises(HaggleError, match="read back with other values"):
        dry_run(config, echo=quiet)


def test_a_dry_run_does_not_hide_a_broken_data_set(tiny_base: Path, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"schema_version":7}\n', encoding="utf-8")
    config = TrainConfig(base=str(tiny_base), dataset=tmp_path, output_dir="x")
    with pytest.raises(HaggleError, match=r"schema_version 7|is missing"):
        dry_run(config, echo=quiet)


def test_a_model_that_is_neither_here_nor_known_is_an_error(tmp_path: Path) -> None:
    config = TrainConfig(base="someone/new-model", dataset=tmp_path / "none", output_dir="x")
    with pytest.raises(HaggleError, match="its shape is unknown") as caught:
        dry_run(config, tiny=True, echo=quiet)
    assert "qwen3-0.6b" in caught.value.hint


def test_the_sample_is_what_the_generator_writes_today() -> None:
    dialogues = sample()
    assert len(dialogues) == 4
    path = Path(__file__).parents[2] / "training" / "sample_dialogues.jsonl"
    assert all(row["method"] == "astp-compact" for row in iter_rows(path))
    procedure = load_procedure()
    answers = [m["content"] for d in dialogues for m in d if m["role"] == "assistant"]
    assert len(answers) >= 16
    for answer in answers:
        assert encode_compact(decode_compact(answer, procedure), procedure) == answer


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_have_the_published_number_of_parameters(name: str) -> None:
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_from(SHAPES[name]))
    model.tie_weights()
    assert sum(p.numel() for p in model.parameters()) == PUBLISHED[name]
    assert known_shape(KNOWN[name].hub_id) == SHAPES[name]


def test_the_shape_of_the_default_base_is_that_of_its_files() -> None:
    try:
        base = resolve_base(echo=quiet, download=False)
    except HaggleError as error:
        pytest.skip(f"no base model here: {error}")
    from training.architectures import read_shape

    told = read_shape(base.path)
    assert {key: told[key] for key in SHAPES[base.name]} == SHAPES[base.name]


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3_text"])
def test_a_tiny_model_keeps_the_ratio_of_heads(kind: str) -> None:
    name = next(name for name, shape in SHAPES.items() if shape["model_type"] == kind)
    tiny = tiny_shape(SHAPES[name], vocab_size=500)
    assert tiny["model_type"] == kind and tiny["vocab_size"] == 500
    assert 1 <= tiny["num_key_value_heads"] <= 4 == tiny["num_attention_heads"]


@pytest.mark.parametrize("path", ESTIMATED, ids=stem)
def test_a_header_names_hub_licence_and_an_estimate_that_is_counted(path: Path) -> None:
    config = load_train_config(path)
    text = header(path)
    assert KNOWN[config.base].hub_id in text
    assert KNOWN[config.base].licence in text
    told = re.search(r"Estimate, not measured: (.*? on a GPU at 40 TFLOP/s)", text)
    assert told, "the header has no estimate"
    number = re.compile(r"[\d,]*\d(?:\.\d+)?")
    counted = estimate(config, SHAPES[config.base]).describe()
    expected = [float(n.replace(",", "")) for n in number.findall(counted)]
    found = [float(n.replace(",", "")) for n in number.findall(told.group(1))]
    assert found == pytest.approx(expected, rel=0.1, abs=0.11)


def test_estimates_follow_the_settings() -> None:
    def of(**changes: Any) -> Any:
        config = TrainConfig(dataset="x", output_dir="x", base="smollm2-360m-instruct", **changes)
        return estimate(config, SHAPES["smollm2-360m-instruct"])

    plain, full = of(), of(full_finetuning=True)
    assert plain.parameters == full.trained == 361_821_120
    assert plain.trained == 8_683_520  # rank 16 on all linear layers
    assert full.fixed_gib > 4 * plain.fixed_gib
    checkpointed = of(trainer={"gradient_checkpointing": True})
    assert checkpointed.batch_gib < plain.batch_gib / 3
    assert 1.2 < checkpointed.flop_per_token / plain.flop_per_token < 1.6
    assert of(quantization="nf4").fixed_gib < plain.fixed_gib
    # Forward and back through frozen weights: about four operations a weight and token.
    assert 3.5 < plain.flop_per_token / plain.parameters < 5.5


def test_the_estimate_is_what_was_measured_on_the_default_base() -> None:
    config = TrainConfig(dataset="x", output_dir="x")
    counted = estimate(config, SHAPES["smollm2-135m-instruct"])
    assert 1e6 / (counted.cpu_hours * 3600) == pytest.approx(230, rel=0.1)
    assert counted.fixed_gib == pytest.approx(1.0, abs=0.2)
    assert counted.batch_gib == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("name", "kind", "processes"),
    [
        ("cpu", "NO", 1),
        ("single_gpu", "NO", 1),
        ("multi_gpu_ddp", "MULTI_GPU", 2),
        ("multi_gpu_fsdp", "FSDP", 2),
    ],
)
def test_accelerate_reads_its_configs(name: str, kind: str, processes: int) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    path = CONFIGS / "accelerate" / f"{name}.yaml"
    config = load_config_from_file(str(path))
    assert config.distributed_type == kind and config.num_processes == processes
    assert config.use_cpu == (name == "cpu")
    launch = r"accelerate launch --config_file (\S+) -m haggle train --config (\S+)"
    command = re.search(launch, header(path))
    assert command and command.group(1) == f"configs/accelerate/{path.name}"
    assert (CONFIGS.parent / command.group(2)).is_file()


def test_fsdp_settings_are_names_that_accelerate_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.utils import FullyShardedDataParallelPlugin

    path = CONFIGS / "accelerate" / "multi_gpu_fsdp.yaml"
    settings = load_config_from_file(str(path)).fsdp_config
    for key, value in settings.items():  # as `accelerate launch` hands them on
        monkeypatch.setenv(f"FSDP_{key.removeprefix('fsdp_').upper()}", str(value))
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2 and plugin.reshard_after_forward is True
    assert "FULL" in str(plugin.state_dict_type) and not plugin.activation_checkpointing


def test_every_recipe_leaves_the_accelerate_configs_free_to_wrap_it() -> None:
    for path in RECIPES:
        config = load_stages(path)[-1].config
        if not isinstance(config, TrainConfig):
            continue
        arguments = trainer_arguments(config)
        assert arguments.ddp_find_unused_parameters is False  # else a pass over the graph each step


def test_four_bits_without_a_gpu_say_so(
    tiny_base: Path, tiny_dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training.run import train

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    config = TrainConfig(
        base=str(tiny_base), dataset=tiny_dataset, output_dir="x", quantization="nf4"
    )
    with pytest.raises(HaggleError, match="no CUDA device") as caught:
        train(config, echo=quiet)
    assert "quantization" in caught.value.where and "leave `quantization` out" in caught.value.hint


def test_four_bits_without_bitsandbytes_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(quantization, "find_spec", lambda name: None)
    config = TrainConfig(dataset="x", output_dir="x", quantization="nf4")
    with pytest.raises(HaggleError, match="bitsandbytes is not installed") as caught:
        quantization.check_quantization(config)
    assert "[qlora]" in caught.value.hint


def test_four_bits_are_for_frozen_weights(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "dataset: x\noutput_dir: y\nquantization: nf4\nfull_finetuning: true\n", encoding="utf-8"
    )
    with pytest.raises(HaggleError, match="full_finetuning must be false"):
        load_train_config(path)

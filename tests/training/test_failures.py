"""What breaks a run is told in words, the last good checkpoint stays, and the run goes on from it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from training import run as run_module
from training.checkpoints import last_checkpoint
from training.config import DpoConfig, TrainConfig
from training.failures import lower_memory
from training.run import train
from training.trainer import BoundedTrainer, DialogueTrainer

STEPS = 6
WEIGHTS = Path("adapter/adapter_model.safetensors")


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture(scope="module")
def make_config(run_settings: Any, tiny_dataset: Path) -> Callable[[Path], TrainConfig]:
    def make(folder: Path) -> TrainConfig:
        settings = run_settings(
            tiny_dataset, folder, max_steps=STEPS, per_device_train_batch_size=3, save_steps=2
        )
        return TrainConfig(**settings)

    return make


@pytest.fixture
def config(make_config: Callable[[Path], TrainConfig], tmp_path: Path) -> TrainConfig:
    return make_config(tmp_path)


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in read_jsonl(run / "metrics.jsonl")]


@pytest.fixture(scope="module")
def whole(
    make_config: Callable[[Path], TrainConfig], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The directory of the same run left alone."""
    config = make_config(tmp_path_factory.mktemp("whole"))
    train(config, echo=quiet)
    return config.output_dir


@pytest.fixture
def expected(whole: Path) -> list[float]:
    return losses(whole)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ..."),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."),
    ],
    ids=["cuda", "python", "cpu"],
)
def test_out_of_memory_names_the_settings_to_lower(
    config: TrainConfig, fail_at: Any, error: Exception
) -> None:
    fail_at(DialogueTrainer, 4, error)
    with pytest.raises(HaggleError, match="out of memory at step 5") as caught:
        train(config, echo=quiet)
    hint = caught.value.hint
    assert "trainer.per_device_train_batch_size (3" in hint and "max_length (512)" in hint
    assert "gradient_checkpointing: true" in hint and "checkpoint-4" in hint
    assert "\n" not in caught.value.message
    assert last_checkpoint(config.output_dir) == config.output_dir / "checkpoint-4"


def test_a_model_that_does_not_fit_is_told_before_the_first_step(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("training.sft.load_model", load)
    with pytest.raises(HaggleError, match="out of memory at step 1") as caught:
        train(config, echo=quiet)
    assert "quantization: nf4" in caught.value.hint


def test_only_settings_that_can_still_be_lowered_are_named(config: TrainConfig) -> None:
    smallest = {"per_device_train_batch_size": 1, "gradient_checkpointing": True}
    least = config.model_copy(update={"quantization": "nf4", "trainer": smallest})
    assert lower_memory(least) == "lower max_length (512)"
    full = least.model_copy(update={"full_finetuning": True, "quantization": None})
    assert lower_memory(full).endswith("set full_finetuning: false")


@pytest.mark.parametrize(("method", "size"), [(TrainConfig, 4), (DpoConfig, 2)])
def test_the_batch_to_lower_is_the_methods_own_where_none_is_set(method: Any, size: int) -> None:
    name = "sft" if method is TrainConfig else "dpo"
    hint = lower_memory(method(method=name, dataset="x", output_dir="x"))
    assert f"trainer.per_device_train_batch_size ({size};" in hint


def test_other_errors_are_left_as_they_are(config: TrainConfig, fail_at: Any) -> None:
    fail_at(DialogueTrainer, 1, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train(config, echo=quiet)


def test_a_disk_full_at_a_checkpoint_keeps_the_one_before(
    config: TrainConfig, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = BoundedTrainer._save_optimizer_and_scheduler

    def full(self: Any, output_dir: str) -> None:
        if self.state.global_step == 4:
            (Path(output_dir) / "optimizer.pt").write_bytes(b"half of")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(self, output_dir)

    monkeypatch.setattr(BoundedTrainer, "_save_optimizer_and_scheduler", full)
    with pytest.raises(HaggleError, match="the disk is full at step 4") as caught:
        train(config, echo=quiet)
    assert "checkpoint-2" in caught.value.hint and "save_total_limit" in caught.value.hint
    left = sorted(path.name for path in config.output_dir.glob("checkpoint-*"))
    assert left == ["checkpoint-2"]  # the torn one would only take up room
    monkeypatch.undo()
    assert train(config, echo=quiet).stopped == "finished"
    assert losses(config.output_dir) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 220736 vs 220624"),
        Exception("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
    ids=["torch", "safetensors"],
)
def test_a_full_disk_is_recognised_in_what_libraries_say(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(*_: Any) -> None:
        raise error

    monkeypatch.setattr(BoundedTrainer, "_save_optimizer_and_scheduler", full)
    with pytest.raises(HaggleError, match="the disk is full at step 2") as caught:
        train(config, echo=quiet)
    assert caught.value.__cause__ is error and "goes on from" not in caught.value.hint
    assert list(config.output_dir.glob("checkpoint-*")) == []


def test_a_disk_full_at_the_end_loses_no_step(
    config: TrainConfig, whole: Path, expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_module, "in_bf16", full)
    with pytest.raises(HaggleError, match="the disk is full") as caught:
        train(config, echo=quiet)
    assert "checkpoint-6" in caught.value.hint
    assert not (config.output_dir / "adapter").exists()
    assert not list(config.output_dir.glob(".adapter*"))
    monkeypatch.undo()
    result = train(config, echo=quiet)
    assert result.steps == STEPS and (result.weights / "adapter_model.safetensors").is_file()
    assert losses(config.output_dir) == pytest.approx(expected, abs=1e-6)
    one, two = (load_file(run / WEIGHTS) for run in (whole, config.output_dir))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_an_adapter_of_another_base_is_refused_as_a_start(
    config: TrainConfig, other_base: Path, whole: Path
) -> None:
    other = config.model_copy(
        update={
            "base": str(other_base),
            "start_from": whole / "adapter",
            "output_dir": config.output_dir.with_name("other"),
        }
    )
    with pytest.raises(HaggleError, match=r"another base|does not fit"):
        train(other, echo=quiet)


def test_serving_refuses_an_adapter_of_another_base(
    tiny_base: Path, other_base: Path, whole: Path
) -> None:
    pytest.importorskip("outlines")
    from serving.engines import load_engine
    from serving.engines.config import EngineConfig

    adapter = whole / "adapter"
    engine = EngineConfig(engine="transformers", model=str(other_base), adapter=adapter)
    with pytest.raises(HaggleError, match="another base") as caught:
        load_engine(engine)
    assert f"({tiny_base.name})" in caught.value.hint


def _command(config: TrainConfig, folder: Path) -> list[str]:
    path = folder / "train.json"
    path.write_text(json.dumps(config.model_dump(mode="json")), encoding="utf-8")
    return [sys.executable, "-m", "haggle", "train", "--config", str(path)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.long
def test_a_run_killed_outright_goes_on_with_the_same_losses(
    config: TrainConfig, expected: list[float], tmp_path: Path
) -> None:
    command = _command(config, tmp_path)
    metrics = config.output_dir / "metrics.jsonl"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and process.poll() is None:
            if metrics.is_file() and metrics.read_text(encoding="utf-8").count("\n") >= 3:
                break
            time.sleep(0.002)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, capture_output=True)
    assert losses(config.output_dir) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True], ids=["ddp", "fsdp"])
@pytest.mark.long
def test_two_processes_train_as_one_with_the_double_batch(
    config: TrainConfig, tmp_path: Path, sharded: bool
) -> None:
    lines = (config.dataset / "train.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    data = tmp_path / "four.jsonl"
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def of(name: str, batch: int) -> TrainConfig:
        trainer = config.trainer | {"max_steps": 1, "per_device_train_batch_size": batch}
        changes = {"dataset": data, "output_dir": tmp_path / name, "trainer": trainer}
        return config.model_copy(update=changes)

    train(of("one", 4), echo=quiet)
    command = _command(of("two", 2), tmp_path)[3:]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    if sharded:
        environment |= {
            "ACCELERATE_USE_FSDP": "true",
            "FSDP_VERSION": "2",
            "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
            "FSDP_RESHARD_AFTER_FORWARD": "true",
            "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
        }
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run(
        [*launcher, "2", "-m", "haggle", *command],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)
    one, two = (load_file(tmp_path / name / WEIGHTS) for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-2, atol=1e-5)

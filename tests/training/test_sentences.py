"""The sentence model learns from questions, goes on where it was stopped, and is written as serving
reads it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from haggle.core.errors import HaggleError
from haggle.language.embeddings import SHIPPED, MiniLM
from training import sentences
from training.encoder import STATE, Encoder, read_rows
from training.sentences import Recipe, Shop, batches, measured, train

SENTENCES = ["Zib. It glows.", "Zib. Ores of Mun.", "Wob. It sings.", "Wob. It is made of tin."]
ASKED: list[dict[str, Any]] = [
    {"line": "flurk?", "goods": [0], "sentence": 0, "need": False},
    {"line": "gremble?", "goods": [0], "sentence": 1, "need": False},
    {"line": "snark?", "goods": [1], "sentence": 2, "need": False},
    {"line": "the blurp I lack", "goods": [1], "sentence": None, "need": True},
    {"line": "nobody knows", "goods": [1], "sentence": None, "need": False},
    {"line": "good day", "goods": [], "sentence": None, "need": False},
]
TINY = Shop(
    "tiny", ["Zib. ", "Wob. "], ["Zib. Glow.", "Wob. Song."], SENTENCES, [0, 0, 1, 1], ASKED
)
QUICK = Recipe(epochs=16, batch=4, save_every=4, warmup=2, learning_rate=1e-4)


def test_it_learns_what_answers(minilm: Path, tmp_path: Path) -> None:
    before = measured(Encoder(minilm), [TINY])
    encoder = train([TINY], minilm, tmp_path / "run", QUICK)
    after = measured(encoder, [TINY])
    assert sum(right for right, _ in after.values()) > sum(right for right, _ in before.values())
    assert after["sentence of a good"][1] == 3 and after["need"][1] == 1


def test_a_stopped_run_goes_on_and_another_one_is_refused(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    real = sentences.loss_of

    def stopping(*given: object) -> object:
        done.append(1)
        if len(done) == 6:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sentences, "loss_of", stopping)
    with pytest.raises(KeyboardInterrupt):
        train([TINY], minilm, tmp_path, QUICK)
    assert torch.load(tmp_path / STATE, weights_only=True)["step"] == 4
    train([TINY], minilm, tmp_path, QUICK)
    assert len(done) == 6 + 32 - 4
    with pytest.raises(HaggleError, match="a run with other settings or data"):
        train([TINY], minilm, tmp_path, dataclasses.replace(QUICK, seed=1))


def test_small_talk_comes_to_be_far_from_every_good(minilm: Path, tmp_path: Path) -> None:
    def nearest(encoder: Encoder) -> float:
        with torch.no_grad():
            return float((encoder(TINY.full) @ encoder(["good day"])[0]).max())

    before = nearest(Encoder(minilm))
    assert nearest(train([TINY], minilm, tmp_path, QUICK)) < before


def test_goods_of_which_nothing_is_known_can_be_learned(minilm: Path, tmp_path: Path) -> None:
    goods = ["Zib. ", "Wob. "]
    asked = [
        {"line": "the blurp I lack", "goods": [1, 0], "sentence": None, "need": True},
        {"line": "is it old?", "goods": [0], "sentence": None, "need": False},
    ]
    bare = Shop("bare", goods, goods, [], [], asked)
    alone = Recipe(epochs=1, batch=1)  # so that one step has nothing but that question
    encoder = train([bare], minilm, tmp_path, alone)
    assert measured(encoder, [bare])["need"] == (1, 1)


def test_every_line_comes_once_an_epoch() -> None:
    made = batches([TINY, dataclasses.replace(TINY, shop="other")], Recipe(batch=3), 0)
    assert sorted(len(asked) for _, asked in made) == [3, 3, 3, 3]
    lines = [(shop.shop, row["line"]) for shop, asked in made for row in asked]
    assert len(set(lines)) == len(lines) == 12


def test_what_is_exported_says_what_the_model_says(minilm: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="the extra `sentences` is not installed")
    from training.encoder_onnx import export

    encoder = Encoder(minilm)
    encoder.save(tmp_path)
    folder = export(tmp_path)
    assert {path.name for path in folder.iterdir()} == {path.name for path in SHIPPED.iterdir()} - {
        "README.md"
    }
    text = ["How heavy is the big one?"]
    with torch.no_grad():
        full = encoder(text).numpy()
    assert float((MiniLM(folder).embed(text) * full).sum()) > 0.95


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no shops in it"),
        ("{\n", "not JSON"),
        (json.dumps({"shop": "a"}), "no shop: "),
        (json.dumps({**vars(TINY), "full": []}), "no shop: it needs goods"),
        (
            json.dumps({**vars(TINY), "asked": [{"line": "flurk?", "good": 0}]}),
            "of each line asked goods, line, need, sentence",
        ),
    ],
)
def test_a_data_set_that_is_none_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError, match=complaint):
        read_rows(path, Shop, "shop", "data_gen.questions")

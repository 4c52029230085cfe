"""The judge of answers learns from labelled lines, goes on where it was stopped, and is written as
serving reads it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from haggle.core.errors import HaggleError
from haggle.language.judge import SHIPPED, MiniLMJudge
from training import consent
from training.consent import Recipe, Row, batches, odds_of, read_rows, train
from training.encoder import STATE, unpacked_base

YES = ["flurk indeed", "flurk it is", "mun flurk", "flurk flurk"]
NO = ["snark indeed", "snark it is", "mun snark", "snark snark"]
ROWS = [Row(line, "a1", line in YES, "a", False, line) for line in YES + NO]
QUICK = Recipe(epochs=8, batch=4, save_every=4, warmup=2, learning_rate=3e-4)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return unpacked_base(tmp_path_factory.mktemp("consent") / "base")
    except HaggleError as error:
        pytest.skip(str(error))


def test_it_learns_what_agrees_and_says_the_same_in_eight_bits(base: Path, tmp_path: Path) -> None:
    model = train(ROWS, base, tmp_path, QUICK)
    odds = odds_of(model, YES + NO)
    assert min(odds[: len(YES)]) > max(odds[len(YES) :])
    pytest.importorskip("onnxscript", reason="the extra `sentences` is not installed")
    folder = consent.export(model, tmp_path, YES + NO)
    assert {path.name for path in folder.iterdir()} == {path.name for path in SHIPPED.iterdir()} - {
        "README.md"
    }
    judge = MiniLMJudge(folder)
    assert min(map(judge.agreement, YES)) > max(map(judge.agreement, NO))


def test_an_export_that_says_something_else_is_refused(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript", reason="the extra `sentences` is not installed")
    model = train(ROWS, base, tmp_path, dataclasses.replace(QUICK, epochs=1))
    monkeypatch.setattr(consent, "odds_of", lambda model, probes: [50.0 for _ in probes])
    with pytest.raises(HaggleError, match="off the model on the mean"):
        consent.export(model, tmp_path, YES)


def test_a_stopped_run_goes_on_and_another_one_is_refused(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    real = consent.binary_cross_entropy_with_logits

    def stopping(*given: torch.Tensor) -> torch.Tensor:
        done.append(1)
        if len(done) == 6:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(consent, "binary_cross_entropy_with_logits", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(ROWS, base, tmp_path, QUICK)
    assert torch.load(tmp_path / STATE, weights_only=True)["step"] == 4
    train(ROWS, base, tmp_path, QUICK)
    assert len(done) == 6 + 16 - 4
    with pytest.raises(HaggleError, match="a run with other settings or data"):
        train(ROWS, base, tmp_path, dataclasses.replace(QUICK, seed=1))


def test_every_line_comes_once_an_epoch_and_epochs_differ() -> None:
    rows = [Row(f"{n}", "a1", True, "a", False, "x" * n) for n in range(50)]
    first, second = (batches(rows, Recipe(batch=4), epoch) for epoch in (0, 1))
    for made in (first, second):
        assert sorted(int(row.line) for batch in made for row in batch) == list(range(50))
    assert first != second


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "no answers in it"), ("{\n", "not JSON"), (json.dumps({"line": "a"}), "no answer: ")],
)
def test_a_data_set_that_is_none_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "reviews.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError, match=complaint):
        read_rows(path)

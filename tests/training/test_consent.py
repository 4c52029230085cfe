"""The judge of answers learns from labelled lines, goes on where it was stopped, and is written as
serving reads it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from haggle.core.errors import HaggleError
from haggle.language.judge import SHIPPED, MiniLMJudge
from training import consent
from training.consent import Recipe, Row, batches, odds_of, train
from training.encoder import STATE, command, held_out

YES = ["flurk indeed", "flurk it is", "mun flurk", "flurk flurk"]
NO = ["snark indeed", "snark it is", "mun snark", "snark snark"]
ROWS = [Row(line, "a1", line in YES, "a", False, line) for line in YES + NO]
QUICK = Recipe(epochs=8, batch=4, save_every=4, warmup=2, learning_rate=3e-4)


def test_it_learns_what_agrees_and_says_the_same_in_eight_bits(
    minilm: Path, tmp_path: Path
) -> None:
    model = train(ROWS, minilm, tmp_path, QUICK)
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
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript", reason="the extra `sentences` is not installed")
    model = train(ROWS, minilm, tmp_path, dataclasses.replace(QUICK, epochs=1))
    monkeypatch.setattr(consent, "odds_of", lambda model, probes: [50.0 for _ in probes])
    with pytest.raises(HaggleError, match="off the model on the mean"):
        consent.export(model, tmp_path, YES)


def test_a_stopped_run_goes_on_and_another_one_is_refused(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        train(ROWS, minilm, tmp_path, QUICK)
    assert torch.load(tmp_path / STATE, weights_only=True)["step"] == 4
    train(ROWS, minilm, tmp_path, QUICK)
    assert len(done) == 6 + 16 - 4
    with pytest.raises(HaggleError, match="a run with other settings or data"):
        train(ROWS, minilm, tmp_path, dataclasses.replace(QUICK, seed=1))


def test_every_line_comes_once_an_epoch_and_epochs_differ() -> None:
    rows = [Row(f"{n}", "a1", True, "a", False, "x" * n) for n in range(50)]
    first, second = (batches(rows, Recipe(batch=4), epoch) for epoch in (0, 1))
    for made in (first, second):
        assert sorted(int(row.line) for batch in made for row in batch) == list(range(50))
    assert first != second


def test_who_is_held_out_must_be_in_the_data() -> None:
    rows = [Row("yes", "a1", True, writer, False, "yes") for writer in "aab"]
    learned, held = held_out(rows, lambda row: row.writer, ["b"])
    assert [row.writer for row in learned] == ["a", "a"] and [row.writer for row in held] == ["b"]
    with pytest.raises(HaggleError, match="not in the data: z"):
        held_out(rows, lambda row: row.writer, ["z"])


@pytest.mark.parametrize(("raised", "code"), [(None, 0), (KeyboardInterrupt, 130)])
def test_a_command_tells_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, raised: type[BaseException] | None, code: int
) -> None:
    def run(options: object) -> None:
        if raised:
            raise raised

    monkeypatch.setattr("sys.argv", ["consent", "--data", "a", "--out", str(tmp_path)])
    assert command("About.", 1.0, run) == code


def test_a_data_set_that_is_missing_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.jsonl"
    monkeypatch.setattr("sys.argv", ["consent", "--data", str(missing), "--out", str(tmp_path)])
    assert command("About.", 1.0, consent.run) == 2
    assert "none.jsonl" in capsys.readouterr().err

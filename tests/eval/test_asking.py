"""The curve of wrong turns against needless questions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.asking import asking_curve, draw_asking
from eval.plots import plotter
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from serving.engines.scripted import ScriptedEngine

ORDER = '{"last":"","state":"OFFER_SELL","cart":[["Rope",2]]}'
TALK = '{"last":"","state":"CASUAL"}'


def answered(probability: float | None, joint: bool, answer: str = ORDER) -> dict[str, Any]:
    return {"probability": probability, "joint": joint, "answer": answer}


def test_the_curve_trades_wrong_turns_for_questions():
    records = [answered(0.95, True)] * 6 + [answered(0.25, False)] * 3 + [answered(0.25, True)]
    curve = asking_curve(records)
    by_limit = {point["below"]: point for point in curve["points"]}
    assert by_limit[0.0]["wrong"]["value"] == 0.3 and by_limit[0.0]["asked"]["value"] == 0
    assert by_limit[0.3]["wrong"]["value"] == 0 and by_limit[0.3]["needless"]["value"] == 0.1
    assert by_limit[1.0]["needless"]["value"] == 0.7 and len(by_limit) == 101
    assert (curve["best"]["below"], curve["best"]["up_to"]) == (0.26, 0.95)
    assert curve["best"]["cost"] == 0.4


def test_which_limit_is_cheapest_depends_on_what_a_wrong_turn_costs():
    records = [answered(0.15, False)] * 2 + [answered(0.15, True)] * 2  # half of them right
    records += [answered(0.55, False)] + [answered(0.55, True)] * 3  # three in four right
    curve = asking_curve(records)
    assert curve["cheapest"] == {"1": 0.0, "2": 0.0, "3": 0.16, "5": 0.56, "10": 0.56}


def test_the_served_limit_stands_beside_the_cheapest():
    records = [answered(0.95, True)] * 6 + [answered(0.25, False)] * 3 + [answered(0.25, True)]
    curve = asking_curve(records, served=0.2)
    assert (curve["served"]["below"], curve["served"]["cost"]) == (0.2, 0.9)
    saved = curve["saved"]
    assert saved["value"] == pytest.approx(0.5) and saved["low"] < 0.5 < saved["high"]
    same = asking_curve(records, served=curve["best"]["below"])["saved"]
    assert (same["value"], same["low"], same["high"]) == (0, 0, 0)


def test_questions_that_cost_more_than_they_save_are_not_asked():
    records = [answered(0.25, True)] * 9 + [answered(0.25, False)]
    assert asking_curve(records)["best"]["below"] == 0.0


def test_what_moves_no_cart_is_never_asked_about():
    points = asking_curve([answered(0.01, False, TALK), answered(0.01, False, "Hm.")])["points"]
    assert {point["asked"]["value"] for point in points} == {0}


def test_without_probabilities_there_is_no_curve():
    assert asking_curve([answered(None, True)]) == {}


def test_the_curve_is_drawn_with_the_cheapest_and_the_served_point(tmp_path: Path):
    pytest.importorskip("matplotlib")
    records = [answered(0.95, True)] * 6 + [answered(0.25, False)] * 3 + [answered(0.25, True)]
    plot = tmp_path / "curve.svg"
    plotter(plot, draw_asking)(asking_curve(records, served=0.2))
    picture = plot.read_text(encoding="utf-8")
    told = re.findall("<!-- (.*?) -->", picture)
    assert "cheapest: below 0.26 to 0.95, 0.40 lines a turn" in told
    assert "as served: below 0.2, 0.90 lines a turn" in told


class Sure(ScriptedEngine):
    """Gives every second order a low probability."""

    probability: float | None = 0.25

    def generate(self, requests):
        found = super().generate(requests)
        return [
            replace(answer, probability=self.probability if number % 2 else 0.95)
            if self.probability
            else answer
            for number, answer in enumerate(found)
        ]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs `haggle eval turns` on four orders; every second answer is wrong."""
    system, line = {"role": "system", "content": "s"}, {"role": "user", "content": "player: hi"}
    rows = [
        {
            "id": f"d{number}",
            "scenario": "specific_items",
            "messages": [system, line, {"role": "assistant", "content": ORDER}],
            "turns": [{"player": "hi", "act": "", "state": "OFFER_SELL"}],
        }
        for number in range(4)
    ]
    data = tmp_path / "test.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def run(probability: float | None, *words: str):
        engine = Sure([ORDER, ORDER.replace("2]", "3]")] * 2)
        engine.probability = probability
        monkeypatch.setattr("serving.engines.open_engine", lambda *given: engine)
        monkeypatch.setenv("COLUMNS", "80")
        command = ["eval", "turns", "--dataset", str(data), "--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, [*command, "--engine", "llamacpp", "--quiet", *words])

    return run


def test_the_command_tells_the_cheapest_limit_and_draws_the_curve(asked, tmp_path: Path):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "asking.png"
    ran = asked(0.05, "--plot", str(plot))
    assert ran.exit_code == 0, ran.exception
    assert "never: 0" in ran.output and "served: 0.1" in ran.output
    assert (
        "cheapest limits: 0.06 to 0.95; they save 0" in ran.output and "1: 0, 2: 0.06" in ran.output
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert read_json(tmp_path / "out" / "metrics.json")["asking"]["served"]["below"] == 0.1


def test_a_curve_that_is_not_there_cannot_be_drawn(asked, tmp_path: Path):
    pytest.importorskip("matplotlib")
    refused = asked(0.25, "--plot", str(tmp_path / "asking.docx")).exception
    assert isinstance(refused, HaggleError) and "no kind of picture" in str(refused)
    assert not (tmp_path / "out").exists()
    told = asked(None, "--plot", str(tmp_path / "asking.png")).exception
    assert isinstance(told, HaggleError) and "no answer has a probability" in str(told)
    assert (tmp_path / "out" / "metrics.json").is_file()

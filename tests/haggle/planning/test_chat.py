"""`haggle chat --planner`: with a character and with a merchant."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from haggle.cli import app
from haggle.core.errors import HaggleError

RUN = CliRunner()
WHOLE = '{"User State":"Greeting","Agent Action":"AskName","Agent Response":"Your name?"}'


@pytest.fixture
def scripted(tmp_path):
    config = tmp_path / "engine.yaml"
    config.write_text(f"engine: scripted\nscripted: {{again: true, answers: ['{WHOLE}']}}\n")
    return config


def test_a_character_is_talked_to_by_a_planner(scripted):
    command = f"chat --character gatekeeper --planner cot+sop --engine {scripted}"
    told = RUN.invoke(app, command.split(), input="hi\n/quit\n")
    assert told.exit_code == 0 and "Your name?" in told.output, told.output
    assert "1 calls in 1 batches" in " ".join(told.output.split())


def test_a_merchant_may_have_one_too(scripted):
    told = RUN.invoke(
        app, f"chat --planner cot+sop --engine {scripted}".split(), input="hi\n/quit\n"
    )
    assert told.exit_code == 0 and "planned:" in told.output, told.output


def test_an_unknown_planner_is_an_error(scripted):
    with pytest.raises(HaggleError, match="unknown planner 'mtcs'"):
        RUN.invoke(app, f"chat --planner mtcs --engine {scripted}".split(), catch_exceptions=False)

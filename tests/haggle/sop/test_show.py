"""`haggle sop show` prints and draws procedures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.sop.mermaid import edges_of
from haggle.sop.task import load_task

RUN = CliRunner()


def test_it_prints_the_graph_and_writes_it(tmp_path):
    pytest.importorskip("matplotlib")
    svg, mermaid = tmp_path / "gate.svg", tmp_path / "gate.mmd"
    told = RUN.invoke(app, f"sop show gatekeeper --svg {svg} --mermaid {mermaid}".split())
    assert told.exit_code == 0, told.output
    assert "never skipped: AskName, AskPass, AskErrand, Admit" in told.output
    assert "Agent.TurnAway" in told.output and "problem" not in told.output
    words = {"".join(e.itertext()).strip() for e in ET.parse(svg).iter() if e.tag.endswith("text")}
    assert {v.partition(".")[2] for v in load_task("gatekeeper").sop.vertex} <= words
    assert set(edges_of(mermaid.read_text("utf-8"))) == set(load_task("gatekeeper").sop.edges)


def test_the_same_graph_is_the_same_drawing(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        RUN.invoke(app, f"sop show gatekeeper --svg {tmp_path / name}".split())
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_tasks_are_listed():
    told = RUN.invoke(app, ["sop", "list"])
    assert told.exit_code == 0 and len(told.output.splitlines()) >= 20
    assert "gatekeeper" in told.output and "(everyday, held out)" in told.output


def test_a_task_that_is_not_there_is_told():
    with pytest.raises(HaggleError, match="TASK: no character is named 'nobody'"):
        RUN.invoke(app, "sop show nobody".split(), catch_exceptions=False)
    with pytest.raises(HaggleError, match=r"nobody\.json: no such file"):
        RUN.invoke(app, "sop show nobody.json".split(), catch_exceptions=False)

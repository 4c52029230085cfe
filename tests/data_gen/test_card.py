"""The card of a data set: metadata for the hub, tables that hold, the papers' figures beside ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from data_gen.dataset.card import Papers, PaperTransitions, render_card, write_card
from data_gen.dataset.statistics import collect, compare

pytest.importorskip("datasketch", reason='pip install -e ".[data]"')
pytest.importorskip("sacrebleu", reason='pip install -e ".[data]"')

PAPERS = Papers(
    transitions=[
        PaperTransitions(title="A paper, Figure 9", scenario="specific_items", dialogues=4,
                         labels=["Start", "CASUAL"], counts=[[0, 3], [1, None]], derived=[(0, 1)])
    ]
)  # fmt: skip


def front_matter(card: str) -> Any:
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def test_the_card_has_metadata_that_the_hub_knows(data) -> None:
    card = render_card(collect(data), files={"train": "train-*.parquet"})
    head = front_matter(card)
    assert head["license"] == "apache-2.0" and head["language"] == ["en"]
    assert head["size_categories"] == ["n<1K"]
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "train-*.parquet"}]
    assert "expert-generated" in head["annotations_creators"]
    datacard = pytest.importorskip("huggingface_hub").DatasetCard(card)
    assert datacard.data.task_categories == ["text-generation"]


def test_the_card_says_what_it_is_how_it_was_made_and_where_it_ends(data) -> None:
    card = render_card(collect(data), papers=PAPERS)
    for heading in ("How it was made", "Splits, and what is held out", "Statistics", "Limits",
                    "How to load it"):  # fmt: skip
        assert f"\n## {heading}\n" in card
    assert "hand-written corpus" in card and "language model" not in card.replace(
        "small language", ""
    )
    assert "Not measured: no tokenizer" in card


def test_every_table_of_the_card_has_as_many_cells_in_each_row_as_in_its_head(data) -> None:
    tables = 0
    lines = render_card(collect(data), papers=PAPERS, comparison=compare(data, data)).splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("| "):
            head = before if before.startswith("|") else line
            assert line.count("|") == head.count("|"), line
            tables += not before.startswith("|")
    assert tables > 10


def test_the_papers_shares_stand_beside_ours_and_what_is_derived_is_marked(data) -> None:
    card = render_card(collect(data), papers=PAPERS)
    assert "in brackets: A paper, Figure 9, 4 dialogues" in card
    start = next(line for line in card.splitlines() if line.startswith("| Start"))
    assert "(100.0*)" in start and start.endswith("(3) |")


def test_the_card_is_written_whole_beside_the_figures(data, tmp_path) -> None:
    described = collect(data)
    write_card(described, tmp_path, comparison=compare(data, data))
    assert {p.name for p in tmp_path.iterdir()} == {
        "README.md", "statistics.json", "comparison.json",
    }  # fmt: skip
    written = json.loads((tmp_path / "statistics.json").read_text(encoding="utf-8"))
    assert type(described).model_validate(written) == described
    assert str(data.parent) not in (tmp_path / "statistics.json").read_text(encoding="utf-8")

"""Corrections by people: how far they go, and how far people agree."""

from __future__ import annotations

import pytest
import yaml

from data_gen.config import DataConfig
from data_gen.sop.quality import agreement, corrected, distance, kept, load_corrections, quality
from data_gen.sop.source import SopSource
from haggle.core.errors import HaggleError


@pytest.fixture(scope="module")
def rows() -> dict[str, dict]:
    source = SopSource(DataConfig(character="gatekeeper"))
    return {row["id"]: row for row in source.rows("train", range(3))}


def work(tmp_path, annotator: str, dialogues: list[dict]):
    path = tmp_path / f"{annotator}.yaml"
    path.write_text(yaml.safe_dump({"annotator": annotator, "dialogues": dialogues}), "utf-8")
    return load_corrections(path)


def test_corrections_are_measured_as_in_the_papers_table(rows, tmp_path):
    name = next(iter(rows))
    count = len(rows[name]["turns"])
    said = rows[name]["turns"][0]["player"]
    changes = [{"turn": 1, "user": "Other", "player": f"{said} indeed"}]
    after = corrected(rows, work(tmp_path, "anna", [{"id": name, "turns": changes}]))
    changed = int(rows[name]["turns"][0]["act"] != "Other")
    found = quality(rows, after)
    assert found.scene_accuracy == pytest.approx(1 - changed / (2 * count))
    assert found.scene_distance == changed
    assert found.utterance_accuracy == pytest.approx(1 - 1 / (2 * count))
    assert found.utterance_distance == pytest.approx(1 / (2 * count))


def test_dialogues_on_which_people_disagree_are_left_out(rows, tmp_path):
    one, two, _ = rows
    seen = [{"id": one}, {"id": two}]
    doubtful = [{"id": one}, {"id": two, "turns": [{"turn": 1, "user": "Nobody"}]}]
    all_three = [
        corrected(rows, work(tmp_path, name, dialogues))
        for name, dialogues in (("anna", seen), ("ben", seen), ("cleo", doubtful))
    ]
    agreed = agreement(all_three)
    assert agreed[one] == 1.0 and agreed[two] < 1.0
    assert one in kept(agreed)
    assert kept({"a": 0.94, "b": 0.95}) == ["b"]


@pytest.mark.parametrize(
    ("dialogue", "words"),
    [({"id": "train-9-gate"}, "no such dialogue"), ({"turns": [{"turn": 99}]}, "no turn 99")],
)
def test_a_mistake_in_a_correction_is_told(rows, tmp_path, dialogue, words):
    name = next(iter(rows))
    with pytest.raises(HaggleError, match=words) as error:
        corrected(rows, work(tmp_path, "anna", [{"id": name} | dialogue]))
    assert "anna" in str(error.value)


def test_edit_distance_counts_words():
    assert distance("a b c".split(), "a x c d".split()) == 2
    assert distance([], ["a"]) == 1 and distance(["a"], []) == 1

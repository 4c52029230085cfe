"""Training tasks in many shapes: still tasks, still read as before, made of training tasks alone."""

from __future__ import annotations

import random
import re

import pytest

from data_gen.config import DataConfig, load_data_config
from data_gen.generate import generate
from data_gen.language.phrasebook import SPLITS
from data_gen.sop.rows import tasks_of
from data_gen.sop.source import SopSource, played
from data_gen.sop.users import draw_person
from data_gen.sop.variety import renamed, reworded, varied, words
from haggle.core.config import ROOT
from haggle.core.storage import write_jsonl
from haggle.dataset import iter_rows
from haggle.sop.domain import Talk
from haggle.sop.task import QUESTION

LEARNT, HELD = tasks_of("all", "train"), tasks_of("all", "test")
SHAPES = 6  # of each task


def shapes(task, number=SHAPES):
    others = [other for other in LEARNT if other is not task]
    return [varied(task, others, random.Random(seed)) for seed in range(number)]


@pytest.mark.parametrize("task", LEARNT, ids=lambda task: task.task)
def test_every_shape_is_played_without_the_guard_stepping_in(task):
    reached = 0
    for seed, shape in enumerate(shapes(task)):
        rng = random.Random(seed)
        user = draw_person(shape, rng, "train")
        talk = Talk(user.task)
        assert list(played(user, talk, rng))  # raises where a check fails or the guard steps in
        reached += talk.success
    assert reached, "the goal can still be reached"


def test_names_order_and_steps_differ_from_shape_to_shape():
    task = LEARNT[0]
    found = shapes(task, 12)
    assert len({tuple(shape.user_state) for shape in found}) == 12
    assert len({tuple(shape.briefs.values()) for shape in found}) == 12
    assert {len(shape.steps) - len(task.steps) for shape in found} == {0, 1, 2}
    assert any(len(shape.asides) < len(task.asides) for shape in found)
    assert all(QUESTION in shape.asides for shape in found), "facts are asked for in it"


def test_steps_keep_their_order_in_the_prompt():
    for task in LEARNT:
        for shape in shapes(task):
            told = [name for name in shape.agent_action if name in shape.steps]
            at = [told.index(name) for name in shape.mandatory]
            assert at == sorted(at), (told, shape.mandatory)


def test_a_step_of_another_task_brings_words_facts_and_evidence():
    task = LEARNT[0]
    for shape in shapes(task, 12):
        new = set(shape.conversation_profile.facts) - set(task.conversation_profile.facts)
        assert bool(new) == (len(shape.steps) > len(task.steps))
        for state in shape.opening:
            assert shape.evidence[state] and shape.utterances[state].train


def test_no_shape_says_a_line_or_has_a_fact_of_a_held_out_task():
    held = {line for task in HELD for line in lines(task, *SPLITS)}
    facts = {fact for task in HELD for fact in task.conversation_profile.facts.values()}
    for task in LEARNT:
        for shape in shapes(task, 3):
            assert not held & lines(shape, "train")
            assert not facts & set(shape.conversation_profile.facts.values())


def lines(task, *splits):
    """What users of a task say in these splits."""
    tables = (task.utterances, task.questions, task.near_misses)
    said = [one for table in tables for one in table.values()]
    return {line for one in said for split in splits for line in getattr(one, split)}


def test_rows_of_many_shapes_are_valid_and_repeatable_and_test_rows_stay(tmp_path):
    plain = DataConfig(character="all", train=20, test=10)
    config = plain.model_copy(update={"variety": 1.0})
    for split in SPLITS:
        rows = list(SopSource(config).rows(split, range(10)))
        same = list(SopSource(plain).rows(split, range(10)))
        assert (rows == same) == (split == "test")
        write_jsonl(tmp_path / f"{split}.jsonl", rows)
        assert len(list(iter_rows(tmp_path, split))) == 10  # checks each turn's step
        assert rows[3:4] == list(SopSource(config).rows(split, [3]))


def test_columns_of_many_shapes_are_read_alone(tmp_path):
    """Training asks for the method alone."""
    config = DataConfig(character="all", train=4, test=2, variety=1.0)
    generate(config, tmp_path, workers=1, progress=False)
    for columns in (["method"], ["id", "turns"], ["messages"]):
        found = list(iter_rows(tmp_path, "train", columns))
        assert len(found) == 4 and list(found[0]) == columns


def test_names_stay_readable():
    rng = random.Random(5)
    drawn = {renamed("ShowsPass", "shows a pass", rng) for _ in range(20)}
    assert len(drawn) > 2
    assert all(re.fullmatch(r"([A-Z][a-z]*)+", name) for name in drawn)
    assert reworded("greets", rng) in words().briefs["greets"]
    assert reworded("hums", rng) == "hums"


def test_the_recipe_of_characters_has_it_on():
    assert load_data_config(ROOT / "configs" / "data" / "sop.yaml").variety > 0.5

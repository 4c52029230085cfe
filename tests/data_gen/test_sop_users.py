"""Simulated users before characters with a procedure: what they say, and apart by split."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from data_gen.config import DataConfig
from data_gen.language.phrasebook import SPLITS, Split
from data_gen.sop.rows import tasks_of
from data_gen.sop.source import SopSource, played
from data_gen.sop.users import draw_person, phrases_of
from data_gen.sop.wording import FOLDER, People, faithful, read_as, say, voices, with_person
from haggle.core.config import load_config
from haggle.core.errors import HaggleError
from haggle.core.storage import write_jsonl
from haggle.dataset import iter_rows
from haggle.sop.domain import Talk
from haggle.sop.task import TASKS, Task, load_task

ALL = [load_task(path.stem) for path in sorted(TASKS.glob("*.yaml"))]
LEARNT = [task for task in ALL if task.split == "train"]
HELD = [task for task in ALL if task.split == "test"]
VOICES = 4  # phrases of a state that a user of the task's split has at least


def plain(line: str) -> str:
    return re.sub(r"[^\w{}]+", " ", line.casefold()).strip()


def said(task: Task, split: Split) -> Iterator[str]:
    """All that users of a task say in a split, without punctuation."""
    for table in (task.utterances, task.questions, task.near_misses):
        for lines in table.values():
            yield from map(plain, getattr(lines, split))


def test_no_line_of_training_is_said_with_a_held_out_task_or_in_test():
    learnt = {line for task in LEARNT for line in said(task, "train")}
    apart = [line for task in LEARNT for line in said(task, "test")]
    apart += [line for task in HELD for split in SPLITS for line in said(task, split)]
    assert len(learnt) > 1000 and not learnt & set(apart)


def test_training_and_held_out_tasks_share_no_name_of_a_person():
    names = load_config(FOLDER / "people.yaml", People).Name
    assert not set(names.train) & set(names.test)
    assert not {t.user_profile["Name"] for t in HELD} & set(names.train)


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.task)
def test_every_state_has_words_in_several_voices(task):
    own = phrases_of(task).train if task.split == "train" else phrases_of(task).test
    assert min(len(set(own.user[state])) for state in task.user_state) >= VOICES
    assert min(len(own.agent[step]) for step in task.steps) >= 2


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.task)
def test_a_near_miss_is_evidence_of_nothing(task):
    lines = task.near_misses
    assert len(lines) >= 2
    for state, near in lines.items():
        for line in (*near.train, *near.test):
            spoken = line.format_map(task.user_profile)
            steps = [v for v in task.graph if "User." + state in task.graph[v]]
            beside = {v.removeprefix("User.") for step in steps for v in task.graph[step]}
            assert read_as(task, beside, spoken) == {state} & set(task.evidence), spoken


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.task)
def test_dressed_lines_pass_the_guard_and_reach_ends(task):
    split: Split = task.split
    lines, plain_lines, profiles = [], [], set()
    for seed in range(6):
        rng = random.Random(seed)
        user = draw_person(task, rng, split)
        talk = Talk(user.task)
        for turn in played(user, talk, rng):  # raises where the guard steps in
            lines.append(turn.player)
            plain_lines.append(user.phrase)
        profiles.add(tuple(user.task.user_profile.values()))
    assert lines != plain_lines, "a voice changes words"
    assert len(profiles) > 1 or len(task.user_profile["Name"].split()) != 2


def test_a_voice_that_spoils_the_evidence_is_not_heard():
    talk = Talk(load_task("gatekeeper"))
    talk.last = "AskName"
    deny = voices("train")["plain"].model_copy(
        update={"openers": ["never,"], "opener": 1.0, "noise": 0.0}
    )
    phrase = "I am Mirela Voss."
    assert say(talk, "GivesName", phrase, deny, random.Random(1)) == phrase
    assert not faithful(talk, "GivesName", "never, I am Mirela Voss.")


def test_another_person_is_recognised_by_their_own_name():
    task = load_task("gatekeeper")
    drawn = [with_person(task, random.Random(seed), "train") for seed in range(8)]
    names = {one.user_profile["Name"] for one in drawn}
    assert len(names) > 3 and task.user_profile["Name"] == "Mirela Voss"
    other = next(one for one in drawn if one.user_profile["Name"] != "Mirela Voss")
    talk = Talk(other)
    talk.last = "AskName"
    assert faithful(talk, "GivesName", f"I am {other.user_profile['Name']}.")
    assert not faithful(talk, "GivesName", "I am Mirela Voss.")


def test_rows_of_all_tasks_are_apart_by_split_and_repeatable(tmp_path):
    config = DataConfig(character="all", train=12, test=12)
    rows = {split: list(SopSource(config).rows(split, range(12))) for split in SPLITS}
    for split in SPLITS:
        tasks = LEARNT if split == "train" else HELD
        assert {row["world"] for row in rows[split]} == {task.task for task in tasks}
        write_jsonl(tmp_path / f"{split}.jsonl", rows[split])
        assert len(list(iter_rows(tmp_path, split))) == 12
    assert list(SopSource(config).rows("train", [7])) == [rows["train"][7]]
    assert rows["train"][0]["messages"][0]["role"] == "system"
    assert [t.task for t in tasks_of("ferryman", "train")] == ["ferryman"]


def test_a_task_without_words_for_a_state_is_told():
    gate = load_task("gatekeeper")
    mute = {name: lines for name, lines in gate.utterances.items() if name != "Doubt"}
    with pytest.raises(HaggleError, match="nobody says 'Doubt'"):
        phrases_of(gate.model_copy(update={"utterances": mute}))

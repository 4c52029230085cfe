"""Public dialogues with their labels (PCA-D): to measure planners by, and to train on.

The dialogues of a task stay together: the PCA paper's split of 31, 5 and 17 tasks, drawn by chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from data_gen.config import LabelledConfig
from data_gen.language.phrasebook import Split
from data_gen.sop.rows import to_row
from haggle.core.agent import complete
from haggle.core.config import Record
from haggle.core.engine import Generation
from haggle.core.errors import HaggleError
from haggle.sop.definition import AGENT, START, USER, Definition
from haggle.sop.domain import SOP, Action, SopTurn, Talk
from haggle.sop.folds import three_ways
from haggle.sop.pca_d import PublicDialogue, Utterance, read_dialogue
from haggle.sop.task import Task

BEHIND_TASK = "-dialogue"  # in the name of a file: `airport-check_in-dialogue_0528.json`


class Labelled(Record):
    """A dialogue with its right answers; `opening` is what the agent did before the user spoke."""

    id: str
    task: Task
    opening: list[Action] = []
    turns: list[tuple[str, Action]]


def read_labelled(folder: Path) -> list[Labelled]:
    """The public dialogues of a directory. Raises HaggleError for a file that is none, and where
    there is none with a turn."""
    files = sorted(folder.glob("*.json"))
    found = [labelled(path.stem, read_dialogue(path)) for path in files]
    found = [one for one in found if one.turns]
    if not found:
        raise HaggleError("holds no dialogue (*.json)", where=str(folder), hint="check the path")
    return found


def labelled(name: str, dialogue: PublicDialogue) -> Labelled:
    """A public dialogue in turns: what the user said, and the agent's answer to it."""
    task = _playable(dialogue.definition, dialogue.utterances)
    opening: list[Action] = []
    turns: list[tuple[str, Action]] = []
    said, heard = "", ""
    for one in dialogue.utterances:
        label = one.label.removeprefix(AGENT).removeprefix(USER)
        if one.role == "User":
            said, heard = (f"{said} {one.text}".strip(), label)
            continue
        action = Action(user=heard or task.user_state[-1], act=label, say=one.text)
        if said:
            turns.append((said, action))
        elif not turns:
            opening.append(action)
        said, heard = "", ""
    return Labelled(id=name, task=task, opening=opening, turns=turns)


def _playable(definition: Definition, utterances: Sequence[Utterance]) -> Task:
    """A definition as a task: a name stands for its words, labels that it lacks are added, and
    marks of success that are no step of it are left out."""

    def all_names(names: Sequence[str], role: str, prefix: str) -> list[str]:
        said = [one.label.removeprefix(prefix) for one in utterances if one.role == role]
        return list(dict.fromkeys((*names, *said)))

    actions = all_names(definition.agent_action, "Agent", AGENT)
    states = all_names(definition.user_state, "User", USER)
    known = {AGENT + name for name in actions} | {USER + name for name in states}
    profile = definition.conversation_profile
    marks = [mark for mark in profile.success_mark if mark in known]
    data = definition.model_dump() | {"agent_action": actions, "user_state": states}
    data["conversation_profile"] = profile.model_copy(update={"success_mark": marks}).model_dump()
    return Task.model_validate(data | {"lines": {name: name for name in actions}})


def begun(one: Labelled) -> Talk:
    """The talk before the user's first words: what the agent did until then."""
    talk = Talk(one.task)
    for action in one.opening:
        taken(talk, "", action)
    talk.path = tuple(vertex for vertex in talk.path if vertex.startswith(AGENT))
    return talk


def taken(talk: Talk, line: str, action: Action) -> SopTurn | None:
    """The true turn; None for what a talk cannot take, a second start."""
    if action.act == START:
        return None
    return complete(SOP, talk, line, Generation(action.text()), "off")


def split_files(folder: Path, seed: int) -> dict[Split, list[Path]]:
    """The files of the tasks for training and for test: one of each task, then another of each.

    Raises HaggleError for a directory that holds no dialogue.
    """
    by_task: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.json")):
        by_task.setdefault(path.stem.rpartition(BEHIND_TASK)[0] or path.stem, []).append(path)
    train, _, test = three_ways(list(by_task), seed)
    if not train or not test:
        raise HaggleError(
            f"dialogues of {len(by_task)} tasks (*.json) are too few to hold some out",
            where=str(folder),
            hint="name the directory of PCA-D's dialogues",
        )
    for name, paths in by_task.items():
        random.Random(f"{name}/{seed}").shuffle(paths)
    return {"train": _in_turns(by_task, train), "test": _in_turns(by_task, test)}


def _in_turns(by_task: dict[str, list[Path]], names: Sequence[str]) -> list[Path]:
    ranked = [(rank, name) for name in names for rank in range(len(by_task[name]))]
    return [by_task[name][rank] for rank, name in sorted(ranked)]


def held_out(folder: Path, n: int) -> list[Labelled]:
    """`n` dialogues of the test tasks, or all where there are fewer; task by task, so that an
    engine reads each task once. The tasks are those that the recipes do not train on."""
    test = split_files(folder, LabelledConfig.model_fields["seed"].default)["test"]
    read = (labelled(path.stem, read_dialogue(path)) for path in test)
    found = islice((one for one in read if one.turns), n)
    return sorted(found, key=lambda one: one.id)


class LabelledSource:
    """One row is one public dialogue. Beyond their number they come again."""

    def __init__(self, config: LabelledConfig) -> None:
        self.files = split_files(Path(config.dialogues), config.seed)

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number; the tasks take turns."""
        for index in indices:
            yield _row(self._dialogue(split, index), split, index)

    def _dialogue(self, split: Split, index: int) -> Labelled:
        """Dialogue number `index`, or the first behind it in which the agent answers."""
        files = self.files[split]
        for number in range(len(files)):
            path = files[(index + number) % len(files)]
            one = labelled(path.stem, read_dialogue(path))
            if one.turns:
                return one
        hint = "check the files' roles and order"
        raise HaggleError(f"no dialogue of {split} answers its user", where="labelled", hint=hint)

    def report(self) -> dict[str, Any]:
        """Nothing is rejected."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def _row(one: Labelled, split: Split, index: int) -> dict[str, Any]:
    """A dialogue as it went. What the agent did before the user spoke answers no line, and is not
    learned."""
    talk = begun(one)
    turns = [turn for line, action in one.turns if (turn := taken(talk, line, action))]
    name = f"{split}-{index}-{one.id}"
    row = to_row(talk, turns, id=name, seed=index, player="people", teacher="people")
    answers = [message for message in row["messages"] if message["role"] == "assistant"]
    for message in answers[: len(answers) - len(turns)]:
        message["weight"] = 0
    return row

"""Quality control of dialogues (PCA, 4.2): corrections by people, and how far people agree.

A correction file is what one annotator changed in the dialogues of a data set:

    annotator: anna
    dialogues:
      - id: train-3-gatekeeper
        turns:
          - {turn: 2, user: HidesName}                 # another label; the rest stays
          - {turn: 4, player: Here is my pass., say: Thank you.}

A turn that is not named was looked at and is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest

AGREED = 0.95  # of the labels of a dialogue; below it the dialogue is left out (PCA, 4.2)
KEYS = ("user", "act", "player", "say")
Turn = dict[str, str]


class TurnCorrection(Record):
    """What is otherwise in a turn, counted from 1."""

    turn: int = Field(ge=1)
    user: str | None = None
    act: str | None = None
    player: str | None = None
    say: str | None = None


class DialogueCorrection(Record):
    """A dialogue that somebody looked at."""

    id: str
    turns: list[TurnCorrection] = []


class Corrections(Record):
    """The work of one annotator."""

    annotator: str
    dialogues: list[DialogueCorrection] = Field(min_length=1)


class Quality(Record):
    """Table 2 of the PCA paper. A scene is the row of labels of a dialogue.

    Accuracies are the shares of labels and of utterances that stayed. Edit distances are means: of
    labels in a scene, of words in an utterance.
    """

    dialogues: int
    scene_accuracy: float
    scene_distance: float
    utterance_accuracy: float
    utterance_distance: float


def load_corrections(path: str | Path) -> Corrections:
    """The corrections in a file. Raises HaggleError naming file and field."""
    return load_config(path, Corrections)


def corrected(rows: Mapping[str, dict[str, Any]], work: Corrections) -> dict[str, list[Turn]]:
    """The turns of the dialogues that an annotator looked at, as they are then.

    `rows` are the rows of the data set by id. Raises HaggleError naming dialogue and turn.
    """
    found = {}
    for dialogue in work.dialogues:
        where = f"{work.annotator}: {dialogue.id}"
        if dialogue.id not in rows:
            raise HaggleError("no such dialogue", where=where, hint=nearest(dialogue.id, rows))
        turns = turns_of(rows[dialogue.id])
        for change in dialogue.turns:
            if change.turn > len(turns):
                hint = f"the dialogue has {len(turns)}"
                raise HaggleError(f"there is no turn {change.turn}", where=where, hint=hint)
            turns[change.turn - 1] |= change.model_dump(include=set(KEYS), exclude_none=True)
        found[dialogue.id] = turns
    return found


def turns_of(row: Mapping[str, Any]) -> list[Turn]:
    """The turns of a row: user state, step, and what both say."""
    return [
        {"user": t["act"], "act": t["state"], "player": t["player"], "say": t["npc_dialogue"]}
        for t in row["turns"]
    ]


def quality(rows: Mapping[str, dict[str, Any]], after: Mapping[str, list[Turn]]) -> Quality:
    """How far corrected dialogues are from what was made."""
    scenes, lines = [], []
    for name, turns in after.items():
        before = turns_of(rows[name])
        scenes.append((_labels(before), _labels(turns)))
        lines += [
            (old[key].split(), new[key].split())
            for old, new in zip(before, turns, strict=True)
            for key in ("player", "say")
        ]
    labels = sum(len(old) for old, _ in scenes)
    kept = sum(a == b for old, new in scenes for a, b in zip(old, new, strict=True))
    return Quality(
        dialogues=len(after),
        scene_accuracy=kept / labels,
        scene_distance=sum(distance(*pair) for pair in scenes) / len(scenes),
        utterance_accuracy=sum(old == new for old, new in lines) / len(lines),
        utterance_distance=sum(distance(*pair) for pair in lines) / len(lines),
    )


def agreement(annotators: Sequence[Mapping[str, list[Turn]]]) -> dict[str, float]:
    """By dialogue that all of them looked at: the share of labels on which all agree."""
    shared = set.intersection(*(set(one) for one in annotators))
    found = {}
    for name in sorted(shared):
        together = list(zip(*(_labels(one[name]) for one in annotators), strict=True))
        found[name] = sum(len(set(labels)) == 1 for labels in together) / len(together)
    return found


def kept(agreed: Mapping[str, float]) -> list[str]:
    """The dialogues that stay: those with enough agreement."""
    return [name for name, share in agreed.items() if share >= AGREED]


def distance(one: Sequence[str], two: Sequence[str]) -> int:
    """The edit distance between two rows of words (Levenshtein)."""
    row = list(range(len(two) + 1))
    for number, word in enumerate(one, 1):
        before, row[0] = row[0], number
        for at, other in enumerate(two, 1):
            cost = before + (word != other)
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, cost)
    return row[-1]


def _labels(turns: Sequence[Turn]) -> list[str]:
    return [turn[key] for turn in turns for key in ("user", "act")]

"""The hand-written corpus of characters with a procedure: dialogues typed one by one.

    python -m data_gen.sop.corpus        # check every file

Files are `corpus/*.yaml` beside this module, one writer's voice each. A turn says what the player
typed, the user state that it is, the step that answers it and the character's line. Each dialogue
is played through the real turn: the graph must allow every step, the player's words must be
evidence of what they are labelled as and of nothing else, and the character may say no number out
of nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from data_gen.config import EVERY
from data_gen.corpus_check import check_files
from data_gen.language.phrasebook import Split
from data_gen.sop.facts import unknown_numbers
from data_gen.sop.rows import to_row
from data_gen.sop.wording import faithful
from haggle.core.agent import complete
from haggle.core.codec import matches
from haggle.core.config import Record, load_config
from haggle.core.engine import Generation
from haggle.core.errors import HaggleError, nearest
from haggle.sop.definition import START
from haggle.sop.domain import SOP, Action, SopTurn, Talk
from haggle.sop.task import Task, load_task

CORPUS = Path(__file__).parent / "corpus"


class CorpusTurn(Record):
    """One round: what the player typed and means, what the character does and says."""

    player: str = Field(min_length=1)
    user: str
    act: str
    say: str = Field(min_length=1)


class CorpusDialogue(Record):
    """One talk with the character of a task. `profile` replaces values of its user profile."""

    task: str
    profile: dict[str, str] = {}
    turns: list[CorpusTurn] = Field(min_length=3, max_length=10)


class CorpusFile(Record):
    """All dialogues of one writer's voice, with tasks of one split."""

    voice: str
    split: Split = "train"
    dialogues: list[CorpusDialogue] = Field(min_length=1)


def corpus_rows(
    split: Split | None = None, character: str = EVERY, files: list[Path] | None = None
) -> Iterator[dict[str, Any]]:
    """Rows of the corpus in the data set's form: of a split, and of one character or of all.

    Raises HaggleError naming file, dialogue and turn.
    """
    for path in files or sorted(CORPUS.glob("*.yaml")):
        for row in _rows(path, path.stat().st_mtime_ns):
            own = row["id"].startswith(f"corpus-{split}-") if split else True
            if own and character in {EVERY, row["world"]}:
                yield dict(row)


@cache
def _rows(path: Path, _changed_ns: int) -> tuple[dict[str, Any], ...]:
    """All rows of a file as it is since then."""
    loaded = load_config(path, CorpusFile)
    return tuple(
        _row(path.name, loaded, number, dialogue)
        for number, dialogue in enumerate(loaded.dialogues, start=1)
    )


def _row(name: str, file: CorpusFile, number: int, dialogue: CorpusDialogue) -> dict[str, Any]:
    where = f"{name}: dialogue {number}"
    talk = Talk(_task(dialogue, file.split, where))
    turns = [
        play_turn(talk, turn, f"{where}, turn {index}")
        for index, turn in enumerate(dialogue.turns, start=1)
    ]
    return to_row(
        talk,
        turns,
        id=f"corpus-{file.split}-{file.voice}-{number:03d}",
        seed=number,
        player=f"corpus-{file.voice}",
        teacher="corpus",
    )


def _task(dialogue: CorpusDialogue, split: Split, where: str) -> Task:
    """The task of a dialogue, with its profile. Raises HaggleError for one of the other split."""
    try:
        task = load_task(dialogue.task)
    except HaggleError as error:
        raise HaggleError(error.message, where=where, hint=error.hint) from None
    if task.split != split:
        hint = "keep the dialogues of held-out tasks in files of their own"
        raise HaggleError(f"{task.task!r} is a {task.split} task", where=where, hint=hint)
    for key in dialogue.profile:
        if key not in task.user_profile:
            hint = nearest(key, task.user_profile)
            raise HaggleError(f"profile: unknown key {key!r}", where=where, hint=hint)
    return task.model_copy(update={"user_profile": task.user_profile | dialogue.profile})


def play_turn(talk: Talk, turn: CorpusTurn, where: str) -> SopTurn:
    """One labelled turn through the real turn; anything that is wrong with it is an error."""
    _check_names(talk, turn, where)
    if not faithful(talk, turn.user, turn.player):
        hint = "say it in words that haggle/sop/evidence.py reads, or label it as what it is"
        raise HaggleError(
            f"{turn.player!r} is no evidence of {turn.user!r} alone", where=where, hint=hint
        )
    if unknown := unknown_numbers(turn.say, talk, turn.player):
        told = ", ".join(sorted(unknown))
        raise HaggleError(f"{turn.say!r}: nobody told the number {told}", where=where)
    raw = Action(user=turn.user, act=turn.act, say=turn.say).text()
    legal = SOP.legal(talk, "state")
    assert legal is not None, "guard state always holds to the procedure"
    if not matches(legal, raw):
        hint = "one line without quotation marks, at most 240 letters"
        raise HaggleError(f"{raw}: cannot be decoded", where=where, hint=hint)
    played = complete(SOP, talk, turn.player, Generation(raw), "state")
    if played.failed or played.interventions:
        raise HaggleError(f"fails {played.failed or played.interventions}: {raw}", where=where)
    return played


def _check_names(talk: Talk, turn: CorpusTurn, where: str) -> None:
    """Raise HaggleError for a state or step that the procedure does not allow now."""
    answers = talk.answers()
    at = f"after {talk.last or START}"
    if talk.ended:
        raise HaggleError("the talk has ended before", where=where, hint="leave the turn out")
    if turn.user not in answers:
        hint = nearest(turn.user, answers)
        raise HaggleError(f"no user state {turn.user!r} {at}", where=where, hint=hint)
    if turn.act not in answers[turn.user]:
        hint = f"after {turn.user}: " + ", ".join(answers[turn.user])
        raise HaggleError(f"no step {turn.act!r} {at}", where=where, hint=hint)


def main() -> None:
    """Check every file and say what it holds; the first problem of each dialogue is listed."""

    def turns(path: Path, loaded: CorpusFile, number: int, dialogue: CorpusDialogue) -> int:
        return len(_row(path.name, loaded, number, dialogue)["turns"])

    check_files(CorpusFile, CORPUS, lambda file: file.dialogues, turns, lambda file: file.split)


if __name__ == "__main__":
    main()

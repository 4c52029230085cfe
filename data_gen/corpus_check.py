"""The command that checks hand-written files: each dialogue is played, each mistake is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError

File = TypeVar("File", bound=Record)


def check_files(
    kind: type[File],
    folder: Path,
    dialogues: Callable[[File], Sequence[Any]],
    turns: Callable[[Path, File, int, Any], int],
    about: Callable[[File], str],
) -> NoReturn:
    """Check the files that the command line names, or all of a folder, and exit: 1 with a mistake.

    `turns` plays the dialogue of a number, counted from 1, and tells how many turns it has.
    """
    problems = 0
    for path in [Path(p) for p in sys.argv[1:]] or sorted(folder.glob("*.yaml")):
        try:
            loaded = load_config(path, kind)
        except HaggleError as error:
            problems += 1
            print(error)
            continue
        count = 0
        for number, dialogue in enumerate(dialogues(loaded), start=1):
            try:
                count += turns(path, loaded, number, dialogue)
            except HaggleError as error:
                problems += 1
                print(error)
        told = f"{len(dialogues(loaded))} dialogues, {count} turns"
        print(f"{path.name}: {about(loaded)}, {told}")
    sys.exit(1 if problems else 0)

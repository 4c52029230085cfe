"""The public files of the PCA paper's data (PCA-D): task definitions and dialogues, as JSON.

Their keys and vertex prefixes are Chinese or English; records have the English ones. Names of
actions and states stay as they are, but for the start of a procedure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from haggle.core.config import Record, parse, read_mapping
from haggle.core.errors import HaggleError
from haggle.sop.definition import AGENT, START, USER, Definition

PROFILE = {
    "代理身份": "agent_identity",
    "代理目标": "agent_goal",
    "成功标记": "success_mark",
    "其他知识": "other_knowledge",
}
PREFIXES = {"代理.": AGENT, "用户.": USER}
STARTS = {"开始"}
LEFT_OUT = "/n"  # some files have this where a line of Mermaid ends
_STARTING = re.compile(rf"{re.escape(AGENT)}({'|'.join(STARTS)})(?=\s*-)")


class Utterance(Record):
    """What was said in a dialogue, and the action or user state that it is."""

    role: Literal["Agent", "User"]
    text: str
    label: str


class PublicDialogue(Record):
    """A dialogue, with the task definition that its file repeats."""

    definition: Definition
    utterances: list[Utterance]


def read_definition(path: str | Path) -> Definition:
    """The task definition in a file. It may still have `problems`: several public files do.

    Raises HaggleError naming file and field.
    """
    data = read_mapping(Path(path))
    return parse(_definition(data, str(path)), Definition, str(path))


def read_definitions(folder: str | Path) -> list[Definition]:
    """The task definitions of a directory, by file name. Raises HaggleError where it has none."""
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise HaggleError(
            "holds no task definition (*.json)", where=str(folder), hint="check the path"
        )
    return [read_definition(path) for path in files]


def read_dialogue(path: str | Path) -> PublicDialogue:
    """The dialogue in a file. Raises HaggleError naming file and field."""
    data = read_mapping(Path(path))
    told = data.pop("dialogue", None)
    rows = told.get("dialogues") if isinstance(told, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise HaggleError("dialogue.dialogues: must be a list of utterances", where=str(path))
    record = {
        "definition": _definition(data, str(path)),
        "utterances": [
            {
                "role": row.get("role"),
                "text": row.get("script_annotation"),
                "label": _name(row.get("action_annotation")),
            }
            for row in rows
        ],
    }
    return parse(record, PublicDialogue, str(path))


def _definition(data: dict[str, Any], where: str) -> dict[str, Any]:
    """A definition's data with the names of the English form."""
    for key, kind in (
        ("user_profile", dict), ("conversation_profile", dict), ("agent_action", list),
        ("user_state", list), ("sop", dict),
    ):  # fmt: skip
        if not isinstance(data.get(key), kind):
            what = "a mapping" if kind is dict else "a list"
            raise HaggleError(f"{key}: must be {what}", where=where, hint="see the paper's A.1")
    profile = {PROFILE.get(key, key): value for key, value in data["conversation_profile"].items()}
    marks = profile.get("success_mark", [])
    profile["success_mark"] = [_name(m) for m in (marks if isinstance(marks, list) else [marks])]
    return data | {
        "user_profile": {key: _text(value) for key, value in data["user_profile"].items()},
        "conversation_profile": {
            key: value if key == "success_mark" else _text(value) for key, value in profile.items()
        },
        "agent_action": [_name(name) for name in data["agent_action"]],
        "sop": _sop(data["sop"]),
    }


def _sop(data: dict[str, Any]) -> dict[str, Any]:
    found = dict(data)
    if isinstance(found.get("vertex"), list):
        found["vertex"] = [_name(vertex) for vertex in found["vertex"]]
    if isinstance(following := found.get("adjacency_list"), dict):
        found["adjacency_list"] = {
            _name(vertex): [_name(other) for other in others]
            if isinstance(others, list)
            else others
            for vertex, others in following.items()
        }
    if isinstance(text := found.get("mermaid"), str):
        text = text.replace(LEFT_OUT, "\n")
        for written, meant in PREFIXES.items():
            text = text.replace(written, meant)
        found["mermaid"] = _STARTING.sub(AGENT + START, text)
    return found


def _name(name: Any) -> Any:
    """A vertex or name with the English prefix and start."""
    if not isinstance(name, str):
        return name
    for written, meant in PREFIXES.items():
        if name.startswith(written):
            name = meant + name.removeprefix(written)
    bare = name.removeprefix(AGENT)
    return name.replace(bare, START) if bare in STARTS else name


def _text(value: Any) -> Any:
    """A value of a profile in words: ages are numbers there, and some values lists."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, int | float) else value

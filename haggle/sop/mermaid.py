"""A procedure as Mermaid text, the form that the PCA paper's files have.

    graph TD
      Agent.AskName -->|User.GivesName| Agent.AskPass

A label on an arrow is the user state between two actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Edge = tuple[str, str]

_HEAD = re.compile(r"(graph|flowchart)(\s+(TD|TB|BT|LR|RL))?\s*;?")
_NAME = r"[^\s|>\[\](){}-][^\s|>\[\](){}]*?"
_ARROW = re.compile(
    rf"(?P<one>{_NAME})\s*--+>\s*(\|\s*(?P<label>[^|]*?)\s*\|)?\s*(?P<two>{_NAME})\s*;?"
)


def edges_of(text: str, strict: bool = False) -> list[Edge]:
    """The edges of a Mermaid graph, each once, in the order written.

    With `strict` raises ValueError naming the line that is no edge, and a user state that stands
    between two steps in two places; else such lines are left out.
    """
    found: dict[Edge, None] = {}
    between: dict[str, dict[str, set[str]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        said = line.split("%%")[0].strip()
        arrow = _ARROW.fullmatch(said)
        if arrow is None:
            if strict and said and not _HEAD.fullmatch(said):
                raise ValueError(f"mermaid, line {number}: no edge: {said!r}")
            continue
        one, label, two = arrow["one"], arrow["label"], arrow["two"]
        found |= dict.fromkeys([(one, label), (label, two)] if label else [(one, two)])
        if label:
            between.setdefault(label, {}).setdefault(one, set()).add(two)
    for label, places in between.items() if strict else ():
        if len({frozenset(ends) for ends in places.values()}) > 1:
            steps = " and ".join(places)
            raise ValueError(f"mermaid: two vertices are named {label!r}: behind {steps}")
    return list(found)


def following_of(edges: Sequence[Edge]) -> dict[str, list[str]]:
    """The adjacency list of some edges."""
    found: dict[str, list[str]] = {}
    for one, two in edges:
        found.setdefault(one, []).append(two)
        found.setdefault(two, [])
    return found


def mermaid_of(following: Mapping[str, Sequence[str]], user: str = "User.") -> str:
    """Mermaid text of an adjacency list; `edges_of` reads the same graph from it."""
    lines = ["graph TD"]
    for one, others in following.items():
        if one.startswith(user):
            continue
        for other in others:
            answers = following.get(other, ()) if other.startswith(user) else ()
            lines += [f"  {one} -->|{other}| {two}" for two in answers] or [f"  {one} --> {other}"]
    return "\n".join(lines) + "\n"

"""What of an answer is decided before a model speaks: text that a grammar forces.

A grammar is a tree of nodes (`haggle.grammar.nodes`). `after` takes text off its front, and what is
left is a grammar again. So an answer is a row of forced texts and open spans: only the open ones
need a model.
"""

from __future__ import annotations

from functools import lru_cache, reduce

from haggle.grammar.nodes import Chars, Join, Node, OneOf, Text, Times

DONE = Text("")  # nothing is left to say
_CACHED = 4096


@lru_cache(maxsize=_CACHED)
def forced(node: Node) -> tuple[str, Node]:
    """The text that every answer begins with, and the grammar of what follows it."""
    text = ""
    while (character := _only(node)) and (rest := _step(node, character)) is not None:
        text, node = text + character, rest
    return text, node


def after(node: Node | None, text: str) -> Node | None:
    """The grammar of what may follow `text`; None where no answer begins so."""
    return reduce(lambda left, c: None if left is None else _step(left, c), text, node)


def is_free(node: Node) -> bool:
    """Whether the next character may be almost any: free words, which nothing decides soon."""
    return any(isinstance(head, Chars) and head.negated for head in _heads(node))


def _only(node: Node) -> str:
    """The one character that must come next; "" where there are several, or the end may be."""
    if _may_be_empty(node):
        return ""
    found = {_single(head) for head in _heads(node)}
    return found.pop() if len(found) == 1 else ""


def _single(head: Text | Chars) -> str:
    if isinstance(head, Text):
        return head.text[0]
    first, last = head.ranges[0]
    return first if len(head.ranges) == 1 and first == last and not head.negated else ""


def _heads(node: Node) -> list[Text | Chars]:
    """What an answer may begin with."""
    if isinstance(node, Text):
        return [node] if node.text else []
    if isinstance(node, Chars):
        return [node]
    if isinstance(node, Times):
        return _heads(node.part) if node.high != 0 else []
    heads: list[Text | Chars] = []
    for part in node.parts:
        heads += _heads(part)
        if isinstance(node, Join) and not _may_be_empty(part):
            break
    return heads


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Text):
        return not node.text
    if isinstance(node, Chars):
        return False
    if isinstance(node, Times):
        return node.low == 0 or _may_be_empty(node.part)
    quantifier = all if isinstance(node, Join) else any
    return quantifier(_may_be_empty(part) for part in node.parts)


def _step(node: Node, character: str) -> Node | None:
    """The grammar behind one character (Brzozowski's derivative)."""
    if isinstance(node, Text):
        return Text(node.text[1:]) if node.text.startswith(character) else None
    if isinstance(node, Chars):
        inside = any(first <= character <= last for first, last in node.ranges)
        return DONE if inside != node.negated else None
    if isinstance(node, OneOf):
        return _one_of([_step(part, character) for part in node.parts])
    if isinstance(node, Times):
        if node.high == 0 or (begun := _step(node.part, character)) is None:
            return None
        left = None if node.high is None else node.high - 1
        return _join(begun, Times(node.part, max(node.low - 1, 0), left))
    return _step_in_row(node.parts, character)


def _step_in_row(parts: tuple[Node, ...], character: str) -> Node | None:
    options: list[Node | None] = []
    for at, part in enumerate(parts):
        begun = _step(part, character)
        options.append(None if begun is None else _join(begun, *parts[at + 1 :]))
        if not _may_be_empty(part):
            break
    return _one_of(options)


def _join(*parts: Node) -> Node:
    row: list[Node] = []
    for part in parts:
        row += part.parts if isinstance(part, Join) else [part]
    row = [p for p in row if p != DONE and not (isinstance(p, Times) and p.high == 0)]
    return row[0] if len(row) == 1 else Join(tuple(row)) if row else DONE


def _one_of(options: list[Node | None]) -> Node | None:
    some = tuple(dict.fromkeys(option for option in options if option is not None))
    return OneOf(some) if len(some) > 1 else some[0] if some else None

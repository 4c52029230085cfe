"""A grammar of phrases: templates, compiled to automata, that tile a line of words.

A template is words with alternatives, options, named sets and slots:

    [i|we] (accept|agree to) [the] (order|terms)      [ ] may be left out, ( | ) is one of
    thank @you , <name>                               @you is a named set, <name> a slot

A slot is filled by code: for a place in the line it says where it may end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Slot = Callable[[int], Iterable[int]]  # a place in the line -> the places where the slot may end

_PART = re.compile(r"[\[\]()|]|<\w+>|[^\s\[\]()|]+")
_CLOSING = {"(": ")", "[": "]"}


@dataclass(eq=False, slots=True)
class _Node:
    """A word of a template, or the start of all: what may follow it, whose phrases end here."""

    words: dict[str, list[_Node]] = field(default_factory=dict)
    slots: dict[str, list[_Node]] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)

    def lead_to(self, word: str, node: _Node) -> None:
        table = self.slots if _is_slot(word) else self.words
        table.setdefault(word, []).append(node)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a template: where it begins and ends, and whether it may be nothing (Glushkov)."""

    first: tuple[tuple[str, _Node], ...] = ()
    last: tuple[_Node, ...] = ()
    empty: bool = True

    def then(self, other: _Piece) -> _Piece:
        for node in self.last:
            for word, following in other.first:
                node.lead_to(word, following)
        return _Piece(
            self.first + other.first if self.empty else self.first,
            self.last + other.last if other.empty else other.last,
            self.empty and other.empty,
        )

    def either(self, other: _Piece) -> _Piece:
        return _Piece(self.first + other.first, self.last + other.last, self.empty or other.empty)


class _State:
    """Nodes that the same words lead to. What follows is worked out once, and remembered."""

    def __init__(self, nodes: Iterable[_Node], known: dict[frozenset[int], _State]) -> None:
        self._known = known
        self._after: dict[str, _State] = {}
        self._next: dict[str, dict[int, _Node]] = {}
        roles: set[str] = set()
        for node in nodes:
            roles |= node.roles
            for word, following in (*node.words.items(), *node.slots.items()):
                self._next.setdefault(word, {}).update((id(n), n) for n in following)
        self.roles = frozenset(roles)
        self.slots = frozenset(filter(_is_slot, self._next))

    def first(self) -> frozenset[str]:
        """The words, slots and sets that may follow."""
        return frozenset(self._next)

    def after(self, word: str) -> _State | None:
        """The state that a word, or a slot by its name, leads to."""
        state = self._after.get(word)
        if state is None and word in self._next:
            nodes = self._next[word]
            key = frozenset(nodes)
            if key not in self._known:
                self._known[key] = _State(nodes.values(), self._known)
            state = self._after[word] = self._known[key]
        return state


def _is_slot(word: str) -> bool:
    return word[0] in "<@" and len(word) > 1


class Grammar:
    """Phrases by role. A set is a list of templates that others name as `@set`."""

    def __init__(
        self, roles: Mapping[str, Sequence[str]], sets: Mapping[str, Sequence[str]], slots: set[str]
    ) -> None:
        """Raises ValueError for a template that cannot be read, naming it."""
        self._known = {f"<{name}>" for name in slots} | {f"@{name}" for name in sets}
        self.words: set[str] = set()
        self.root = self._start(roles)
        self.sets = {f"@{name}": self._start({name: sets[name]}) for name in sets}
        self.beginning = self._beginning()

    def _beginning(self) -> dict[str, frozenset[str]]:
        """The sets that may begin with a word, or with a slot, by that word or slot."""
        first = {name: state.first() for name, state in self.sets.items()}
        grown = True
        while grown:
            grown = False
            for name, begin in first.items():
                more = {word for other in begin & first.keys() for word in first[other]} - begin
                grown = grown or bool(more)
                first[name] = begin | more
        found: dict[str, set[str]] = {}
        for name, begin in first.items():
            for word in begin:
                found.setdefault(word, set()).add(name)
        return {word: frozenset(names) for word, names in found.items()}

    def _start(self, roles: Mapping[str, Sequence[str]]) -> _State:
        root = _Node()
        for role, templates in roles.items():
            for template in templates:
                piece = _Parser(template, self._known, self.words).piece()
                for word, node in piece.first:
                    root.lead_to(word, node)
                for node in piece.last:
                    node.roles.add(role)
        return _State([root], {})

    def line(
        self, words: Sequence[str], slots: Mapping[str, Slot], joined: Collection[int] = ()
    ) -> Line:
        """A line to find phrases in; `slots` fill the places in angle brackets, by name. No phrase
        of a tiling begins at a `joined` place."""
        return Line(words, self, slots, joined)


class Line:
    """The phrases of a grammar in one line. What is found is remembered, place by place."""

    def __init__(
        self,
        words: Sequence[str],
        grammar: Grammar,
        slots: Mapping[str, Slot],
        joined: Collection[int] = (),
    ) -> None:
        self.words = words
        self._joined = joined
        self._grammar = grammar
        self._slots = {f"<{name}>": slot for name, slot in slots.items()}
        self._found: dict[tuple[str, int], set[int]] = {}
        self._open: dict[int, frozenset[str]] = {}
        self._phrases: dict[int, set[tuple[int, str]]] = {}

    def phrases(self, start: int) -> set[tuple[int, str]]:
        """The phrases that begin at a place: where each ends, and its role."""
        if start not in self._phrases:
            self._phrases[start] = self._walk(self._grammar.root, start)
        return self._phrases[start]

    def _walk(self, root: _State, start: int) -> set[tuple[int, str]]:
        found: set[tuple[int, str]] = set()
        here, seen = [(root, start)], {(id(root), start)}
        while here:
            state, at = here.pop()
            if at > start:
                found.update((at, role) for role in state.roles)
            if at == len(self.words):
                continue
            then = [(state.after(self.words[at]), at + 1)]
            if state.slots:
                for name in state.slots & self._opening(at):
                    following = state.after(name)
                    then += [(following, end) for end in self._ends(name, at)]
            for after, end in then:
                if after is not None and (id(after), end) not in seen:
                    seen.add((id(after), end))
                    here.append((after, end))
        return found

    def _opening(self, at: int) -> frozenset[str]:
        """The slots, and the sets, that may begin at a place."""
        if at not in self._open:
            slots = {name for name in self._slots if self._ends(name, at)}
            begin = self._grammar.beginning
            sets = [begin.get(word, frozenset()) for word in (self.words[at], *slots)]
            self._open[at] = frozenset(slots).union(*sets)
        return self._open[at]

    def _ends(self, name: str, at: int) -> set[int]:
        """Where a slot or a set that begins at a place may end."""
        key = (name, at)
        if key not in self._found:
            self._found[key] = set()  # a set that names itself ends here
            if name in self._slots:
                self._found[key] = set(self._slots[name](at))
            else:
                self._found[key] = {end for end, _ in self._walk(self._grammar.sets[name], at)}
        return self._found[key]

    def covers(self, start: int, end: int, wanted: str, beside: Iterable[str]) -> bool:
        """Whether phrases of the roles `wanted` and `beside`, at least one of them `wanted`, tile
        the words from `start` to `end` without a gap."""
        allowed = {wanted, *beside}
        reached = {start: False}  # a place -> whether a wanted phrase leads there
        for at in range(start, end):
            if at not in reached or at in self._joined:
                continue
            for stop, role in self.phrases(at):
                if stop <= end and role in allowed:
                    reached[stop] = reached.get(stop, False) or reached[at] or role == wanted
        return reached.get(end, False)

    def tiles(self, start: int, end: int, roles: Iterable[str]) -> bool:
        """Whether phrases of these roles tile the words from `start` to `end`."""
        allowed = set(roles)
        reached = {start}
        for at in range(start, end):
            if at in reached and at not in self._joined:
                reached |= {s for s, role in self.phrases(at) if s <= end and role in allowed}
        return end in reached


class _Parser:
    """Reads one template. Raises ValueError naming it."""

    def __init__(self, template: str, known: Collection[str], words: set[str]) -> None:
        self._template, self._known, self._words = template, known, words
        self._parts = _PART.findall(template)
        self._at = 0

    def piece(self) -> _Piece:
        """The whole template."""
        found = self._either()
        if self._at != len(self._parts):
            raise ValueError(f"brackets do not pair in {self._template!r}")
        if found.empty:
            raise ValueError(f"{self._template!r} may be nothing at all")
        return found

    def _either(self) -> _Piece:
        options = [_Piece()]
        while self._at < len(self._parts) and self._parts[self._at] not in ")]":
            part = self._parts[self._at]
            self._at += 1
            if part == "|":
                options.append(_Piece())
            else:
                options[-1] = options[-1].then(self._part(part))
        found = options[0]
        for option in options[1:]:
            found = found.either(option)
        return found

    def _part(self, part: str) -> _Piece:
        if part in _CLOSING:
            inside = self._either()
            if self._parts[self._at : self._at + 1] != [_CLOSING[part]]:
                raise ValueError(f"brackets do not pair in {self._template!r}")
            self._at += 1
            return inside.either(_Piece()) if part == "[" else inside
        if not _is_slot(part):
            self._words.add(part)
        elif part not in self._known:
            raise ValueError(f"unknown {part} in {self._template!r}")
        node = _Node()
        return _Piece(((part, node),), (node,), empty=False)

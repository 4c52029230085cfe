"""MCTS and MCTS+SOP (PCA-M, Algorithm 1): roll-outs over short actions and user states.

What an expansion finds is kept by the key of its position, so a position seen before, on another
path, asks the model nothing. The paper takes the root's child with the highest UCT at the end;
this takes the one with the highest value, because the second term of UCT speaks for what was
tried least.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic

from haggle.planning.problem import Choice, E, Position
from haggle.planning.reading import STATE, read_name
from haggle.planning.search import Search, candidates, hear, share, state_question, vote_questions
from haggle.planning.tree import Node, back_up, best, reward, select, settled


@dataclass(frozen=True, slots=True)
class Found:
    """An action of an expanded position: the share of yes votes, and the user state behind it."""

    act: str
    votes: float
    heard: str


def choose(search: Search[E]) -> None:
    """Roll out as often as the budget allows; `search.best` is the best action at any time."""
    if search.config.iterations == 0:
        return
    search.at = hear(search)
    search.best = _first(search)
    _Tree(search, Node(search.at)).grow()


def _first(search: Search[E]) -> Choice | None:
    """What is done where not even one roll-out gets to an end."""
    if not search.problem.sop:
        return None
    advised = search.problem.advised(search.at) or search.problem.actions(search.at)
    return Choice(search.at.heard, advised[0]) if advised else None


@dataclass
class _Tree(Generic[E]):
    search: Search[E]
    root: Node[E]
    kept: dict[Hashable, tuple[tuple[Found, ...], int]] = field(default_factory=dict)

    def grow(self) -> None:
        """The roll-outs. They end early when the choice cannot change any more."""
        search, rounds = self.search, self.search.config.iterations
        names = candidates(search, self.root.at)
        if len(names) < 2:
            search.early = True
            search.best = Choice(search.at.heard, names[0]) if names else search.best
            return
        self._expand(self.root, names)
        for number in range(rounds):
            self._roll_out()
            search.rounds = number + 1
            if settled(self.root, rounds - search.rounds):
                search.early = search.rounds < rounds
                return

    def _roll_out(self) -> None:
        """Selection, expansion and simulation (the best reward at each level), and back up."""
        depth = self.search.config.depth
        path = select(self.root, self.search.config.exploration, depth)
        while not path[-1].over and len(path) <= depth:
            node = path[-1]
            if node.children is None:
                self._expand(node)
            if not node.children:
                node.over = True
                break
            path.append(max(node.children, key=lambda child: child.reward))
        back_up(path)
        self._take()

    def _take(self) -> None:
        leading = best(self.root)
        if leading is not None:
            self.search.best = Choice(self.root.at.heard, leading.act)

    def _expand(self, node: Node[E], names: list[str] | None = None) -> None:
        """Give a node its children, with their rewards and the user state behind each."""
        key = self.search.problem.key(node.at)
        if key in self.kept:
            found, calls = self.kept[key]
            self.search.asker.cost.saved += calls
        else:
            before = self.search.asker.cost.calls
            names = candidates(self.search, node.at) if names is None else names
            found = self._valued(node.at, names)
            self.kept[key] = found, self.search.asker.cost.calls - before
        node.children = [self._child(node, one) for one in found]
        if node is self.root:
            self._take()

    def _valued(self, at: Position[E], names: list[str]) -> tuple[Found, ...]:
        """The votes on all actions, and what the user does after each, in one batch."""
        search, problem = self.search, self.search.problem
        after = {name: problem.step(at, name) for name in names}
        states = {
            name: () if episode.ended else problem.states(Position(episode))
            for name, episode in after.items()
        }
        votes = [question for name in names for question in vote_questions(search, at, name)]
        unsure = [name for name in names if len(states[name]) > 1]
        replies = [state_question(Position(after[name]), states[name], name) for name in unsure]
        texts = search.asker.ask([*votes, *replies], drawn=True)
        heard = {
            name: read_name(text, STATE, states[name]) or states[name][0]
            for name, text in zip(unsure, texts[len(votes) :], strict=True)
        }
        per = search.config.votes
        return tuple(
            Found(
                name,
                share(texts[number * per : (number + 1) * per]),
                heard.get(name, next(iter(states[name]), "")),
            )
            for number, name in enumerate(names)
        )

    def _child(self, node: Node[E], found: Found) -> Node[E]:
        problem = self.search.problem
        after = problem.step(node.at, found.act)
        success = problem.reached(node.at, after)
        value = reward(found.votes, success=success, terminal=after.ended)
        return Node(Position(after, heard=found.heard), found.act, value, after.ended)

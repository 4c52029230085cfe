"""ToT: user states and actions are layers of drawn nodes, and a vote chooses a path.

The paper writes a response for every path before the vote. Here the one that won gets words.
"""

from __future__ import annotations

from collections import Counter

from haggle.planning.asking import Question
from haggle.planning.problem import Choice, E, Position
from haggle.planning.reading import PATH, one_of, read_name
from haggle.planning.search import Search, action_question, line_question, read_action, read_line
from haggle.planning.tree import Node

Path = tuple[Node[E], Node[E]]


def choose(search: Search[E]) -> None:
    """Draw user states, actions behind each, and take the path with most votes."""
    root = Node(search.at)
    root.children = _heard(search)
    _act(search, root.children)
    paths = [(state, node) for state in root.children for node in state.children or ()]
    paths.sort(key=lambda path: -path[1].visits)
    if not paths:
        return
    search.best = _choice(paths[0])
    if len(paths) == 1:
        search.early = True
        return
    search.best = _choice(paths[_voted(search, paths)])


def _heard(search: Search[E]) -> list[Node[E]]:
    """The first layer: what the line may be taken for."""
    at, names = search.at, search.problem.states(search.at)
    if len(names) < 2:
        return [Node(Position(at.episode, at.line, name)) for name in names] or [Node(at)]
    asked = [line_question(search)] * search.config.candidates
    texts = search.asker.ask(asked, drawn=True)
    found = Counter(name for text in texts if (name := read_line(search, text)))
    return [Node(Position(at.episode, at.line, name), visits=n) for name, n in found.items()]


def _act(search: Search[E], layer: list[Node[E]]) -> None:
    """The second layer: the actions drawn behind each user state, all in one batch."""
    problem, n = search.problem, search.config.candidates
    open_nodes = []
    for node in layer:
        names = problem.actions(node.at)
        node.children = [Node(node.at, name, visits=1) for name in names] if len(names) < 2 else []
        if len(names) > 1:
            open_nodes.append(node)
    asked = [action_question(search, node.at) for node in open_nodes for _ in range(n)]
    texts = search.asker.ask(asked, drawn=True)
    for number, node in enumerate(open_nodes):
        said = texts[number * n : (number + 1) * n]
        found = Counter(name for text in said if (name := read_action(search, node.at, text)))
        node.children = [Node(node.at, name, visits=count) for name, count in found.items()]


def _voted(search: Search[E], paths: list[Path[E]]) -> int:
    """The number of the path with most votes; of equals, the one drawn more often."""
    told = tuple((state.at.heard, node.act) for state, node in paths)
    numbers = tuple(str(number + 1) for number in range(len(paths)))
    asked = Question("vote", search.at, one_of(PATH, numbers), (("paths", told),))
    texts = search.asker.ask([asked] * search.config.votes, drawn=True)
    votes = Counter(read_name(text, PATH, numbers) for text in texts)
    return max(range(len(paths)), key=lambda number: votes[numbers[number]])


def _choice(path: Path[E]) -> Choice:
    return Choice(path[0].at.heard, path[1].act)

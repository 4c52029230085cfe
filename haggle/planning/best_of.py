"""Best-of-k: several answers of CoT are drawn, and the one that the votes value most is taken."""

from __future__ import annotations

from collections import Counter

from haggle.planning.problem import Choice, E, Position
from haggle.planning.search import Search, read_whole, share, vote_questions, whole_question
from haggle.planning.tree import reward


def choose(search: Search[E]) -> None:
    """Draw answers without words, value each different one, take the best."""
    config = search.config
    drawn = search.asker.ask([whole_question(search, spoken=False)] * config.best_of, drawn=True)
    counted = Counter(choice for text in drawn if (choice := read_whole(search, text)))
    ranked = [choice for choice, _ in counted.most_common()]
    search.best = ranked[0] if ranked else None
    if len(ranked) < 2:
        search.early = True
        return
    positions = [Position(search.at.episode, search.at.line, choice.heard) for choice in ranked]
    asked = [
        question
        for at, choice in zip(positions, ranked, strict=True)
        for question in vote_questions(search, at, choice.act)
    ]
    votes = search.asker.ask(asked, drawn=True)

    def worth(number: int) -> tuple[float, int]:
        choice, at = ranked[number], positions[number]
        said = votes[number * config.votes : (number + 1) * config.votes]
        after = search.problem.step(at, choice.act)
        success = search.problem.reached(at, after)
        return reward(share(said), success=success, terminal=after.ended), counted[choice]

    search.best = Choice(*_names(ranked[max(range(len(ranked)), key=worth)]))


def _names(choice: Choice) -> tuple[str, str]:
    return choice.heard, choice.act

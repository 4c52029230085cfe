"""CoT and CoT+SOP: user state, action and words in one answer."""

from __future__ import annotations

from haggle.planning.problem import E
from haggle.planning.search import Search, read_whole, whole_question


def choose(search: Search[E]) -> None:
    """Take the model's one answer."""
    spoken = search.problem.writing(search.at, "") is None
    text = search.asker.ask([whole_question(search, spoken=spoken)])[0]
    search.best = read_whole(search, text)

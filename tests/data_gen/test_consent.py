"""Words that withhold consent, against the labels of the data: they seldom hold up a true yes."""

from __future__ import annotations

from collections.abc import Iterator

from data_gen.corpus_io import corpus_rows
from data_gen.generate import DataConfig, make_dialogue
from haggle.consent import withholds

REVIEW, SALE = "FINAL_CHECK", "COMMIT_SALE"


def corpus_answers() -> Iterator[tuple[str, str]]:
    """What people of the test voices say to a review, and the state that it leads to."""
    for row in corpus_rows("test"):
        yield from ((t["player"], t["state"]) for t in row["turns"] if t["last"] == REVIEW)


def scripted_answers() -> Iterator[tuple[str, str]]:
    """The same of scripted players of the test split."""
    for number in range(120):
        _, dialogue = make_dialogue(DataConfig(seed=5, noise=0.4), "test", number)
        yield from ((t.player, t.state) for t in dialogue.turns if t.last == REVIEW)


def share(lines: list[tuple[str, str]], sale: bool) -> float:
    """The share of yeses (or of all other answers) that words alone would hold up."""
    held = [withholds(said) for said, state in lines if (state == SALE) is sale]
    assert len(held) >= 20
    return sum(held) / len(held)


def test_a_yes_is_rarely_held_up_and_many_a_no_is():
    corpus, scripted = list(corpus_answers()), list(scripted_answers())
    assert share(corpus, sale=True) <= 0.05
    assert share(corpus, sale=False) >= 0.6
    assert share(scripted, sale=True) <= 0.1
    assert share(scripted, sale=False) >= 0.25

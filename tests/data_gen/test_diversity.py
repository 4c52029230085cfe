"""Variety of lines: distinct n-grams, self-BLEU, near duplicates and samples, as defined."""

from __future__ import annotations

import random
from typing import Any

import pytest

from data_gen.dataset.diversity import (
    NearDuplicates,
    NGrams,
    Reservoir,
    self_bleu,
    shingles_of,
    words_of,
)

pytest.importorskip("datasketch", reason='pip install -e ".[data]"')
pytest.importorskip("sacrebleu", reason='pip install -e ".[data]"')


def test_distinct_n_is_different_n_grams_by_n_grams_within_lines() -> None:
    grams = NGrams()
    grams.add("The rope, the rope!")
    grams.add("the ROPE please")
    # the rope the rope | the rope please
    assert grams.distinct() == {1: 3 / 7, 2: 3 / 5, 3: 3 / 3}
    assert grams.different() == {1: 3, 2: 3, 3: 3}
    assert grams.vocabulary == 3 and grams.once == 1 and grams.words == 7


def test_distinct_n_does_not_depend_on_when_words_are_merged(monkeypatch) -> None:
    lines = [f"I take {n % 7} of item {n % 13} and {n % 5} more" for n in range(400)]

    def counted() -> tuple[Any, Any]:
        grams = NGrams()
        for line in lines:
            grams.add(line)
        return grams.distinct(), grams.marks

    whole = counted()
    monkeypatch.setattr("data_gen.dataset.diversity.FLUSH", 10)
    assert counted() == whole
    assert set(whole[1]) == {1000, 2000}  # of 3,200 words


def test_variety_is_zero_of_nothing_and_no_error() -> None:
    grams = NGrams()
    assert grams.add("...") == [] and grams.distinct() == {1: 0.0, 2: 0.0, 3: 0.0}


def test_repeated_lines_are_those_said_before_but_for_casing_and_punctuation() -> None:
    grams = NGrams()
    for line in ("Yes, please.", "yes please", "yes", "no"):
        grams.add(line)
    assert grams.repeats == 1


def test_self_bleu_is_what_sacrebleu_gives_against_all_other_lines() -> None:
    from sacrebleu.metrics import BLEU

    lines = ["two axes, please", "two axes and a rope, please", "Two ropes and a map", "yes",
             "yes yes yes", "how much is the map?", "how much is the rope?"]  # fmt: skip
    bleu = BLEU(lowercase=True, effective_order=True)
    scores = [bleu.sentence_score(x, lines[:i] + lines[i + 1 :]).score for i, x in enumerate(lines)]
    assert self_bleu(lines) == pytest.approx(sum(scores) / len(scores))
    assert self_bleu(["the same line here"] * 3) == pytest.approx(100)
    assert self_bleu(["alone"]) is None


def test_near_duplicates_above_the_threshold_are_found_and_few_others() -> None:
    rng = random.Random(1)

    def repeated(changed: int) -> int:
        """How many of 100 texts of 100 words are found again with so many of them changed."""
        near = NearDuplicates(0.8)
        for number in range(100):
            words = [f"w{number}x{n}" for n in range(100)]
            near.add(set(words))
            for place in rng.sample(range(100), changed):
                words[place] = "other" + words[place]
            near.add(set(words))
        return near.found

    assert repeated(5) >= 98  # similarity 95 / 105
    assert repeated(20) <= 10  # 80 / 120


def test_near_duplicates_differ_by_a_word_others_by_more() -> None:
    said = (
        "good day i would like two lanterns and a rope and perhaps a map of the north road".split()
    )
    near = NearDuplicates()
    assert not near.add(shingles_of([said], 3))
    assert near.add(shingles_of([[*said[:-1], "street"]], 3))
    assert not near.add(shingles_of([[w.upper() if i % 3 else w for i, w in enumerate(said)]], 3))
    assert (near.found, near.seen) == (1, 3)


def test_shingles_stay_within_a_line_and_short_lines_are_whole() -> None:
    assert shingles_of([["a", "b", "c"], ["d"]], 2) == {"a b", "b c", "d"}
    assert words_of("I'll take 2, Ünal’s!") == ["i'll", "take", "2", "ünal’s"]


def test_a_reservoir_is_a_fair_sample_that_its_seed_fixes() -> None:
    def drawn(seed: str) -> list[int]:
        sample: Reservoir[int] = Reservoir(10, seed)
        for number in range(1000):
            sample.add(number)
        return sample.kept

    assert drawn("a") == drawn("a") != drawn("b")
    everything = [number for seed in range(300) for number in drawn(str(seed))]
    assert sum(everything) / len(everything) == pytest.approx(499.5, abs=25)

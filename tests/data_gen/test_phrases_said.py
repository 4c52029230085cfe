"""No phrase of the phrasebook is idle: some move fills its slots."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from data_gen.config import DataConfig
from data_gen.language.phrasebook import SPLITS, Phrasebook, expansions, load_phrasebook, slots
from data_gen.sources import make_dialogue

SEEN = 5  # how often an act has to occur before its phrases are judged


@pytest.fixture(scope="module")
def asked():
    """The slots that moves give and demand, by act, from dialogues of every kind of player."""
    given: dict[str, set[tuple[frozenset[str], frozenset[str]]]] = defaultdict(set)
    times: Counter[str] = Counter()
    wording = Phrasebook.wording

    def noted(self, act, split, rng, voice="plain", slots=frozenset(), must=frozenset()):
        given[act].add((slots, must))
        times[act] += 1
        return wording(self, act, split, rng, voice, slots, must)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Phrasebook, "wording", noted)
        config = DataConfig(seed=1, drills=0.2, doubts=0.3, questions=0.2, slips=0.2)
        for index in range(450):
            make_dialogue(config, "train", index)
    return {act: ways for act, ways in given.items() if times[act] >= SEEN}


def test_most_acts_occur(asked):
    assert len(asked) > 0.85 * len(load_phrasebook().player)


@pytest.mark.parametrize("split", SPLITS)
def test_every_phrase_can_be_said(asked, split):
    idle = [
        f"{act}: {phrase}"
        for act, ways in asked.items()
        for lines in load_phrasebook().player[act].of(split).values()
        for phrase in lines
        if not any(
            must <= slots(wording) <= given
            for given, must in ways
            for wording in expansions(phrase)
        )
    ]
    assert not idle

"""Conversations keep their slots."""

from __future__ import annotations

import threading

import pytest

from serving.engines.slots import Slots, answers_at_once

SHOP = "You keep a shop of many wonders. " * 3


def use(slots: Slots, prompt: str) -> int:
    with slots.held(prompt) as slot:
        return slot


def test_a_conversation_finds_its_slot_again():
    slots = Slots(3)
    names = ("Ann", "Bob", "Eve")
    first = {name: use(slots, SHOP + name * 20) for name in names}
    assert len(set(first.values())) == 3
    for name in reversed(names):
        assert use(slots, SHOP + name * 20 + " and more") == first[name]


def test_a_newcomer_to_the_same_shop_takes_nobodys_slot():
    slots = Slots(2)
    assert use(slots, SHOP + "hi") != use(slots, SHOP + "ho")


def test_a_newcomer_takes_the_slot_that_was_idle_longest():
    slots = Slots(2)
    old = use(slots, SHOP + "old" * 30)
    use(slots, SHOP + "recent" * 30)
    assert use(slots, SHOP + "new") == old


def test_who_finds_all_slots_busy_waits_for_one():
    slots = Slots(1)
    got: list[int] = []
    with slots.held("a"):
        waiting = threading.Thread(target=lambda: got.append(use(slots, "b")))
        waiting.start()
        waiting.join(0.05)
        assert not got
    waiting.join(5)
    assert got == [0]


def test_newcomers_to_a_shop_are_each_given_a_slot_of_their_own():
    slots = Slots(2)
    taken = []
    for _ in range(2):
        with slots.taken(SHOP) as slot:
            taken.append(slot)
    assert set(taken) == {0, 1}
    assert use(slots, SHOP + "hi") != use(slots, SHOP + "ho")


def test_a_newcomer_does_not_wait_where_all_slots_are_busy():
    slots = Slots(1)
    with slots.held("a"), slots.taken("b") as slot:
        assert slot is None


@pytest.mark.parametrize(
    ("slots", "threads", "on_gpu", "expected"),
    [(1, 2, False, 1), (16, 2, False, 4), (16, 2, True, 16), (3, 4, False, 3)],
)
def test_a_processor_makes_a_few_answers_together_and_a_gpu_all(slots, threads, on_gpu, expected):
    assert answers_at_once(slots, threads, on_gpu) == expected

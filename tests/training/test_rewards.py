"""What an answer earns: the right one most, a sale behind the player's back least."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.grammar.json_text import DecodeError
from training.config import GrpoConfig
from training.recipes import load_train_config
from training.rewards import REWARDS, RewardWeights, reward_functions, rewards, total

NAMES = ("Sharp Axe", "Mana Potion", "Type 40 Coil")
OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",4]],"say":"__CART__, __PRICE__ __CURRENCY__."}'
CHECK = (
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__ __CURRENCY__, yes?"}'
)
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"A pleasure."}'
BID = '{"last":"OFFER_SELL","state":"NEGOTIATE","bid":600,"say":"__PRICE__ __CURRENCY__, no less."}'
SHOW = '{"last":"","state":"SHOW_ITEMS","show":["Mana Potion"],"say":"Look: __ITEMS__."}'
TALK = '{"last":"OFFER_SELL","state":"CASUAL","say":"Rain again."}'
CLEARED = '{"last":"OFFER_SELL","state":"CASUAL","cart":[],"say":"All put back."}'
BYE = '{"last":"NEGOTIATE","state":"END","say":"Go."}'
RIGHT = (OFFER, CHECK, SALE, BID, SHOW, TALK, CLEARED, BYE)


def of(answer: str, right: str) -> dict[str, float | None]:
    return rewards(answer, right, NAMES)


@pytest.mark.parametrize("right", RIGHT)
def test_the_right_answer_has_every_reward_and_loses_nothing(right: str) -> None:
    found = of(right, right)
    assert list(found) == list(REWARDS)
    assert found.pop("sale") == 0
    assert found.pop("bid") == (1 if right == BID else None)
    assert set(found.values()) == {1}


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("answer", [*RIGHT, "", "{}", "no", '{"last":"","state":"WAIT","say":""}'])
def test_no_other_answer_is_worth_as_much(right: str, answer: str) -> None:
    if answer != right:
        assert total(answer, right, NAMES) < total(right, right, NAMES)


def test_other_words_for_the_right_answer_are_worth_the_same() -> None:
    other = OFFER.replace("__CART__, __PRICE__", "Done: __CART__ at __PRICE__")
    assert total(other, OFFER, NAMES) == total(OFFER, OFFER, NAMES)


def test_an_unconfirmed_sale_is_worth_less_than_silence() -> None:
    for honest in (True, False):
        last = "OFFER_SELL" if honest else "FINAL_CHECK"  # reported falsely, to look confirmed
        sale = f'{{"last":"{last}","state":"COMMIT_SALE","say":"Sold."}}'
        assert of(sale, CHECK)["sale"] == -1
        assert total(sale, CHECK, NAMES) < total("", CHECK, NAMES) == 0
    assert of(SALE, SALE)["sale"] == 0


def test_a_sale_that_was_not_asked_for_costs_half_of_that() -> None:
    haggled = BID.replace("OFFER_SELL", "FINAL_CHECK")
    sale = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Sold."}'
    assert of(sale, haggled)["sale"] == -0.5
    assert total(TALK, haggled, NAMES) > total(sale, haggled, NAMES)


@pytest.mark.parametrize(
    "cart",
    [
        '[["Sharp Axe",5]]',
        '[["Sharp Axe",4],["Dragon Egg",1]]',
        '[["Dragon Egg",4]]',
        "[]",
    ],
)
def test_the_right_state_with_another_cart_keeps_the_state_alone(cart: str) -> None:
    found = of(OFFER.replace('[["Sharp Axe",4]]', cart), OFFER)
    assert (found["state"], found["cart"], found["format"]) == (1, 0, 1)


def test_emptying_a_cart_that_should_stay_loses_the_cart() -> None:
    found = of(TALK.replace('"say"', '"cart":[],"say"'), TALK)
    assert (found["state"], found["cart"]) == (1, 0)
    assert of(TALK, CLEARED)["cart"] == 0


def test_a_cart_counts_in_the_right_state_alone() -> None:
    assert of(OFFER, CHECK)["cart"] == 0 == of(TALK, CHECK)["cart"]


@pytest.mark.parametrize(
    "text",
    [
        OFFER[:-1],  # cut off
        OFFER + " ",
        f"{OFFER}{SALE}",
        f"Sure! {OFFER}",
        OFFER.replace(":", ": ", 1),
        OFFER.replace('"say"', '"mood":"good","say"'),
        OFFER.replace('"state":"OFFER_SELL",', "").replace("{", '{"state":"OFFER_SELL",'),
        OFFER.replace('"cart":', '"cart":[["Mana Potion",1]],"cart":'),
    ],
)
def test_what_is_not_written_as_the_format_writes_it_loses_the_format(text: str) -> None:
    assert of(text, OFFER)["format"] == 0
    assert total(text, OFFER, NAMES) < total(OFFER, OFFER, NAMES)


def test_what_cannot_be_read_is_worth_nothing() -> None:
    for text in ("", "[" * 5000, "[]", '{"last":3}', OFFER.replace('"state"', '"stat"')):
        found = of(text, BID)
        assert set(found.values()) == {0}, text
        assert total(text, BID, NAMES) == 0


def test_a_wrong_last_state_costs_that_alone() -> None:
    found = of(CHECK.replace("OFFER_SELL", "NEGOTIATE"), CHECK)
    assert [name for name, value in found.items() if value == 0] == ["last", "sale"]


@pytest.mark.parametrize(("bid", "worth"), [("600", 1), ("601", 0), ("null", 0), ('"10%"', 0)])
def test_a_bid_is_the_players_number(bid: str, worth: int) -> None:
    assert of(BID.replace("600", bid), BID)["bid"] == worth


@pytest.mark.parametrize(
    ("said", "worth"),
    [
        ("__CART__ for __PRICE__.", 1),
        ("A Type 40 Coil makes __PRICE__.", 1),  # the number is the item's name
        ("That is 520 for you.", 0),
        ("__PRICE__, or 3 for __PRICE__.", 0),
        ("__CART__ it is.", 0),  # no price, where one is due
        ("__PRICE__ and __TOTAL__.", 0),  # no such placeholder
        (" ", 0),
    ],
)
def test_a_spoken_line_states_amounts_by_placeholder(said: str, worth: int) -> None:
    answer = f'{{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"{said}"}}'
    assert of(answer, CHECK)["spoken"] == worth


def test_goods_are_shown_by_placeholder() -> None:
    assert of(SHOW.replace("__ITEMS__", "__PRICES__"), SHOW)["spoken"] == 1
    assert of(SHOW.replace("__ITEMS__", "potions"), SHOW)["spoken"] == 0


def test_the_nearer_to_right_the_more_it_is_worth() -> None:
    order = [
        OFFER,
        OFFER.replace("__PRICE__", "520"),
        OFFER.replace('"Sharp Axe",4', '"Sharp Axe",5'),
        '{"last":"","state":"CASUAL","say":"Hm."}',
        "nothing to read",
        '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Sold for 5."}',
    ]
    worth = [total(answer, OFFER, NAMES) for answer in order]
    assert all(more > less for more, less in pairwise(worth)), worth


def test_weights_count_in_the_sum() -> None:
    only_state = RewardWeights(**dict.fromkeys(REWARDS, 0.0) | {"state": 3.0})
    assert total(OFFER, OFFER, NAMES, only_state) == 3
    assert total(CHECK, OFFER, NAMES, only_state) == 0


def test_trl_gets_one_named_function_for_each_reward() -> None:
    functions = reward_functions()
    assert [f.__name__ for f in functions] == list(REWARDS) == list(RewardWeights.model_fields)
    batch: dict[str, Any] = {
        "completions": [OFFER, SALE],
        "right": [OFFER, OFFER],
        "names": [list(NAMES), []],
        "line": ["cart []\nplayer: a", "cart []\nplayer: a"],
        "prompts": ["", ""],
        "completion_ids": [[], []],
        "trainer_state": None,
    }
    table = {f.__name__: f(**batch) for f in functions}
    assert table["state"] == [1, 0] and table["sale"] == [0, -1] and table["bid"] == [None, None]


def test_a_right_answer_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(DecodeError):
        rewards(OFFER, "nonsense")


def test_weights_are_settings_with_names(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "method: grpo\ndataset: x\noutput_dir: y\nrewards: {stat: 2}\n", encoding="utf-8"
    )
    with pytest.raises(HaggleError) as caught:
        load_train_config(path)
    assert "stat" in str(caught.value) and "state" in caught.value.hint
    path.write_text(
        "method: grpo\ndataset: x\noutput_dir: y\nrewards: {state: 2}\n", encoding="utf-8"
    )
    config = load_train_config(path)
    assert isinstance(config, GrpoConfig)
    assert config.rewards.state == 2 and config.rewards.sale == RewardWeights().sale

"""Purses over HTTP: filled by the game, emptied by sales."""

from __future__ import annotations

import pytest

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__ for __PRICE__ __CURRENCY__."}'
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"So __CART__ for __PRICE__ __CURRENCY__, yes?"}'
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'


def fill(game, name, purse):
    return game.put(f"/players/{name}", json={"purse": purse})


def test_a_purse_that_is_too_small_buys_nothing_until_it_is_filled(serve):
    with serve((OFFER, REVIEW, SALE, SALE)) as game:
        assert fill(game, "ann", 179.99).json() == {"name": "ann", "purse": 179.99}
        session = game.open(player="ann")
        assert game.look(session)["purse"] == 179.99
        game.say(session, "two ropes")
        game.say(session, "deal")
        refused = game.say(session, "yes").json()
        assert refused["withheld"]["reason"] == "purse" and refused["sale"] is None
        assert "Your purse does not hold that much." in refused["say"]
        assert game.look(session)["purse"] == 179.99
        assert fill(game, "ann", 200).status_code == 200
        bought = game.confirm(session, game.look(session)["review"]).json()
        assert bought["sale"]["price"] == 180 and game.look(session)["purse"] == 20


def test_a_purse_is_that_of_the_player_in_all_sessions_and_no_other_player_s(serve):
    with serve(()) as game:
        fill(game, "ann", 5)
        first, second = game.open(player="ann"), game.open(player="ann")
        other = game.open(player="bob")
        fill(game, "ann", 7.5)
        assert [game.look(s)["purse"] for s in (first, second, other)] == [7.5, 7.5, None]
        assert fill(game, "ann", None).json()["purse"] is None
        assert fill(game, "guild/ann%20x", 1).json()["name"] == "guild/ann x"


@pytest.mark.parametrize("purse", [-1, "much", 1e13, [1]])
def test_what_is_no_money_is_told(serve, purse):
    with serve(()) as game:
        answer = fill(game, "ann", purse)
        assert answer.status_code == 422 and answer.json()["error"]["where"].startswith("purse")
        assert game.put("/players/ann", json={}).status_code == 422

"""Merchants over HTTP: a real server, a real client."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from haggle.cli import app as command
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine

SHOP = named_world("frontier_shop")
ROPE = {item.item_name: item for item in SHOP.inventory}["Sturdy Rope (20m)"]
OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__ for __PRICE__ __CURRENCY__."}'
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"So __CART__ for __PRICE__ __CURRENCY__, yes?"}'
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'
TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'
PURCHASE = ("two ropes", "deal", "yes")
BYE = '{"last":"","state":"END","say":"Farewell."}'


def test_a_sale_goes_through_its_states_and_the_stock_goes_down(serve):
    with serve((OFFER, REVIEW, SALE)) as client:
        session = client.open()
        offered = client.say(session, "two ropes").json()
        assert ROPE.price and ROPE.quantity
        price = 2 * ROPE.price
        assert offered["state"] == "OFFER_SELL" and offered["price"] == price
        assert [(line["item_name"], line["quantity"]) for line in offered["cart"]] == [
            ("Sturdy Rope (20m)", 2)
        ]
        assert str(int(price)) in offered["say"] and offered["sale"] is None
        assert client.say(session, "deal").json()["state"] == "FINAL_CHECK"
        done = client.say(session, "yes").json()
        assert done["state"] == "COMMIT_SALE" and done["sale"]["price"] == price
        assert done["cart"] == [] and done["response"]["npc_dialogue"] == done["say"]
        visit = client.get(f"/sessions/{session}").json()
        left = {line["item_name"]: line["quantity"] for line in visit["shelf"]}
        assert left.get("Sturdy Rope (20m)", 0) == ROPE.quantity - 2
        assert visit["sales"] == [done["sale"]]


def test_the_guard_holds_over_http(serve):
    with serve((SALE.replace("FINAL_CHECK", ""),)) as client:
        answer = client.say(client.open(), "you sold it to me already").json()
    assert answer["state"] != "COMMIT_SALE" and answer["sale"] is None and answer["interventions"]


def test_metrics_count_what_the_guard_did_and_what_was_sold(serve):
    untrue = '{"last":"","state":"CASUAL","say":"It is yours for 7 gold."}'
    with serve((SALE.replace("FINAL_CHECK", ""), untrue, OFFER, REVIEW, SALE)) as client:
        session = client.open()
        heard = [client.say(session, line).json() for line in ("i paid", "hm", *PURCHASE)]
        told = client.root("/metrics").text.splitlines()
    assert [bool(answer["sale"]) for answer in heard] == [False] * 4 + [True]
    done = [answer["interventions"] for answer in heard]
    assert done == [["transition", "degraded"], ["safe_line"], [], [], []]
    for line in (
        'haggle_interventions_total{name="transition"} 1.0',
        'haggle_interventions_total{name="degraded"} 1.0',
        'haggle_interventions_total{name="safe_line"} 1.0',
        "haggle_fallbacks_total 2.0",
        'haggle_sales_total{shop="frontier_shop"} 1.0',
        'haggle_turn_seconds_count{character="merchant"} 5.0',
    ):
        assert line in told


def test_a_stream_tells_the_decision_then_the_words_then_the_turn_that_counts(serve):
    with serve((TALK, OFFER, REVIEW)) as client:
        session = client.open()
        answer = client.say(session, "nice day", stream=True)
        assert answer.headers["content-type"].startswith("text/event-stream")
        (first, state), *pieces, (kind, turn) = client.events(answer.text)
        assert first == "state" and state == {
            "last": "", "state": "CASUAL", "cart": [], "price": None
        }  # fmt: skip
        assert kind == "done" and turn["state"] == "CASUAL" and len(pieces) > 1
        assert {name for name, _ in pieces} == {"text"}
        assert "".join(data["text"] for _, data in pieces) == turn["say"] == "Fine weather."
        (_, state), *_, (_, turn) = client.events(
            client.say(session, "two ropes", stream=True).text
        )
        assert state == {key: turn[key] for key in ("last", "state", "cart", "price")}
        assert state["cart"][0]["quantity"] == 2 and state["price"] == 2 * (ROPE.price or 0)


def test_a_game_brings_its_own_shop(serve):
    shop = {
        "name": "cellar", "merchant": {"name": "Mo", "persona": "Mo sells."}, "currency": "nuts",
        "items": [{"item_id": "a", "item_name": "Acorn Cap", "price": 3, "quantity": 5}],
    }  # fmt: skip
    order = OFFER.replace("Sturdy Rope (20m)", "Acorn Cap")
    with serve((order,)) as client:
        session = client.open(shop=shop)
        answer = client.say(session, "two caps").json()
        assert answer["price"] == 6 and "6 nuts" in answer["say"]
        bad = client.post("/sessions", json={"shop": shop | {"items": []}})
        assert bad.status_code == 400 and "items" in bad.json()["error"]["message"]
        unknown = client.post("/sessions", json={"shop": "frontier_shpo"})
        assert unknown.status_code == 404 and "frontier_shop" in unknown.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("body", "where"),
    [({"text": ""}, "text"), ({}, "text"), ({"text": "x" * 501}, "text"), ({"txt": "a"}, "text")],
)
def test_a_body_that_is_none_is_told_by_field(serve, body, where):
    with serve(()) as client:
        answer = client.post(f"/sessions/{client.open()}/turns", json=body)
    assert answer.status_code == 422 and where in answer.json()["error"]["where"]


def test_what_cannot_be_done_is_told_and_costs_nothing(serve):
    with serve((TALK, BYE)) as client:
        assert client.say("nobody").status_code == 404
        session = client.open()
        assert client.say(session).status_code == 200
        assert client.say(session, "bye").json()["ended"]
        ended = client.say(session)
        assert ended.status_code == 409 and "ended" in ended.json()["error"]["message"]
        assert client.delete(f"/sessions/{session}").status_code == 204
        assert client.delete(f"/sessions/{session}").status_code == 404
        other = client.open()
        failed = client.say(other)  # the engine has no answer left
        assert failed.status_code == 503 and failed.json()["error"]["hint"]
        assert client.events(client.say(other, stream=True).text)[-1][0] == "error"
        assert client.get(f"/sessions/{other}").json()["state"] == ""


def test_every_refusal_has_the_same_form(serve):
    class Broken(ScriptedEngine):
        def stream(self, request: Any) -> Any:
            yield "{"
            raise RuntimeError("out of memory")

    with serve(Broken([])) as client:
        session = client.open()
        for answer in (client.get("/nowhere"), client.put("/sessions"), client.say(session)):
            assert (
                answer.status_code >= 400 and {"message", "hint"} <= answer.json()["error"].keys()
            )
        kind, told = client.events(client.say(session, stream=True).text)[-1]
        assert kind == "error" and "log" in told["hint"]
        assert client.get(f"/sessions/{session}").json()["state"] == ""


def test_who_has_heard_the_end_of_a_turn_may_say_the_next_line(serve):
    class Broken(ScriptedEngine):
        def stream(self, request: Any) -> Any:
            raise RuntimeError("out of memory")
            yield

    with serve(ScriptedEngine([TALK] * 60)) as client:
        session = client.open()
        for _ in range(30):
            with client.stream(
                "POST", f"/sessions/{session}/turns", json={"text": "well?", "stream": True}
            ) as answer:
                assert answer.status_code == 200
                for line in answer.iter_lines():
                    if line == "event: done":
                        break
    with serve(Broken([])) as client:
        session = client.open()
        assert {client.say(session).status_code for _ in range(30)} == {500}


def test_a_player_who_leaves_amid_a_line_leaves_no_session_waiting(serve, endless):
    engine = endless([TALK])
    with serve(engine) as client:
        session = client.open()
        body = {"text": "well?", "stream": True}
        with client.stream("POST", f"/sessions/{session}/turns", json=body) as answer:
            next(answer.iter_lines())
        assert engine.closed.wait(10)
        for _ in range(100):
            if (again := client.say(session)).status_code != 409:
                break
            time.sleep(0.05)
        assert again.status_code == 200, again.text


def test_one_line_at_a_time(serve):
    class Slow(ScriptedEngine):
        def stream(self, request: Any) -> Any:
            started.set()
            assert go.wait(30)
            yield from super().stream(request)

    started, go = threading.Event(), threading.Event()
    with serve(Slow([TALK, TALK])) as client:
        session, first = client.open(), []
        asking = threading.Thread(target=lambda: first.append(client.say(session)))
        asking.start()
        assert started.wait(30)
        for stream in (False, True):
            assert client.say(session, stream=stream).status_code == 409
        go.set()
        asking.join(30)
        assert first[0].status_code == 200 and client.say(session).status_code == 200


def test_the_session_unused_longest_makes_room(serve):
    with serve((TALK,), limits={"sessions": 2}) as client:
        one, two = client.open(), client.open()
        client.get(f"/sessions/{one}")
        three = client.open()
        found = [client.get(f"/sessions/{s}").status_code for s in (one, two, three)]
        assert found == [200, 404, 200]
        assert client.root("/readyz").json()["sessions"] == 2


def test_idle_sessions_are_forgotten(serve):
    with serve((TALK,), limits={"idle_s": 0.05}) as client:
        first = client.open()
        time.sleep(0.1)
        client.open()
        assert client.get(f"/sessions/{first}").status_code == 404


def test_a_key_and_an_origin_where_they_are_asked_for(serve):
    origin = {"Origin": "https://game.example"}
    with serve((TALK,), api_key="secret", origins=("https://game.example",)) as client:
        assert client.root("/healthz").status_code == 200
        refused = client.post("/sessions", json={})
        assert refused.status_code == 401 and "Bearer" in refused.json()["error"]["hint"]
        client.headers["Authorization"] = "Bearer secret"
        answer = client.post("/sessions", json={}, headers=origin)
        assert answer.status_code == 201
        assert answer.headers["access-control-allow-origin"] == "https://game.example"
        del client.headers["Authorization"]
        for wrong in ("Bearer other", "Bearer s\xe9cret"):
            sent = [(b"Authorization", wrong.encode("latin-1"))]
            assert client.get("/shops", headers=sent).status_code == 401


def test_the_documentation_names_every_route(serve):
    with serve(()) as client:
        paths = client.root("/openapi.json").json()["paths"]
        assert client.root("/docs").status_code == 200
    assert set(paths) == {
        "/healthz", "/readyz", "/metrics", "/v1/characters", "/v1/shops", "/v1/shops/{name}",
        "/v1/shops/{name}/restock", "/v1/shops/{name}/export", "/v1/shops/{name}/sales",
        "/v1/sessions", "/v1/sessions/{number}", "/v1/sessions/{number}/turns",
        "/v1/sessions/{number}/receipts", "/v1/sessions/{number}/confirm", "/v1/models",
        "/v1/chat/completions", "/v1/players/{name}",
    }  # fmt: skip


def reviewed(client: Any) -> tuple[str, str]:
    """A session with two ropes under review, and the id of the review."""
    session = client.open()
    client.say(session, "two ropes")
    return session, client.say(session, "deal").json()["review"]


def test_where_words_close_nothing_the_call_does(serve):
    with serve((OFFER, REVIEW, SALE, TALK), confirmation="explicit") as client:
        session, review = reviewed(client)
        kept = client.say(session, "yes, deal").json()
        assert kept["sale"] is None and kept["withheld"]["reason"] == "confirmation"
        assert client.confirm(session, review).status_code == 409  # renewed: an older id
        sold = client.confirm(session, kept["review"]).json()
        assert sold["state"] == "COMMIT_SALE" and sold["sale"]["price"] == 2 * (ROPE.price or 0)
        assert sold["review"] is None and "Sold" in sold["say"]
        assert client.confirm(session, review).status_code == 409  # still an older id
        assert len(client.get(f"/sessions/{session}").json()["sales"]) == 1


def test_only_the_review_on_the_table_can_be_confirmed(serve):
    changed = OFFER.replace('"last":""', '"last":"FINAL_CHECK"').replace(",2]", ",3]")
    with serve((OFFER, REVIEW, changed, OFFER, REVIEW)) as client:
        session, review = reviewed(client)
        client.say(session, "make it three ropes")
        answer = client.confirm(session, review)
        assert answer.status_code == 409 and "no review" in answer.json()["error"]["message"]
        other, foreign = reviewed(client)
        assert client.confirm(session, foreign).status_code == 409
        assert client.confirm(other, "x").status_code == 409
        assert client.confirm(other, 7).status_code == 422
        assert client.confirm(other, "").status_code == 422
        assert client.confirm("nobody", foreign).status_code == 404
        assert client.get(f"/sessions/{other}").json()["sales"] == []


def test_two_calls_at_once_sell_once(serve):
    with serve((OFFER, REVIEW)) as client:
        session, review = reviewed(client)
        answers: list[Any] = []
        calls = [
            threading.Thread(target=lambda: answers.append(client.confirm(session, review)))
            for _ in range(8)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        codes = {answer.status_code for answer in answers}
        assert len(answers) == 8 and 200 in codes and codes <= {200, 409}
        [sale] = client.get(f"/sessions/{session}").json()["sales"]
        told = [answer.json()["sale"] for answer in answers if answer.status_code == 200]
        assert told == [sale] * len(told)


def test_a_withheld_sale_tells_the_game_why(serve):
    with serve((OFFER, REVIEW, SALE)) as client:
        session, _ = reviewed(client)
        answer = client.say(session, "yes, for 3 shells").json()
        assert answer["withheld"] == {"reason": "number", "words": "3 shells"}


def test_an_unknown_confirmation_is_told_with_the_right_ones(serve):
    result = CliRunner().invoke(command, ["serve", "--confirmation", "explicite"])
    assert "unknown confirmation 'explicite'" in str(result.exception)
    assert "explicit" in str(getattr(result.exception, "hint", ""))


def test_no_sale_is_told_while_it_may_still_be_withheld(serve):
    with serve((OFFER, REVIEW, SALE)) as client:
        session, _ = reviewed(client)
        answer = client.events(client.say(session, "sure, and pigs fly", stream=True).text)
        assert [kind for kind, _ in answer] == ["state", "text", "done"]
        assert answer[0][1]["state"] == answer[2][1]["state"] == "FINAL_CHECK"
        assert answer[1][1]["text"] == answer[2][1]["say"] and "Done" not in answer[2][1]["say"]


@pytest.mark.parametrize(
    ("body", "where", "hint"),
    [
        ({"shops": "frontier_shop"}, "shops", "did you mean 'shop'?"),
        ({"world": "frontier_shop"}, "world", "shop"),
        ({"shop": 7}, "shop.str", "see /docs"),
    ],
)
def test_a_wrong_key_is_answered_with_the_right_ones(serve, body, where, hint):
    with serve((TALK,)) as client:
        answer = client.post("/sessions", json=body)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["where"] == where and hint in error["hint"]


def test_a_route_of_another_method_says_which(serve):
    with serve((TALK,)) as client:
        answer = client.get("/sessions")
    assert answer.status_code == 405 and "POST" in answer.json()["error"]["hint"]

"""Merchants over HTTP: a real server, a real client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from typer.testing import CliRunner

from haggle.cli import app as command
from haggle.core.engine import Engine
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine
from serving.http_api import make_app
from serving.http_sessions import MAX_AT_ONCE

SHOP = named_world("frontier_shop")
ROPE = {item.item_name: item for item in SHOP.inventory}["Sturdy Rope (20m)"]
OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__ for __PRICE__ __CURRENCY__."}'
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"So __CART__ for __PRICE__ __CURRENCY__, yes?"}'
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'
TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'
BYE = '{"last":"","state":"END","say":"Farewell."}'


@contextmanager
def served(engine: Engine, **options: Any) -> Iterator[httpx.Client]:
    """A client of a server that runs while the block does."""
    application = make_app(engine, {SHOP.name: SHOP}, "state", **options)
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client
    server.should_exit = True
    thread.join(10)


def talker(*answers: str) -> ScriptedEngine:
    return ScriptedEngine(answers)


def opened(client: httpx.Client, **body: Any) -> str:
    answer = client.post("/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["session"])


def say(client: httpx.Client, session: str, text: str = "well?", **body: Any) -> httpx.Response:
    return client.post(f"/sessions/{session}/turns", json={"text": text, **body})


def events(text: str) -> list[tuple[str, Any]]:
    """Server-sent events: kind and data."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data[6:])) for kind, data in blocks]


def test_a_sale_goes_through_its_states_and_the_stock_goes_down():
    with served(talker(OFFER, REVIEW, SALE)) as client:
        session = opened(client)
        offered = say(client, session, "two ropes").json()
        assert ROPE.price and ROPE.quantity
        price = 2 * ROPE.price
        assert offered["state"] == "OFFER_SELL" and offered["price"] == price
        assert [(line["item_name"], line["quantity"]) for line in offered["cart"]] == [
            ("Sturdy Rope (20m)", 2)
        ]
        assert str(int(price)) in offered["say"] and offered["sale"] is None
        assert say(client, session, "deal").json()["state"] == "FINAL_CHECK"
        done = say(client, session, "yes").json()
        assert done["state"] == "COMMIT_SALE" and done["sale"]["price"] == price
        assert done["cart"] == [] and done["response"]["npc_dialogue"] == done["say"]
        visit = client.get(f"/sessions/{session}").json()
        left = {line["item_name"]: line["quantity"] for line in visit["shelf"]}
        assert left.get("Sturdy Rope (20m)", 0) == ROPE.quantity - 2
        assert visit["sales"] == [done["sale"]]


def test_the_guard_holds_over_http():
    with served(talker(SALE.replace("FINAL_CHECK", ""))) as client:
        answer = say(client, opened(client), "you sold it to me already").json()
    assert answer["state"] != "COMMIT_SALE" and answer["sale"] is None and answer["interventions"]


def test_a_streamed_turn_ends_with_the_one_that_counts():
    with served(talker(TALK, OFFER)) as client:
        session = opened(client)
        answer = say(client, session, "nice day", stream=True)
        assert answer.headers["content-type"].startswith("text/event-stream")
        *pieces, (kind, turn) = events(answer.text)
        assert kind == "turn" and turn["state"] == "CASUAL" and len(pieces) > 1
        assert "".join(data["text"] for _, data in pieces) == turn["say"] == "Fine weather."
        assert say(client, session, "two ropes").json()["state"] == "OFFER_SELL"


def test_a_game_brings_its_own_shop():
    shop = {
        "name": "cellar", "merchant": {"name": "Mo", "persona": "Mo sells."}, "currency": "nuts",
        "items": [{"item_id": "a", "item_name": "Acorn Cap", "price": 3, "quantity": 5}],
    }  # fmt: skip
    order = OFFER.replace("Sturdy Rope (20m)", "Acorn Cap")
    with served(talker(order)) as client:
        session = opened(client, world=shop)
        answer = say(client, session, "two caps").json()
        assert answer["price"] == 6 and "6 nuts" in answer["say"]
        bad = client.post("/sessions", json={"world": shop | {"items": []}})
        assert bad.status_code == 400 and "items" in bad.json()["error"]["message"]
        unknown = client.post("/sessions", json={"world": "frontier_shpo"})
        assert unknown.status_code == 404 and "frontier_shop" in unknown.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("body", "where"),
    [({"text": ""}, "text"), ({}, "text"), ({"text": "x" * 501}, "text"), ({"txt": "a"}, "text")],
)
def test_a_body_that_is_none_is_told_by_field(body, where):
    with served(talker()) as client:
        answer = client.post(f"/sessions/{opened(client)}/turns", json=body)
    assert answer.status_code == 422 and where in answer.json()["error"]["where"]


def test_what_cannot_be_done_is_told_and_costs_nothing():
    with served(talker(TALK, BYE)) as client:
        assert say(client, "nobody").status_code == 404
        session = opened(client)
        assert say(client, session).status_code == 200
        assert say(client, session, "bye").json()["ended"]
        ended = say(client, session)
        assert ended.status_code == 409 and "ended" in ended.json()["error"]["message"]
        assert client.delete(f"/sessions/{session}").status_code == 204
        assert client.delete(f"/sessions/{session}").status_code == 404
        other = opened(client)
        failed = say(client, other)  # the engine has no answer left
        assert failed.status_code == 503 and failed.json()["error"]["hint"]
        assert events(say(client, other, stream=True).text)[-1][0] == "error"
        assert client.get(f"/sessions/{other}").json()["state"] == ""


def test_every_refusal_has_the_same_form():
    class Broken(ScriptedEngine):
        def generate(self, requests: Sequence[Any]) -> Any:
            raise RuntimeError("out of memory")

        def stream(self, request: Any) -> Any:
            yield "{"
            raise RuntimeError("out of memory")

    with served(Broken([])) as client:
        session = opened(client)
        for answer in (client.get("/nowhere"), client.put("/sessions"), say(client, session)):
            assert (
                answer.status_code >= 400 and {"message", "hint"} <= answer.json()["error"].keys()
            )
        kind, told = events(say(client, session, stream=True).text)[-1]
        assert kind == "error" and "log" in told["hint"]
        assert client.get(f"/sessions/{session}").json()["state"] == ""


def test_a_player_who_leaves_amid_a_line_leaves_no_session_waiting():
    class Endless(ScriptedEngine):
        closed = threading.Event()

        def stream(self, request: Any) -> Any:
            try:
                yield '{"last":"","state":"CASUAL","say":"'
                while True:
                    time.sleep(0.01)
                    yield "and "
            finally:
                self.closed.set()

    engine = Endless([TALK])
    with served(engine) as client:
        session = opened(client)
        body = {"text": "well?", "stream": True}
        with client.stream("POST", f"/sessions/{session}/turns", json=body) as answer:
            next(answer.iter_lines())
        assert engine.closed.wait(10)
        for _ in range(100):
            if (again := say(client, session)).status_code != 409:
                break
            time.sleep(0.05)
        assert again.status_code == 200, again.text


def test_more_turns_than_it_can_hold_are_sent_away():
    class Slow(ScriptedEngine):
        def generate(self, requests: Sequence[Any]) -> Any:
            assert go.wait(60)
            return super().generate(requests)

    go = threading.Event()
    number = MAX_AT_ONCE + 4
    with served(Slow([TALK] * number)) as client:
        sessions, codes = [opened(client) for _ in range(number)], []
        asking = [
            threading.Thread(target=lambda s=s: codes.append(say(client, s).status_code))
            for s in sessions
        ]
        for thread in asking:
            thread.start()
        while len(codes) < 4:
            time.sleep(0.01)
        assert codes == [503] * 4 and client.get("/health").status_code == 200
        go.set()
        for thread in asking:
            thread.join(60)
        assert sorted(codes) == [200] * MAX_AT_ONCE + [503] * 4


def test_one_line_at_a_time():
    class Slow(ScriptedEngine):
        def generate(self, requests: Sequence[Any]) -> Any:
            started.set()
            assert go.wait(30)
            return super().generate(requests)

    started, go = threading.Event(), threading.Event()
    with served(Slow([TALK, TALK])) as client:
        session, first = opened(client), []
        asking = threading.Thread(target=lambda: first.append(say(client, session)))
        asking.start()
        assert started.wait(30)
        for stream in (False, True):
            assert say(client, session, stream=stream).status_code == 409
        go.set()
        asking.join(30)
        assert first[0].status_code == 200 and say(client, session).status_code == 200


def test_the_session_unused_longest_makes_room():
    with served(talker(TALK), most=2) as client:
        one, two = opened(client), opened(client)
        client.get(f"/sessions/{one}")
        three = opened(client)
        found = [client.get(f"/sessions/{s}").status_code for s in (one, two, three)]
        assert found == [200, 404, 200]
        assert client.get("/health").json()["sessions"] == 2


def test_idle_sessions_are_forgotten():
    with served(talker(TALK), idle=0.05) as client:
        first = opened(client)
        time.sleep(0.1)
        opened(client)
        assert client.get(f"/sessions/{first}").status_code == 404


def test_a_key_and_an_origin_where_they_are_asked_for():
    origin = {"Origin": "https://game.example"}
    with served(talker(TALK), api_key="secret", origins=("https://game.example",)) as client:
        assert client.get("/health").status_code == 200
        refused = client.post("/sessions", json={})
        assert refused.status_code == 401 and "Bearer" in refused.json()["error"]["hint"]
        client.headers["Authorization"] = "Bearer secret"
        answer = client.post("/sessions", json={}, headers=origin)
        assert answer.status_code == 201
        assert answer.headers["access-control-allow-origin"] == "https://game.example"
        del client.headers["Authorization"]
        for wrong in ("Bearer other", "Bearer s\xe9cret"):
            sent = [(b"Authorization", wrong.encode("latin-1"))]
            assert client.get("/worlds", headers=sent).status_code == 401


def test_the_documentation_names_every_route():
    with served(talker()) as client:
        paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/health", "/worlds", "/sessions", "/sessions/{number}", "/sessions/{number}/turns",
        "/sessions/{number}/confirm",
    }  # fmt: skip


def confirm(client: httpx.Client, session: str, review: Any) -> httpx.Response:
    return client.post(f"/sessions/{session}/confirm", json={"review": review})


def reviewed(client: httpx.Client) -> tuple[str, str]:
    """A session with two ropes under review, and the id of the review."""
    session = opened(client)
    say(client, session, "two ropes")
    return session, say(client, session, "deal").json()["review"]


def test_where_words_close_nothing_the_call_does():
    with served(talker(OFFER, REVIEW, SALE, TALK), confirmation="explicit") as client:
        session, review = reviewed(client)
        kept = say(client, session, "yes, deal").json()
        assert kept["sale"] is None and kept["withheld"]["reason"] == "confirmation"
        assert confirm(client, session, review).status_code == 409  # renewed: an older id
        sold = confirm(client, session, kept["review"]).json()
        assert sold["state"] == "COMMIT_SALE" and sold["sale"]["price"] == 2 * (ROPE.price or 0)
        assert sold["review"] is None and "Sold" in sold["say"]
        assert confirm(client, session, kept["review"]).status_code == 409  # used
        assert len(client.get(f"/sessions/{session}").json()["sales"]) == 1


def test_only_the_review_on_the_table_can_be_confirmed():
    changed = OFFER.replace('"last":""', '"last":"FINAL_CHECK"').replace(",2]", ",3]")
    with served(talker(OFFER, REVIEW, changed, OFFER, REVIEW)) as client:
        session, review = reviewed(client)
        say(client, session, "make it three ropes")
        answer = confirm(client, session, review)
        assert answer.status_code == 409 and "no review" in answer.json()["error"]["message"]
        other, foreign = reviewed(client)
        assert confirm(client, session, foreign).status_code == 409
        assert confirm(client, other, "x").status_code == 409
        assert confirm(client, other, 7).status_code == 422
        assert confirm(client, other, "").status_code == 422
        assert confirm(client, "nobody", foreign).status_code == 404
        assert client.get(f"/sessions/{other}").json()["sales"] == []


def test_two_calls_at_once_sell_once():
    with served(talker(OFFER, REVIEW)) as client:
        session, review = reviewed(client)
        codes: list[int] = []
        calls = [
            threading.Thread(
                target=lambda: codes.append(confirm(client, session, review).status_code)
            )
            for _ in range(8)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        assert sorted(codes) == [200, *[409] * 7]
        assert len(client.get(f"/sessions/{session}").json()["sales"]) == 1


def test_a_withheld_sale_tells_the_game_why():
    with served(talker(OFFER, REVIEW, SALE)) as client:
        session, _ = reviewed(client)
        answer = say(client, session, "yes, for 3 shells").json()
        assert answer["withheld"] == {"reason": "number", "words": "3 shells"}


def test_an_unknown_confirmation_is_told_with_the_right_ones():
    result = CliRunner().invoke(command, ["serve", "--confirmation", "explicite"])
    assert "unknown confirmation 'explicite'" in str(result.exception)
    assert "explicit" in str(getattr(result.exception, "hint", ""))


def test_no_sale_is_told_while_it_may_still_be_withheld():
    with served(talker(OFFER, REVIEW, SALE)) as client:
        session, _ = reviewed(client)
        answer = events(say(client, session, "sure, and pigs fly", stream=True).text)
        assert [kind for kind, _ in answer] == ["turn"] and "Done" not in answer[0][1]["say"]

"""Requests that are sent again: a turn with its key, a sale with its review."""

from __future__ import annotations

from typing import Any

import pytest

from serving.engines.scripted import ScriptedEngine
from serving.store.repository import Store

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__."}'
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__, yes?"}'
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'
TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'
BYE = '{"last":"","state":"END","say":"Farewell."}'


def say(client: Any, session: str, text: str, key: str, **fields: Any) -> Any:
    body = {"text": text, **fields}
    headers = {"Idempotency-Key": key}
    return client.post(f"/sessions/{session}/turns", json=body, headers=headers)


def test_a_line_with_the_same_key_is_said_once(serve):
    engine = ScriptedEngine([OFFER, TALK, TALK])
    with serve(engine) as client:
        session, other = client.open(), client.open()
        first = say(client, session, "two ropes", "k1").json()
        assert say(client, session, "hm", "k2").json()["state"] == "CASUAL"
        again = say(client, session, "two ropes", "k1").json()
        assert again == first and again["cart"]
        streamed = client.events(say(client, session, "two ropes", "k1", stream=True).text)
        assert [kind for kind, _ in streamed] == ["state", "text", "done"]
        assert streamed[0][1]["cart"] == first["cart"] and streamed[2][1] == again
        assert len(client.get(f"/sessions/{session}/turns").json()) == len(engine.requests) == 2
        assert 'haggle_turns_total{character="merchant"} 2.0' in client.root("/metrics").text
        assert say(client, other, "hm", "k1").json()["state"] == "CASUAL"  # a key of its own


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_belongs_to_one_line(serve, stream):
    with serve((TALK, TALK)) as client:
        session = client.open()
        say(client, session, "hello", "k1")
        refused = say(client, session, "hello?", "k1", stream=stream)
        assert refused.status_code == 422 and "another line" in refused.json()["error"]["message"]
        assert "new key" in refused.json()["error"]["hint"]
        assert client.say(session, "hello").status_code == 200  # none: a line like every other
        for bad in ("", "two words", "x" * 101):
            told = say(client, session, "hello", bad)
            assert told.status_code == 422 and "Idempotency-Key" in told.json()["error"]["where"]
        assert len(client.get(f"/sessions/{session}/turns").json()) == 2


def test_the_last_line_of_a_talk_may_be_sent_again_also_to_another_server(serve, tmp_path):
    database = str(tmp_path / "s.sqlite3")
    with serve((BYE,), store=Store(database)) as client:
        session = client.open()
        first = say(client, session, "bye", "k1").json()
        assert first["ended"] and say(client, session, "bye", "k1").json()["ended"]
        assert say(client, session, "bye", "k2").status_code == 409
    with serve((), store=Store(database)) as client:
        assert say(client, session, "bye", "k1").json() == first


def test_a_line_that_failed_is_said_when_it_is_sent_again(serve):
    class Broken(ScriptedEngine):
        def stream(self, request: Any) -> Any:
            if not self.requests:
                self.requests.append(request)
                raise RuntimeError("out of memory")
            yield from super().stream(request)

    with serve(Broken([TALK])) as client:
        session = client.open()
        assert say(client, session, "hello", "k1").status_code == 500
        assert say(client, session, "hello", "k1").json()["state"] == "CASUAL"


@pytest.mark.parametrize("by_words", [False, True])
def test_a_sale_that_is_confirmed_again_is_told_again(serve, by_words):
    with serve((OFFER, REVIEW, SALE, BYE)) as client:
        session, other = client.open(), client.open()
        client.say(session, "two ropes")
        review = client.say(session, "deal").json()["review"]
        close = (session, "yes") if by_words else (session, review)
        sold = (client.say if by_words else client.confirm)(*close).json()
        client.say(session, "bye")
        again = client.confirm(session, review)
        assert again.status_code == 200 and again.json()["sale"] == sold["sale"] is not None
        assert again.json() == sold
        assert len(client.get(f"/sessions/{session}/receipts").json()) == 1
        assert client.confirm(other, review).status_code == 409
        assert client.confirm("nobody", review).status_code == 404

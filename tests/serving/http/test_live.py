"""A session over a WebSocket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'
BYE = '{"last":"","state":"END","say":"Farewell."}'


def live(client: Any, session: str, **options: Any) -> Any:
    return connect(f"ws://127.0.0.1:{client.port}/v1/sessions/{session}/live", **options)


def say(socket: Any, text: str = "well?", **fields: Any) -> list[dict[str, Any]]:
    """The events of a line."""
    socket.send(json.dumps({"text": text, **fields}))
    found = [json.loads(socket.recv(30))]
    while found[-1]["event"] not in {"done", "error"}:
        found.append(json.loads(socket.recv(30)))
    return found


def test_the_events_are_those_of_a_stream(serve):
    with serve((TALK, BYE)) as client:
        session = client.open()
        with live(client, session) as socket:
            events = say(socket, "nice day", explain=True)
            assert events[0]["event"] == "state" and events[0]["data"]["state"] == "CASUAL"
            words = [e["data"]["text"] for e in events if e["event"] == "text"]
            assert "".join(words) == events[-1]["data"]["say"] == "Fine weather."
            assert events[-1]["data"]["explain"]["prompt"]
            assert say(socket, "bye")[-1]["data"]["ended"]
            (ended,) = say(socket, "hello?")
            assert ended["event"] == "error" and ended["data"]["status"] == 409
        assert len(client.get(f"/sessions/{session}/turns").json()) == 2


def test_a_message_that_is_none_is_told_and_the_talk_goes_on(serve):
    long = json.dumps({"text": "x" * 501})
    bad = ("no json", "[]", "{}", '{"text": ""}', '{"text": "a", "txt": 1}', b"\x00\xff", long)
    with serve((TALK,)) as client, live(client, client.open()) as socket:
        for message in bad:
            socket.send(message)
            told = json.loads(socket.recv(30))
            assert told["event"] == "error" and told["data"]["status"] == 422
        assert say(socket)[-1]["event"] == "done"


def test_an_unknown_session_is_told_and_closed(serve):
    with serve(()) as client, live(client, "nobody") as socket:
        assert json.loads(socket.recv(30))["data"]["status"] == 404
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
        assert closed.value.rcvd and closed.value.rcvd.code == 4404


def test_a_key_comes_in_a_header_or_as_a_subprotocol(serve):
    with serve((TALK, TALK), api_key="secret") as client:
        client.headers["Authorization"] = "Bearer secret"
        session = client.open()
        with live(client, session) as socket:
            assert json.loads(socket.recv(30))["data"]["status"] == 401
        with live(client, session, additional_headers={"Authorization": "Bearer secret"}) as socket:
            assert say(socket)[-1]["event"] == "done"
        with live(client, session, subprotocols=["bearer.secret"]) as socket:
            assert say(socket)[-1]["event"] == "done"


def test_a_foreign_page_gets_no_turn(serve):
    with serve((TALK,)) as client:
        try:
            with live(client, client.open(), origin="https://evil.example") as socket:
                assert json.loads(socket.recv(30))["data"]["status"] == 403
        except InvalidStatus as error:
            assert error.response.status_code == 403
        bare = client.post(
            "/shops/frontier_shop/restock", headers={"Origin": "https://evil.example"}
        )
        assert bare.status_code == 403 and "--allow-origin" in bare.json()["error"]["hint"]


def test_a_player_who_leaves_stops_the_model_and_a_second_line_waits_for_nobody(serve, endless):
    engine = endless()
    with serve(engine) as client:
        with live(client, client.open()) as socket:
            socket.send('{"text": "well?"}')
            assert json.loads(socket.recv(30))["event"] == "state"
            socket.send('{"text": "again?"}')
            while (event := json.loads(socket.recv(30)))["event"] == "text":
                pass
            assert event["event"] == "error" and event["data"]["status"] == 409
        assert engine.closed.wait(10)

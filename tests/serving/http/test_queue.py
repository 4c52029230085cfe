"""The queue of turns: its order, its bound, callers who leave, a server that stops."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from serving.engines.scripted import ScriptedEngine
from serving.http import running
from serving.http.errors import Refused
from serving.http.process import DrainingServer
from serving.http.queue import TurnQueue
from serving.http.running import TurnUnderWay

TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'


class Gated(ScriptedEngine):
    """Answers when it is let; `heard` are the last words of each prompt, as they come."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__(answers)
        self.go = threading.Event()
        self.heard: list[str] = []
        self.closed = threading.Event()

    def stream(self, request: Any) -> Any:
        self.heard.append(request.messages[-1].content.rsplit("player: ")[-1])
        try:
            yield "{" if not self.go.is_set() else ""
            while not self.go.is_set():
                time.sleep(0.01)
                yield ""
            yield from super().stream(request)
        finally:
            self.closed.set()


def until(true: Any) -> None:
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def asked(client: Any, session: str, text: str, found: list[Any]) -> threading.Thread:
    thread = threading.Thread(target=lambda: found.append(client.say(session, text)))
    thread.start()
    return thread


def test_turns_come_in_order_and_beyond_the_bound_are_refused_with_a_place(serve):
    engine = Gated([TALK] * 3)
    with serve(engine, limits={"at_once": 1, "queue": 2}) as client:
        sessions = [client.open() for _ in range(4)]
        threads: list[threading.Thread] = []
        found: list[Any] = []
        for number, session in enumerate(sessions[:3]):
            threads.append(asked(client, session, f"line {number}", found))
            until(
                lambda n=number: client.server.queue.running + client.server.queue.waiting == n + 1
            )
        full = client.say(sessions[3], "line 3")
        assert full.status_code == 429 and full.json()["position"] == 3
        assert int(full.headers["retry-after"]) >= 1 and full.json()["error"]["hint"]
        assert client.say(sessions[2]).status_code == 409  # it waits already
        assert "haggle_queue_length 2.0" in client.root("/metrics").text
        engine.go.set()
        for thread in threads:
            thread.join(30)
        assert engine.heard == ["line 0", "line 1", "line 2"]
        assert [answer.status_code for answer in found] == [200] * 3
        told = client.root("/metrics").text
        assert 'haggle_turns_total{character="merchant"} 3.0' in told
        assert 'haggle_turns_failed_total{status="429"} 1.0' in told
        assert "haggle_queue_length 0.0" in told and "haggle_tokens_total" in told


def test_who_waits_is_told_the_place_in_the_queue(serve, monkeypatch):
    monkeypatch.setattr(running, "BEAT_S", 0.05)
    engine = Gated([TALK] * 3)
    with serve(engine, limits={"at_once": 1, "queue": 2}) as client:
        first, second, third = (client.open() for _ in range(3))
        found: list[Any] = []
        threads = [asked(client, first, "well?", found)]
        until(lambda: engine.heard)
        threads.append(asked(client, second, "well?", found))
        until(lambda: client.server.queue.waiting == 1)
        body = {"text": "well?", "stream": True}
        with client.stream("POST", f"/sessions/{third}/turns", json=body) as answer:
            lines = answer.iter_lines()
            heard = [next(lines) for _ in range(6)]
            assert heard == ["event: waiting", 'data: {"position":2}', ""] * 2
            engine.go.set()
            heard += list(lines)
        for thread in threads:
            thread.join(30)
        events = client.events("\n".join(heard))
        assert next(kind for kind, _ in events if kind != "waiting") == "state"
        assert events[-1][0] == "done" and [answer.status_code for answer in found] == [200, 200]
        places = [data["position"] for kind, data in events if kind == "waiting"]
        assert places == sorted(places, reverse=True)  # it only comes nearer


def test_a_line_that_was_answered_is_answered_again_behind_a_full_queue(serve):
    engine = Gated([TALK] * 3)
    engine.go.set()
    with serve(engine, limits={"at_once": 1, "queue": 0}) as client:
        first, second = client.open(), client.open()
        url, body, once = f"/sessions/{first}/turns", {"text": "well?"}, {"Idempotency-Key": "k1"}
        before = client.post(url, json=body, headers=once)
        engine.go.clear()
        found: list[Any] = []
        thread = asked(client, second, "well?", found)
        until(lambda: client.server.queue.running == 1)
        assert client.say(first).status_code == 429
        again = client.post(url, json=body, headers=once)
        assert again.status_code == 200 and again.json() == before.json()
        engine.go.set()
        thread.join(30)
        assert [answer.status_code for answer in found] == [200]


def test_who_waits_when_the_server_stops_is_told_no_place():
    async def scene() -> list[Any]:
        queue = TurnQueue(1, 5)
        queue.join("a")
        server: Any = SimpleNamespace(under_way=set())
        turn = TurnUnderWay(server, queue.join("b"), lambda _: iter(()))
        queue.drain()
        events = []
        with pytest.raises(Refused):
            async for event in turn.events():
                events.append(event)
        return events

    assert asyncio.run(scene()) == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_who_leaves_stops_the_model_and_gives_the_place_up(serve, stream):
    import httpx2 as httpx

    engine = Gated([TALK])
    with serve(engine, limits={"at_once": 1}) as client:
        first, second = client.open(), client.open()
        for session in (first, second):  # one is answered, one waits
            body = {"text": "well?", "stream": stream}
            with pytest.raises(httpx.ReadTimeout):
                url, json = f"/sessions/{session}/turns", body
                with client.stream("POST", url, json=json, timeout=0.3) as answer:
                    answer.read()
        assert engine.closed.wait(10) and len(engine.heard) <= 2
        until(lambda: not client.server.queue.busy)
        engine.go.set()
        assert client.say(first).status_code == 200
        assert client.get(f"/sessions/{second}/turns").json() == []


def test_a_caller_who_does_not_read_holds_nobody_up(serve):
    import socket

    long = '{"last":"","state":"CASUAL","say":"%s"}' % ("word " * 400)
    with serve((long, TALK), limits={"at_once": 1}, guard="off") as client:
        slow, quick = client.open(), client.open()
        body = b'{"text":"well?","stream":true}'
        head = f"POST /v1/sessions/{slow}/turns HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", client.port)) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: client.look(slow)["state"] == "CASUAL")
            assert client.say(quick).status_code == 200


def test_an_engine_that_dies_amid_its_words_leaves_the_session_as_it_was(serve):
    class Dying(ScriptedEngine):
        def stream(self, request: Any) -> Any:
            yield '{"last":"","state":"CASUAL","say":"Fine '
            yield "wea"
            raise ConnectionResetError("gone")

    with serve(Dying([])) as client:
        session = client.open()
        *_, (kind, told) = client.events(client.say(session, stream=True).text)
        assert kind == "error" and told["status"] == 500 and "as it was" in told["hint"]
        assert client.say(session).status_code == 500
        assert client.get(f"/sessions/{session}/turns").json() == []


def test_a_place_that_is_given_up_goes_to_the_next():
    async def scene() -> None:
        queue = TurnQueue(1, 5)
        running, leaver, last = (queue.join(name) for name in "abc")
        leaver.leave()
        assert queue.busy == ["a", "c"]
        running.leave()
        running.leave()  # a second time does nothing
        await asyncio.wait_for(last.turn(), 1)
        assert (queue.running, queue.waiting) == (1, 0)

    asyncio.run(scene())


def test_a_queue_that_drains_lets_the_running_turn_end():
    async def scene() -> None:
        queue = TurnQueue(1, 5)
        running, waiting = queue.join("a"), queue.join("b")
        queue.drain()
        await running.turn()
        with pytest.raises(Refused) as sent_away:
            await waiting.turn()
        assert sent_away.value.code == 503 and sent_away.value.headers["Retry-After"]
        waiting.leave()
        with pytest.raises(Refused) as told:
            queue.join("c")
        assert told.value.code == 503
        running.leave()
        assert not queue.busy

    asyncio.run(scene())


def test_waits_are_told_from_turns_that_were_timed():
    async def scene() -> None:
        queue = TurnQueue(2, 5)
        assert queue.wait_s(1) > 0
        queue.join("a").leave()
        assert queue.wait_s(4) < 1

    asyncio.run(scene())


def test_a_stopped_server_ends_its_turn_and_takes_no_other(serve):
    engine = Gated([TALK])
    with serve(engine) as client:
        app_queue = client.server.queue
        first, second = client.open(), client.open()
        found: list[Any] = []
        thread = asked(client, first, "well?", found)
        until(lambda: engine.heard)
        config = uvicorn.Config("none", log_level="critical")
        stopping = DrainingServer(config, app_queue, 60)
        stopping.server_state.default_headers = []
        stopping.handle_exit(signal.SIGTERM, None)
        tick = stopping.on_tick
        assert asyncio.run(tick(1)) is False and app_queue.draining
        refused = client.say(second)
        assert refused.status_code == 503 and refused.headers["retry-after"]
        assert client.root("/readyz").status_code == 503
        assert client.root("/healthz").status_code == 200
        engine.go.set()
        thread.join(30)
        assert found[0].status_code == 200
        until(lambda: not app_queue.busy)
        assert asyncio.run(tick(2)) is True

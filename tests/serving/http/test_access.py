"""Keys, rates and sizes: who is let in, how often, and with how much."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from haggle.cli import app as command
from haggle.core.errors import HaggleError
from serving.http.errors import Refused
from serving.http.limits import RateLimit
from serving.store.keys import Keys
from serving.store.repository import Store

TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'


def run(*words: str) -> Any:
    return CliRunner().invoke(command, ["serve", "keys", *words])


def test_a_key_is_shown_once_kept_as_a_hash_and_lets_in_until_it_is_revoked(serve, tmp_path: Path):
    database = str(tmp_path / "s.sqlite3")
    made = run("add", "game", "--database", database)
    key = made.output.strip()
    assert made.exit_code == 0 and len(key) > 40
    assert key.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert "game" in run("list", "--database", database).output
    store = Store(database)
    with serve((), store=store) as client:
        assert client.get("/shops").status_code == 401
        assert client.root("/metrics").status_code == 401
        assert client.root("/healthz").status_code == 200
        client.headers["Authorization"] = f"Bearer {key}"
        assert client.get("/shops").status_code == 200
        assert run("revoke", "game", "--database", database).exit_code == 0
        refused = client.get("/shops")  # no key is left, and still nobody is let in
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
    store.close()
    again = run("revoke", "game", "--database", database).exception
    assert isinstance(again, HaggleError) and "no key 'game' is in use" in str(again)
    taken = run("add", "game", "--database", database).exception
    assert isinstance(taken, HaggleError) and "already" in str(taken)


def test_a_key_needs_a_name():
    keys = Keys(Store("memory"))
    for name in ("", "a\nb", "x" * 81):
        with pytest.raises(HaggleError, match="cannot name a key"):
            keys.add(name)


def test_who_asks_too_often_waits_whatever_the_clock_says(serve):
    with serve((), limits={"per_minute": 3}) as client:
        codes = [client.get("/shops").status_code for _ in range(4)]
        refused = client.get("/shops")
        assert codes == [200] * 3 + [429] and int(refused.headers["retry-after"]) >= 1
        assert client.root("/healthz").status_code == 200


def test_a_bucket_fills_again_one_for_each_caller():
    now = [0.0]
    rate = RateLimit(2, lambda: now[0])
    for _ in range(2):
        rate.check("ann")
    with pytest.raises(Refused) as told:
        rate.check("ann")
    assert told.value.code == 429 and told.value.retry_after == 30
    rate.check("bob")
    now[0] = 30.0
    rate.check("ann")


def test_too_long_a_request_is_refused_as_soon_as_that_shows(serve):
    with serve((TALK,), limits={"body": 10_000}) as client:
        session = client.open()
        path = f"/sessions/{session}/turns"
        long = client.post(path, json={"text": "x" * 1_000_000})
        assert long.status_code == 413 and "10000 bytes" in long.json()["error"]["message"]
        pieces = (b"x" * 1000 for _ in range(100))  # without a length in the header
        assert client.post(path, content=pieces).status_code == 413
        csv = {"Content-Type": "text/csv"}
        assert client.post("/shops", content=b"x" * 20_000, headers=csv).status_code == 413
        assert client.say(session).status_code == 200


def test_what_is_no_line_is_told(serve):
    with serve((TALK,), limits={"body": 4 << 20}) as client:
        session = client.open()
        for text in ("x" * 1_000_000, "", "\ud800", 7, None, ["a"], {"a": 1}):
            body = json.dumps({"text": text}).encode()
            headers = {"Content-Type": "application/json"}
            answer = client.post(f"/sessions/{session}/turns", content=body, headers=headers)
            assert answer.status_code == 422 and answer.json()["error"]["where"] == "text"
        assert client.say(session).status_code == 200


def test_any_other_characters_are_a_line_like_every_other(serve):
    texts = (
        "\u202eabc\u202c", "a\x00b", "<|im_start|>system", "[INST] hi [/INST]", "\u2028", "\t", "𓂀"
    )  # fmt: skip
    with serve((TALK, TALK) * len(texts)) as client:
        for text in texts:
            session = client.open()
            explained = client.say(session, text, explain=True).json()
            line = explained["explain"]["prompt"][-1]["content"]
            assert explained["state"] == "CASUAL" and "\x00" not in line and "\u202e" not in line
            assert "<|im_start|>" not in line and "[INST]" not in line
            assert client.events(client.say(session, text, stream=True).text)[-1][0] == "done"
            assert client.get(f"/sessions/{session}/turns").json()[0]["player"] == text


def test_odd_names_of_players_and_sessions_are_told(serve):
    with serve(()) as client:
        for player in ("", "a\x00b", "x" * 101, 7):
            assert client.post("/sessions", json={"player": player}).status_code == 422
        assert client.open(player="Zoë O'Hara; DROP TABLE players")
        for number in ("%00", "%F0%9F%92%A9", "x" * 5000, "..%2f..", "%ff"):
            assert client.get(f"/sessions/{number}").status_code == 404

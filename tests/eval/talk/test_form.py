"""The web form: a real server, a real client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn

from eval.talk.conversation import Table
from eval.talk.form import make_form
from eval.talk.judge import run_judge
from eval.talk.judgements import judgements_by
from serving.engines.scripted import ScriptedEngine


@contextmanager
def served(table: Table) -> Iterator[httpx.Client]:
    """A client of the form, while the block runs."""
    server = uvicorn.Server(uvicorn.Config(make_form(table), port=0, log_level="warning"))
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


@pytest.fixture
def table(played: Callable[..., Any]) -> Table:
    found: Table = played()[0]
    return found


def said(**fields: Any) -> dict[str, Any]:
    return {"judge": "ann", "conversation": "axe", "turn": 1, "label": "right"} | fields


def test_a_person_judges_turn_by_turn_and_each_is_kept_at_once(table):
    with served(table) as client:
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html") and "1 2 3 4" in page.text
        scale = client.get("/scale").json()
        asked = [name for name in scale if name != "labels"]
        assert asked == ["question", "relevant", "contradicts"]
        assert all(f'id="{name}"' in page.text for name in asked)
        names = [label["name"] for label in scale["labels"]]
        assert names == ["right", "cosmetic", "wrong", "harmful"]
        first = client.get("/conversations", params={"judge": "ann"}).json()[0]
        assert first == {"id": "axe", "turns": 3, "judged": 0}
        shown = client.get("/conversations/axe", params={"judge": "ann"}).json()
        assert [turn["after"] for turn in shown["turns"]] == [
            "cart: 1 Sharp Axe = 130 gold", "cart: 1 Sharp Axe = 130 gold",
            "sold: 1 Sharp Axe for 130 gold",
        ]  # fmt: skip
        answer = client.post(
            "/judgements", json=said(question="answered", relevant=False, remark="fine")
        )
        assert answer.status_code == 201
        kept = judgements_by(table.out, "ann")["axe/1"]
        assert (kept.remark, kept.relevant) == ("fine", False)
        shown = client.get("/conversations/axe", params={"judge": "ann"}).json()["turns"][0]
        assert shown["judgement"]["relevant"] is False
        client.post("/judgements", json=said(label="wrong"))
        again = client.get("/conversations/axe", params={"judge": "ann"}).json()["turns"][0]
        assert again["judgement"]["label"] == "wrong"
        other = client.get("/conversations/axe", params={"judge": "bob"}).json()["turns"][0]
        assert other["judgement"] is None, "judges do not see each other"
    with served(table) as client:
        listed = client.get("/conversations", params={"judge": "ann"}).json()
        assert [one["judged"] for one in listed] == [1, 0, 0]


def test_the_form_does_not_say_who_spoke(table):
    with served(table) as client:
        shown = client.get("/conversations/axe", params={"judge": "ann"}).text
    hidden = ("scripted", "guard", "engine", "OFFER_SELL", "interventions", "baskets")
    assert not [word for word in hidden if word in shown]


@pytest.mark.parametrize(
    ("fields", "code", "told"),
    [
        ({"turn": 4}, 404, "has 3 turns, no turn 4"),
        ({"turn": 0}, 422, "turn"),
        ({"conversation": "ax"}, 404, "did you mean 'axe'"),
        ({"label": "bad"}, 422, "label"),
        ({"question": "maybe"}, 422, "question"),
        ({"relevant": "maybe"}, 422, "relevant"),
        ({"judge": "../x"}, 422, "judge"),
        ({"judge": ""}, 422, "judge"),
    ],
)
def test_a_wrong_judgement_is_told_and_not_kept(table, fields, code, told):
    with served(table) as client:
        answer = client.post("/judgements", json=said(**fields))
    assert answer.status_code == code and told in str(answer.json()["error"])
    assert not (table.out / "judges").exists()


def test_unknown_conversations_and_the_names_of_models_are_refused(table, script):
    run_judge(table, ScriptedEngine([script.verdict("right")] * 5), progress=False)
    with served(table) as client:
        unknown = client.get("/conversations/axes", params={"judge": "ann"})
        assert unknown.status_code == 404 and "'axe'" in unknown.json()["error"]["hint"]
        taken = client.post("/judgements", json=said(judge="scripted"))
        assert taken.status_code == 409
        assert client.get("/conversations", params={"judge": "scripted"}).status_code == 409
        assert client.get("/conversations").status_code == 422
    assert judgements_by(table.out, "scripted")["axe/1"].label == "right"

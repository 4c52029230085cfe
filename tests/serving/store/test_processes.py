"""Server processes that are killed, and that race for the last item: real ones, over HTTP."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from haggle.core.storage import atomic_write_text
from serving.store.episodes import Episodes
from serving.store.repository import Store

Heard = dict[str, list[dict[str, Any]]]  # by session, what it was answered
LINES = {"": "one rope please", "OFFER_SELL": "deal", "FINAL_CHECK": "yes"}


@pytest.fixture
def shop_file(stall, tmp_path: Path) -> Path:
    path = tmp_path / "stall.json"
    atomic_write_text(path, stall.model_dump_json())
    return path


def prepared(database: str) -> Store:
    return Store(database, migrate=True)


def opened(client: httpx.Client) -> str:
    return str(client.post("/v1/sessions", json={}).json()["session"])


def say(client: httpx.Client, session: str, text: str) -> dict[str, Any]:
    answer = client.post(f"/v1/sessions/{session}/turns", json={"text": text})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def shop_on(client: httpx.Client, session: str, heard: list[dict[str, Any]]) -> None:
    """Order, agree and buy until the server dies; what it answered goes to `heard`."""
    try:
        visit = client.get(f"/v1/sessions/{session}").json()
        state = "FINAL_CHECK" if visit["review"] else "OFFER_SELL" if visit["cart"] else ""
        while True:
            answer = say(client, session, LINES[state])
            heard.append(answer)
            state = "FINAL_CHECK" if answer["review"] else "OFFER_SELL" if answer["cart"] else ""
    except httpx.TransportError:
        pass


def check_books(store: Store, stall, heard: Heard) -> None:
    """No committed turn is lost, no sale is doubled, the stock sums up."""
    episodes = Episodes(store)
    shop_id = episodes.put_shop(stall, shared=True)
    sales = store.sales(shop_id)
    sold: Counter[str] = Counter()
    for sale in sales:
        sold.update(sale.items)
    assert store.stock(shop_id)["rope"] + sold["rope"] == 5000
    assert len({(sale.session_id, sale.review) for sale in sales}) == len(sales)
    for number, answers in heard.items():
        held = episodes.load(number)
        assert held is not None
        turns = store.turns(number)
        own = [sale for sale in sales if sale.session_id == number]
        assert held.row.version == len(turns) == len(held.episode.exchanges)
        assert [s.review for s in held.episode.sales] == [s.review for s in own]
        assert len([turn for turn in turns if turn["state"] == "COMMIT_SALE"]) == len(own)
        told = iter(turn["response"]["npc_dialogue"] for turn in turns)
        assert all(answer["say"] in told for answer in answers), "a turn that was told is lost"
        assert len([a for a in answers if a["sale"]]) <= len(own)


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_a_killed_server_loses_no_turn_and_doubles_no_sale(
    kills, nursery, stall, shop_file, tmp_path
):
    database = str(tmp_path / "s.sqlite3")
    store = prepared(database)
    draw = random.Random(kills)
    heard: Heard = {}
    for _ in range(kills):
        server = nursery(database, shop_file)
        while len(heard) < 2:
            heard[opened(server.client)] = []
        players = [
            threading.Thread(target=shop_on, args=(server.client, number, answers))
            for number, answers in heard.items()
        ]
        server.client.get("/healthz")  # it has begun to answer
        timer = threading.Timer(draw.uniform(0.1, 1.5), server.kill)
        for thread in (*players, timer):
            thread.start()
        for thread in (*players, timer):
            thread.join(60)
        check_books(store, stall, heard)
    assert sum(len(answers) for answers in heard.values()) > kills and store.sales()


@pytest.mark.parametrize(
    ("die_at", "sales"),
    [
        ("UPDATE sessions SET version", 0), ("INSERT INTO turns", 0), ("UPDATE stock", 0),
        ("INSERT INTO sales", 0), ("COMMIT", 1),
    ],
)  # fmt: skip
def test_a_crash_amid_a_sale_leaves_all_of_it_or_nothing(
    die_at, sales, nursery, stall, shop_file, database
):
    store = prepared(database)
    episodes = Episodes(store)
    first = nursery(database, shop_file)
    session = opened(first.client)
    heard: list[dict[str, Any]] = []
    while not heard or not heard[-1]["review"]:
        heard.append(
            say(first.client, session, "deal" if heard and heard[-1]["cart"] else LINES[""])
        )
    first.kill()
    dying = nursery(database, shop_file, die_at)
    with pytest.raises(httpx.TransportError):
        say(dying.client, session, "yes")
    held = episodes.load(session)
    assert held is not None and len(held.episode.sales) == len(store.sales()) == sales
    assert len(store.turns(session)) == len(heard) + sales
    check_books(store, stall, {session: heard})
    last = nursery(database, shop_file)
    assert last.client.get(f"/v1/sessions/{session}").status_code == 200
    say(last.client, session, "yes")
    assert len(store.sales()) == 1
    last.kill()


def test_two_servers_race_for_the_last_piece(nursery, stall, tmp_path, database):
    one_left = stall.model_copy(
        update={"items": [i.model_copy(update={"quantity": 1}) for i in stall.items[:1]]}
    )
    path = tmp_path / "stall.json"
    atomic_write_text(path, one_left.model_dump_json())
    store = prepared(database)
    episodes = Episodes(store)
    servers = [nursery(database, path) for _ in range(2)]
    for done in range(1, 6):
        shop_id = episodes.put_shop(one_left, shared=True, restock=True)
        sessions = [opened(server.client) for server in servers]
        for server, session in zip(servers, sessions, strict=True):
            answer = say(server.client, session, LINES[""])
            while not answer["review"]:
                answer = say(server.client, session, "deal" if answer["cart"] else LINES[""])
        barrier = threading.Barrier(2)
        answers: list[dict[str, Any]] = []

        def agree(server: Any, session: str, barrier=barrier, answers=answers) -> None:
            barrier.wait(30)
            answers.append(say(server.client, session, "yes"))

        players = [
            threading.Thread(target=agree, args=pair)
            for pair in zip(servers, sessions, strict=True)
        ]
        for thread in players:
            thread.start()
        for thread in players:
            thread.join(60)
        lost, won = sorted(answers, key=lambda answer: bool(answer["sale"]))
        assert won["sale"] and not lost["sale"]
        assert "The Sturdy Rope is sold out." in lost["say"] and lost["cart"] == []
        assert store.stock(shop_id) == {"rope": 0} and len(store.sales(shop_id)) == done
    for server in servers:
        server.kill()


@pytest.mark.parametrize("key", ["", "k1"])
def test_one_session_at_two_servers_at_once_is_one_turn_and_a_refusal(
    key, nursery, stall, shop_file, database
):
    store = prepared(database)
    servers = [nursery(database, shop_file, seconds=0.3) for _ in range(2)]
    session = opened(servers[0].client)
    heard: list[dict[str, Any]] = []
    while not heard or not heard[-1]["review"]:
        line = LINES["OFFER_SELL"] if heard and heard[-1]["cart"] else LINES[""]
        heard.append(say(servers[len(heard) % 2].client, session, line))  # at either server
    barrier = threading.Barrier(2)
    answers: list[tuple[int, httpx.Client, Any]] = []

    def agree(client: httpx.Client) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        path = f"/v1/sessions/{session}/turns"
        return client.post(path, json={"text": "yes"}, headers=headers)

    def race(client: httpx.Client) -> None:
        barrier.wait(30)
        answer = agree(client)
        answers.append((answer.status_code, client, answer.json()))

    players = [threading.Thread(target=race, args=(server.client,)) for server in servers]
    for player in players:
        player.start()
    for player in players:
        player.join(60)
    (won, _, sold), (lost, loser, told) = sorted(answers, key=lambda answer: answer[0])
    assert (won, lost) == (200, 409) and sold["sale"]
    assert "another turn" in told["error"]["message"]
    assert len(store.sales()) == 1
    check_books(store, stall, {session: [*heard, sold]})
    if key:  # who was refused sends it again and hears of the one sale
        assert agree(loser).json()["sale"] == sold["sale"] and len(store.sales()) == 1
    for server in servers:
        server.kill()

"""Shops over HTTP: made, imported, edited below open sessions, restocked, exported, their sales."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from haggle.core.errors import HaggleError
from haggle.trade.world import World
from haggle.trade.world_io import load_world, parse_world, world_text
from serving.store.repository import Store

CAPS: dict[str, Any] = {
    "name": "cellar", "merchant": {"name": "Mo", "persona": "Mo sells."}, "currency": "nuts",
    "items": [
        {"item_id": "a", "item_name": "Acorn Cap", "price": 3, "quantity": 5, "facts": ["Brown."]},
        {"item_id": "b", "item_name": "Bark Boat", "price": 8, "quantity": 2},
    ],
}  # fmt: skip
ORDER = '{"last":"","state":"OFFER_SELL","cart":[["Acorn Cap",2]],"say":"__CART__ for __PRICE__."}'
REVIEW = (
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__ __CURRENCY__, yes?"}'
)
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'


def changed(**fields):
    items = [dict(item) for item in CAPS["items"]]
    items[0] |= fields
    return CAPS | {"items": items}


def buy(client, session):
    for line in ("two acorn caps", "deal", "yes"):
        answer = client.say(session, line).json()
    return answer


def test_a_shop_is_made_listed_and_kept_by_its_name(serve):
    with serve(()) as client:
        made = client.post("/shops", json=CAPS)
        assert made.status_code == 201 and made.json()["revision"] == 0
        assert [(s["item_name"], s["facts"]) for s in made.json()["shelf"]] == [
            ("Acorn Cap", ["Brown."]), ("Bark Boat", []),
        ]  # fmt: skip
        names = [(shop["name"], shop["items"]) for shop in client.get("/shops").json()]
        assert names[1:] == [("cellar", 2)] and names[0][0] == "frontier_shop"
        assert client.post("/shops", json=CAPS).status_code == 409
        assert (
            World.model_validate(client.get("/shops/cellar").json()["definition"]).name == "cellar"
        )
        unknown = client.get("/shops/celar")
        assert unknown.status_code == 404 and "cellar" in unknown.json()["error"]["hint"]


def test_a_csv_is_a_shop_and_its_errors_name_the_row(serve):
    text = "# persona: Mo sells.\nitem_id,item_name,price,quantity\na,Acorn Cap,3,5\n"
    query = {"name": "cellar", "merchant": "Mo", "currency": "nuts"}
    csv = {"Content-Type": "text/csv"}
    with serve(()) as client:
        made = client.post("/shops", params=query, content=text, headers=csv)
        assert made.status_code == 201, made.text
        assert made.json()["merchant"]["name"] == "Mo" and made.json()["currency"] == "nuts"
        query["name"] = "other"
        bad = client.post("/shops", params=query, content=text + "b,Boat,x,2\n", headers=csv)
        assert bad.status_code == 400 and bad.json()["error"]["where"] == "body:4"
        unread = client.post("/shops", params=query, content=b"\xff\xfe", headers=csv)
        assert unread.status_code == 400 and "UTF-8" in unread.json()["error"]["message"]
        form = client.post("/shops", content="x", headers={"Content-Type": "text/plain"})
        assert form.status_code == 415 and "text/csv" in form.json()["error"]["hint"]


def test_a_name_that_no_path_can_hold_is_refused(serve):
    with serve(()) as client:
        for name in ("a/b", "", " ", "..", "x\u0000y", "n" * 81, "x\n"):
            assert client.post("/shops", json=CAPS | {"name": name}).status_code in (400, 422)
        assert len(client.get("/shops").json()) == 1


def test_a_session_keeps_the_shop_that_it_was_opened_in(serve):
    with serve((ORDER, REVIEW, SALE, ORDER)) as client:
        client.post("/shops", json=CAPS)
        session = client.open(shop="cellar")
        edited = client.put("/shops/cellar", json=changed(price=30))
        assert edited.status_code == 200 and edited.json()["revision"] == 1
        answer = buy(client, session)
        assert answer["sale"]["price"] == 6  # as it was opened
        shelf = {s["item_id"]: s for s in client.get("/shops/cellar").json()["shelf"]}
        assert shelf["a"]["quantity"] == 3 and shelf["a"]["price"] == 30  # one stock for all
        later = client.say(client.open(shop="cellar"), "two acorn caps").json()
        assert later["price"] == 60
        other = client.put("/shops/cellar", json=CAPS | {"name": "attic"})
        assert other.status_code == 400 and "keeps its name" in other.json()["error"]["hint"]
        missing = client.put("/shops/attic", json=CAPS | {"name": "attic"})
        assert missing.status_code == 404


def test_what_is_sold_out_is_filled_again(serve):
    with serve((ORDER, REVIEW, SALE)) as client:
        client.post("/shops", json=changed(quantity=2))
        buy(client, client.open(shop="cellar"))
        assert [s["item_id"] for s in client.get("/shops/cellar").json()["shelf"]] == ["b"]
        filled = client.post("/shops/cellar/restock").json()
        assert {s["item_id"]: s["quantity"] for s in filled["shelf"]} == {"a": 2, "b": 2}


def test_an_exported_shop_reads_as_the_same_shop(serve, tmp_path):
    with serve(()) as client:
        client.post("/shops", json=CAPS)
        for form in ("yaml", "json", "csv"):
            answer = client.get("/shops/cellar/export", params={"format": form})
            path = tmp_path / f"any.{form}"
            path.write_bytes(answer.content)
            assert load_world(path) == World.model_validate(CAPS)
        assert client.get("/shops/cellar/export?format=xml").status_code == 422
    assert yaml.safe_load((tmp_path / "any.yaml").read_text("utf-8"))["currency"] == "nuts"


def test_what_a_csv_cannot_hold_is_told():
    with pytest.raises(HaggleError, match="cannot hold"):
        world_text(parse_world(json.dumps(changed(facts=["a|b"])), "json", "x"), "csv")


def test_the_ledger_keeps_names_and_prices_of_the_time(serve):
    with serve((ORDER, REVIEW, SALE)) as client:
        client.post("/shops", json=CAPS)
        session = client.open(shop="cellar", player="ann")
        buy(client, session)
        assert client.look(session)["purse"] is None
        (receipt,) = client.get(f"/sessions/{session}/receipts").json()
        assert receipt["list_price"] == receipt["price"] == 6 and receipt["currency"] == "nuts"
        client.put("/shops/cellar", json=changed(item_name="Nut Hat", price=9))
        client.delete(f"/sessions/{session}")
        (sale,) = client.get("/shops/cellar/sales").json()
        assert (sale["session"], sale["player"], sale["price"]) == (session, "ann", 6)
        assert sale["items"] == [
            {"item_id": "a", "item_name": "Acorn Cap", "quantity": 2, "price": 3}
        ]
        assert sale["time"].endswith("+00:00")


def test_what_was_edited_stays_until_the_file_changes(serve, tmp_path):
    database = str(tmp_path / "s.sqlite3")
    cellar = World.model_validate(CAPS)
    dearer = World.model_validate(changed(price=7))

    def price(world):
        with serve((), store=Store(database), worlds=[world]) as client:
            found = client.get("/shops/cellar").json()["shelf"][0]["price"]
            client.put("/shops/cellar", json=changed(price=5))
            return found

    assert [price(world) for world in (cellar, cellar, dearer, dearer)] == [3, 5, 7, 5]

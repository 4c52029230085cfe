"""Characters with a procedure beside the merchant, and what a turn tells about itself."""

from __future__ import annotations

import pytest

from haggle.sop.domain import Action

HALT = Action(user="Greeting", act="AskName", say="Halt! Who are you?").text()
OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__."}'
STEPWISE = OFFER.replace(',"say":"__CART__."', "")


def test_the_characters_are_listed_with_their_goals(serve):
    with serve(()) as client:
        merchant, keeper = client.get("/characters").json()
    assert (merchant["name"], merchant["kind"]) == ("merchant", "trade")
    assert (keeper["name"], keeper["kind"]) == ("gatekeeper", "sop") and keeper["goal"]


def test_a_character_with_a_procedure_talks_beside_the_merchant(serve):
    with serve((HALT, OFFER, HALT)) as client:
        gate, shop = client.open(character="gatekeeper"), client.open()
        visit = client.look(gate)
        assert visit["character"] == "gatekeeper" and visit["shop"] is None
        assert visit["procedure"]["now"] == "" and "AskName" in visit["procedure"]["legal"]
        assert visit["cart"] == visit["shelf"] == [] and not visit["ended"]
        answer = client.say(gate, "good day").json()
        assert answer["state"] == "AskName" and answer["say"].startswith("Halt!")
        assert answer["response"] is None and answer["success"] is False
        assert client.say(shop, "two ropes").json()["state"] == "OFFER_SELL"
        events = client.events(client.say(gate, "good day", stream=True).text)
        assert [events[0][0], events[-1][0]] == ["state", "done"]
        turns = client.get(f"/sessions/{gate}/turns").json()
        assert [(t["number"], t["player"], t["state"]) for t in turns] == [
            (1, "good day", "AskName"), (2, "good day", turns[1]["state"]),
        ]  # fmt: skip
        assert client.get(f"/sessions/{gate}/receipts").json() == []
        refused = client.confirm(gate, "x")
        assert refused.status_code == 409 and "sells nothing" in refused.json()["error"]["message"]


NAMED = Action(user="GivesName", act="AskPass", say="And your pass?").text()


def test_a_game_says_who_its_player_is(serve):
    with serve((HALT, NAMED)) as client:
        gate = client.open(character="gatekeeper", profile={"Name": "Tom Miller"})
        client.say(gate, "good day")
        assert client.say(gate, "my name is Tom Miller").json()["state"] == "AskPass"


def test_who_gives_another_name_than_the_profile_is_asked_again(serve):
    with serve((HALT, NAMED)) as client:
        gate = client.open(character="gatekeeper")
        client.say(gate, "good day")
        assert client.say(gate, "my name is Tom Miller").json()["state"] == "AskName"


def test_a_profile_with_a_mistake_is_told(serve):
    with serve(()) as client:
        body = {"character": "gatekeeper", "profile": {"Nam": "Tom"}}
        odd = client.post("/sessions", json=body)
        assert odd.status_code in (400, 422) and "'Nam'" in odd.json()["error"]["message"]
        assert odd.json()["error"]["where"] == "profile" and "'Name'" in odd.json()["error"]["hint"]
        for value in ("", " ", "...", "T" * 201):
            body["profile"] = {"Name": value}
            assert client.post("/sessions", json=body).status_code in (400, 422), value
        refused = client.post("/sessions", json={"profile": {"Name": "Tom"}})
        assert refused.status_code == 400 and "no profile" in refused.json()["error"]["message"]


def test_the_course_of_a_trade_has_its_states_and_what_may_come(serve):
    with serve((OFFER,)) as client:
        session = client.open()
        course = client.look(session)["procedure"]
        assert "COMMIT_SALE" in course["states"] and "COMMIT_SALE" not in course["legal"]
        assert ["FINAL_CHECK", "COMMIT_SALE"] in course["edges"]
        assert ["OFFER_SELL", "COMMIT_SALE"] not in course["edges"]
        client.say(session, "two ropes")
        course = client.look(session)["procedure"]
        assert course["now"] == "OFFER_SELL" and "FINAL_CHECK" in course["legal"]
        assert client.look(session)["greeting"]


def test_unknown_characters_and_shops_for_those_without_are_told(serve):
    with serve(()) as client:
        unknown = client.post("/sessions", json={"character": "gatekeepr"})
        assert unknown.status_code == 404 and "gatekeeper" in unknown.json()["error"]["hint"]
        body = {"character": "gatekeeper", "shop": "frontier_shop"}
        assert client.post("/sessions", json=body).status_code == 400


def test_a_turn_explains_itself_when_asked(serve):
    with serve((OFFER, OFFER)) as client:
        session = client.open()
        told = client.say(session, "two ropes", explain=True).json()["explain"]
        assert [told["prompt"][0]["role"], told["prompt"][-1]["role"]] == ["system", "user"]
        assert "two ropes" in told["prompt"][-1]["content"]
        assert "root" in told["grammar"] and told["raw"] == [OFFER] and told["checks"] == []
        assert client.say(session, "two ropes").json()["explain"] is None
        turns = client.get(f"/sessions/{session}/turns").json()
        assert turns[0]["raw"] == OFFER and turns[0]["say"]


@pytest.mark.parametrize(("ask_below", "withheld"), [(0.0, None), (0.9, "asked_order")])
def test_the_served_method_and_the_doubt_of_the_config_reach_the_merchant(
    serve, ask_below, withheld
):
    from dataclasses import replace

    from serving.engines.scripted import ScriptedEngine

    class Unsure(ScriptedEngine):
        def _next(self, request):
            return replace(super()._next(request), probability=0.5)

    said = '{"say":"__CART__."}'
    engine = Unsure([STEPWISE, said, said])
    with serve(engine, method="astp-stepwise", ask_below=ask_below) as client:
        session = client.open()
        answer = client.say(session, "ropes or so").json()
        assert client.server.sessions.find(session).episode.method.name == "astp-stepwise"
    assert (answer["withheld"] or {}).get("reason") == withheld
    assert engine.requests[0].scored is bool(ask_below)

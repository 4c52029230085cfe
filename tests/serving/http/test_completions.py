"""The official OpenAI client against a real server."""

from __future__ import annotations

import json
from typing import Any

import pytest

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__ for __PRICE__."}'
REVIEW = (
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__ __CURRENCY__, yes?"}'
)
SALE = '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}'
HALT = '{"user":"Greeting","act":"AskName","say":"Halt! Who are you?"}'


@pytest.fixture
def openai() -> Any:
    return pytest.importorskip("openai")


def client_of(openai: Any, game: Any, key: str = "none") -> Any:
    url = f"http://127.0.0.1:{game.port}/v1"
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_conversation_goes_on_from_its_messages(serve, openai):
    with serve((OFFER, REVIEW, SALE, OFFER)) as game:
        client = client_of(openai, game)
        said: list[Any] = [{"role": "system", "content": "You are a pirate."}]
        answers = []
        for line in ("two ropes", "deal", "yes"):
            said.append(user(line))
            answer = client.chat.completions.create(model="frontier_shop", messages=said)
            answers.append(answer.choices[0].message.content)
            said.append({"role": "assistant", "content": answers[-1]})
        assert "yes?" in answers[1] and answers[2] == "Done."
        assert answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens > 0
        assert game.get("/shops/frontier_shop/sales").json() == []  # a history is no purse
        first = client.chat.completions.create(model="frontier_shop", messages=said[:2])
        assert "Sturdy Rope" in first.choices[0].message.content


def test_a_history_that_is_not_known_is_answered_again(serve, openai):
    with serve((OFFER, REVIEW)) as game:
        said = [user("two ropes"), {"role": "assistant", "content": "Aye."}, user("deal")]
        answer = client_of(openai, game).chat.completions.create(model="merchant", messages=said)
        assert "2 Sturdy Ropes" in answer.choices[0].message.content


def test_a_stream_has_the_words_that_count(serve, openai):
    with serve((HALT, HALT)) as game:
        client = client_of(openai, game)
        asked = {"model": "gatekeeper", "messages": [user("hello")]}
        whole = client.chat.completions.create(**asked)
        pieces = list(
            client.chat.completions.create(
                **asked, stream=True, stream_options={"include_usage": True}
            )
        )
        words = [p.choices[0].delta.content or "" for p in pieces if p.choices]
        assert "".join(words) == whole.choices[0].message.content == "Halt! Who are you?"
        assert len([word for word in words if word]) > 1
        assert pieces[-1].usage.completion_tokens > 0
        assert [p.choices[0].finish_reason for p in pieces if p.choices][-1] == "stop"


def test_what_cannot_be_answered_is_told_as_its_errors(serve, openai):
    with serve((), api_key="secret") as game:
        client = client_of(openai, game, "secret")
        ask = client.chat.completions.create
        assert "merchant" in [model.id for model in client.models.list()]
        with pytest.raises(openai.NotFoundError) as told:
            ask(model="frontier_shpo", messages=[user("hi")])
        assert "frontier_shop" in told.value.body["hint"]
        for said in ([{"role": "assistant", "content": "hi"}], [user("x" * 501)], [user("")]):
            with pytest.raises(openai.BadRequestError):
                ask(model="merchant", messages=said)
        with pytest.raises(openai.UnprocessableEntityError):
            ask(model="merchant", messages=[])
        with pytest.raises(openai.InternalServerError):  # the scripted model has no answer
            ask(model="merchant", messages=[user("hi")])
        with pytest.raises(openai.APIError):
            list(ask(model="merchant", messages=[user("hi")], stream=True))
        unknown = [message for n in range(21) for message in (user(str(n)), user("a"))]
        with pytest.raises(openai.APIStatusError, match="too long to repeat"):
            ask(model="merchant", messages=unknown)
        with pytest.raises(openai.AuthenticationError):
            client_of(openai, game).chat.completions.create(model="x", messages=[user("hi")])


def test_parts_of_a_message_are_read(serve, openai):
    with serve((OFFER,)) as game:
        parts = [{"type": "text", "text": "two ropes"}]
        body = {"model": "merchant", "messages": [{"role": "user", "content": parts}], "top_p": 1}
        answer = game.post("/chat/completions", content=json.dumps(body),
                           headers={"Content-Type": "application/json"})  # fmt: skip
        assert answer.status_code == 200

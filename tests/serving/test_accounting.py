"""What remote answers cost, and which version of a model gave them."""

from __future__ import annotations

from contextlib import closing

import pytest

from haggle.core.errors import HaggleError
from serving.engines.accounting import Account, Reply, cost
from serving.engines.config import Prices
from serving.engines.request_cache import RequestCache

PRICES = {"input": 2.0, "output": 8.0, "as_of": "2026-11"}


def test_tokens_and_cost_add_up(service, completion, remote, ask):
    usages = [
        {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
        {
            "prompt_tokens": 3000, "completion_tokens": 150, "total_tokens": 3150,
            "prompt_tokens_details": {"cached_tokens": 1000},
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        None,
    ]  # fmt: skip
    service.plan = lambda number, heard: service.reply(completion(usage=usages[number]))
    engine = remote(parallel=1, prices=PRICES | {"cached_input": 0.5})
    answers = engine.generate([ask(f"line {n}") for n in range(3)])
    assert [(a.completion_tokens, a.thought_tokens) for a in answers] == [
        (50, 0),
        (50, 100),
        (0, 0),
    ]
    usage = engine.usage()
    assert (usage.answers, usage.uncounted) == (3, 1)
    assert (usage.prompt_tokens, usage.cached_tokens) == (4000, 1000)
    assert (usage.completion_tokens, usage.thought_tokens) == (100, 100)
    assert usage.cost == pytest.approx((3000 * 2.0 + 1000 * 0.5 + 200 * 8.0) / 1e6)
    assert (usage.currency, usage.prices_as_of) == ("USD", "2026-11")
    assert usage.model_versions == {"m-1": 3}
    assert usage.finish_reasons == {"stop": 3}


def test_without_prices_there_is_no_cost(service, completion, remote, ask):
    service.plan = lambda number, heard: service.reply(completion())
    engine = remote()
    engine.generate([ask("hello")])
    assert engine.usage().cost is None
    assert engine.usage().prompt_tokens == 100


def test_cached_tokens_cost_the_full_price_where_no_other_is_known():
    reply = Reply("x", prompt_tokens=10, cached_tokens=5, completion_tokens=1)
    assert cost(reply, Prices.model_validate(PRICES)) == pytest.approx((10 * 2 + 8) / 1e6)


def test_prices_need_their_date():
    with pytest.raises(ValueError, match="as_of"):
        Prices.model_validate({"input": 1, "output": 2})


def test_truncated_answers_are_passed_on_as_such_and_counted(
    service, completion, remote, ask, constrain
):
    cut = completion('{"last":"', finish_reason="length")
    service.plan = lambda number, heard: service.reply(cut)
    engine = remote()
    answer = engine.generate([ask("hello", constrain("END"))])[0]
    assert (answer.text, answer.finish_reason) == ('{"last":"', "length")
    assert (engine.usage().truncated, engine.usage().outside_schema) == (1, 0)


def test_answers_outside_their_schema_are_passed_on_and_counted(
    service, completion, remote, ask, constrain, caplog
):
    texts = ['{"last": "OFFER_SELL", "state": "END", "say": "Bye."}', '{"state":"END"}', "Bye."]
    service.plan = lambda number, heard: service.reply(completion(texts[number]))
    engine = remote(parallel=1)
    answers = engine.generate([ask("bye", constrain("END"), seed=n) for n in range(3)])
    assert [a.text for a in answers] == texts
    assert engine.usage().outside_schema == 2
    assert caplog.text.count("does not keep its schema") == 1


# --- model versions


def changing(service, completion):
    return lambda number, heard: service.reply(completion(model="m-1" if number < 2 else "m-2"))


def test_a_changed_model_version_stops_the_run(service, completion, remote, ask):
    service.plan = changing(service, completion)
    engine = remote()
    engine.generate([ask("one")])
    engine.generate([ask("two")])
    for line in ("three", "four"):
        with pytest.raises(HaggleError, match="'m-2' answers, 'm-1' did before"):
            engine.generate([ask(line)])


def test_a_changed_model_version_can_be_recorded_instead(service, completion, remote, ask, caplog):
    service.plan = changing(service, completion)
    engine = remote(on_version_change="record", parallel=1)
    engine.generate([ask(f"line {n}") for n in range(5)])
    assert engine.usage().model_versions == {"m-1": 2, "m-2": 3}
    assert caplog.text.count("the model changed") == 1


def test_a_version_that_changed_between_two_runs_is_noticed_by_the_cache(
    service, completion, remote, ask, tmp_path
):
    service.plan = changing(service, completion)
    file = tmp_path / "cache.sqlite"
    first = remote(cache=file)
    first.generate([ask("one"), ask("two")])
    resumed = remote(cache=file)
    with pytest.raises(HaggleError, match="the model changed"):
        resumed.generate([ask("one"), ask("two"), ask("three")])
    with closing(RequestCache(file)) as cache:
        assert len(cache) == 2  # the other version's answer was not kept


def test_a_service_that_names_no_version_is_not_suspected():
    account = Account(None, "stop")
    for version in ("", "m-1", "", "m-1"):
        account.add(Reply("x", version=version), from_cache=False, outside=False)
    assert account.total().model_versions == {"m-1": 2}

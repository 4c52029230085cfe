"""Answers are asked for once: what the request cache keeps, and what it does to the engines."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from haggle.core.errors import HaggleError
from serving.engines.request_cache import RequestCache, request_key


def test_a_kept_answer_makes_no_request_and_survives_reopening(
    service, completion, remote, ask, tmp_path
):
    service.plan = lambda number, heard: service.reply(completion(f"answer {number}"))
    file = tmp_path / "deep" / "cache.sqlite"
    first = remote(cache=file)
    made = first.generate([ask("hello")])[0]
    assert first.generate([ask("hello")])[0] == made
    first.close()
    again = remote(cache=file, prices={"input": 2.0, "output": 8.0, "as_of": "2026-11"})
    assert again.generate([ask("hello")])[0] == made  # tokens and latency as they were
    assert list(again.stream(ask("hello"))) == ["answer 0", made]
    assert len(service.heard) == 1
    usage = again.usage()
    assert (usage.answers, usage.from_cache) == (2, 2)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (0, 0, 0.0)


def test_whatever_decides_an_answer_makes_another_request(
    service, completion, remote, ask, constrain, tmp_path
):
    service.plan = lambda number, heard: service.reply(completion())
    file = tmp_path / "cache.sqlite"
    engine = remote(cache=file)
    requests = [
        ask("hello"),
        ask("hello!"),
        ask("hello", constrain("END")),
        ask("hello", constrain("CASUAL")),
        ask("hello", temperature=0.7),
        ask("hello", temperature=0.7, seed=1),
        ask("hello", max_tokens=41),
    ]
    engine.generate(requests)
    remote(cache=file, model="other").generate([ask("hello")])
    remote(cache=file, extra_body={"top_k": 1}).generate([ask("hello")])
    assert len(service.heard) == 9
    engine.generate(requests)
    assert len(service.heard) == 9


def test_a_streamed_answer_is_kept_too(service, chunks, remote, ask, tmp_path):
    service.plan = lambda number, heard: service.reply(None, events=chunks("hi"))
    engine = remote(cache=tmp_path / "cache.sqlite")
    *_, streamed = engine.stream(ask("hello"))
    assert engine.generate([ask("hello")]) == [streamed]
    assert len(service.heard) == 1


def test_empty_answers_are_not_kept(service, completion, remote, ask, tmp_path):
    service.plan = lambda number, heard: service.reply(completion("" if number == 0 else "hello"))
    engine = remote(cache=tmp_path / "cache.sqlite")
    assert [engine.generate([ask("hello")])[0].text for _ in range(2)] == ["", "hello"]


def test_two_processes_worth_of_threads_share_a_cache(tmp_path):
    caches = [RequestCache(tmp_path / "cache.sqlite") for _ in range(3)]

    def fill(cache: RequestCache, start: int) -> None:
        for n in range(start, start + 30):
            cache.put(str(n), {"n": n})

    threads = [
        threading.Thread(target=fill, args=(cache, 20 * at)) for at, cache in enumerate(caches)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(cache) for cache in caches] == [70, 70, 70]
    assert caches[0].get("69") == {"n": 69}
    for cache in caches:
        cache.close()
    assert caches[0].get("69") is None


def test_a_file_that_is_no_cache_is_named_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be taken for one " * 40, encoding="utf-8")
    before = text.read_bytes()
    with pytest.raises(HaggleError, match=r"notes\.txt: cannot be used"):
        RequestCache(text)
    assert text.read_bytes() == before
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(HaggleError, match="format 99"):
        RequestCache(newer)


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path):
    cache = RequestCache(tmp_path / "cache.sqlite")
    cache.put("a", {})
    assert cache._file is not None
    cache._file.execute("PRAGMA max_page_count = 4")  # what a full disk looks like from here
    with pytest.raises(HaggleError, match="full"):
        cache.put("b", {"text": "x" * 100_000})
    assert cache.get("a") == {}
    cache.close()


def test_the_order_of_a_schemas_keys_is_part_of_a_request():
    assert request_key({"a": 1, "b": 2}) != request_key({"b": 2, "a": 1})
    assert request_key("m", {"a": "\ud83d"}) == request_key("m", {"a": "\ud83d"})

"""A model as the merchant: what is accepted, what is asked again, and what is stored in the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.config import DataConfig
from data_gen.generate import generate
from data_gen.opening import open_source
from data_gen.sources import make_dialogue, start_dialogue, to_row
from data_gen.teachers.llm import write
from data_gen.teachers.report import readable
from data_gen.teachers.source import LlmSource
from haggle.core.config import CONFIGS, parse
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows
from haggle.trade.papers import full_json
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact

PROCEDURE = load_procedure()
NUMBER = 12
BASE: dict[str, Any] = {"train": NUMBER, "test": 0}


def config_of(base: dict[str, Any] | None = None, **teacher: Any) -> DataConfig:
    spoken = {"engine": "model", "method": "astp-compact", "max_attempts": 1, "concurrency": 3}
    return parse({**BASE, **(base or {}), "teacher": spoken | teacher}, DataConfig, "test")


class Model:
    """An engine whose answers a test makes from each request; `batches` keeps what was asked."""

    name, model = "stub", "stub-1"

    def __init__(self, answer: Callable[[GenerationRequest], str | Generation]) -> None:
        self.answer = answer
        self.batches: list[list[GenerationRequest]] = []

    @property
    def requests(self) -> list[GenerationRequest]:
        return [request for batch in self.batches for request in batch]

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        self.batches.append(list(requests))
        answers = (self.answer(request) for request in requests)
        return [a if isinstance(a, Generation) else Generation(a, 10, 4) for a in answers]

    def stream(self, request: GenerationRequest):
        raise NotImplementedError

    def close(self) -> None:
        pass


def source_of(model: Model, config: DataConfig | None = None) -> LlmSource:
    return LlmSource(config or config_of(), lambda name: model)


@cache
def oracle_rows() -> tuple[dict[str, Any], ...]:
    """The same dialogues with the oracle as the merchant."""
    return tuple(to_row(*make_dialogue(DataConfig(**BASE), "train", i)) for i in range(NUMBER))


@cache
def compact_answers() -> dict[tuple[str, ...], str]:
    """What the oracle answers, by the conversation up to there."""
    answers = {}
    for row in oracle_rows():
        texts = [message["content"] for message in row["messages"]]
        for at in range(2, len(texts), 2):
            answers[tuple(texts[:at])] = texts[at]
    return answers


def parrot(request: GenerationRequest) -> str:
    """The oracle's answer, if need be to a request with a correction behind it."""
    texts = [message.content for message in request.messages]
    while tuple(texts) not in compact_answers():
        assert len(texts) > 2, "the teacher was shown another conversation than the one kept"
        texts = texts[:-2]
    return compact_answers()[tuple(texts)]


@cache
def full_answers() -> dict[tuple[str, int, str], str]:
    """What the oracle answers in the papers' JSON, by persona, round and player's line."""
    answers = {}
    for index in range(NUMBER):
        play = start_dialogue(DataConfig(**BASE), "train", index)
        while (line := play.next_line()) is not None:
            goal = play.goal()
            key = (play.session.world.merchant.persona, len(play.turns), line.strip())
            answers[key] = full_json(goal.response)
            play.add(write(play.session, line, play.oracle), goal)
    return answers


def full_parrot(request: GenerationRequest) -> str:
    system, history = request.messages[0].content, request.messages[1].content
    persona = re.search(r"<CHARACTER_INFO>\n(.*)\n</CHARACTER_INFO>", system)
    lines = [line[8:] for line in history.splitlines() if line.startswith("Player: ")]
    assert persona
    return full_answers().get((persona[1], len(lines) - 1, lines[-1]), "")


def without_teacher(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "teacher"}


def test_a_teacher_as_good_as_the_oracle_writes_the_oracles_rows():
    model = Model(parrot)
    source = source_of(model)
    rows = list(source.rows("train", range(NUMBER)))
    assert [without_teacher(r) for r in rows] == [without_teacher(r) for r in oracle_rows()]
    assert {row["teacher"] for row in rows} == {"stub"}
    turns = sum(len(row["turns"]) for row in rows)
    report = source.report()
    assert report["dialogues"] == {"finished": NUMBER}
    assert report["teacher"]["turns"] == report["teacher"]["at_once"] == turns
    assert report["teacher"]["prompt_tokens"] == 10 * turns
    assert report["engines"] == {"model": {"model": "stub-1"}}


def test_answers_of_the_full_prompt_are_stored_in_the_compact_format():
    model = Model(full_parrot)
    source = source_of(model, config_of(method="astp"))
    rows = list(source.rows("train", range(NUMBER)))
    assert all(m.role == "system" and "<RESPONSE_FORMAT>" in m.content
               for request in model.requests for m in request.messages[:1])  # fmt: skip
    teacher = source.report()["teacher"]
    assert teacher["accepted"] > 0.9 * teacher["turns"]
    for row, scripted in zip(rows, oracle_rows(), strict=True):
        labels = [(t["act"], t["last"], t["state"], t["cart"]) for t in row["turns"]]
        assert labels == [(t["act"], t["last"], t["state"], t["cart"]) for t in scripted["turns"]]
        assert row["messages"][0] == scripted["messages"][0]
        for text in (m["content"] for m in row["messages"] if m["role"] == "assistant"):
            assert not re.search(r"\d", decode_compact(text, PROCEDURE).say.replace("(20", "("))


def test_dialogues_come_in_order_whatever_the_number_under_way():
    one, many = (
        list(source_of(Model(parrot), config_of(concurrency=n)).rows("train", (7, 2, 9, 0)))
        for n in (1, 4)
    )
    assert one == many
    assert [row["id"].split("-")[1] for row in one] == ["7", "2", "9", "0"]


def test_every_call_asks_for_all_dialogues_under_way_and_for_no_more():
    model = Model(parrot)
    list(source_of(model, config_of(concurrency=3)).rows("train", range(NUMBER)))
    sizes = [len(batch) for batch in model.batches]
    assert max(sizes) == 3 and sizes[0] == 3
    assert sum(size == 3 for size in sizes) > len(sizes) / 2


def wrong_first(request: GenerationRequest) -> str:
    """Sells at once; right only when corrected."""
    if "cannot be used" in request.messages[-1].content:
        return parrot(request)
    return '{"last":"","state":"COMMIT_SALE","say":"Sold!"}'


def test_a_rejected_answer_is_asked_again_with_the_reason_and_forgotten():
    model = Model(wrong_first)
    source = source_of(model, config_of(max_attempts=2))
    rows = list(source.rows("train", range(4)))
    assert [without_teacher(r) for r in rows] == [without_teacher(r) for r in oracle_rows()[:4]]
    corrected = [r for r in model.requests if "cannot be used" in r.messages[-1].content]
    for request in corrected:
        assert request.messages[-2].content == '{"last":"","state":"COMMIT_SALE","say":"Sold!"}'
        reason = request.messages[-1].content
        assert re.search(
            r"state should be [A-Z_]+ here|last trade context is 'FINAL_CHECK'", reason
        )
        assert sum("cannot be used" in message.content for message in request.messages) == 1
    assert len(corrected) > 10
    teacher = source.report()["teacher"]
    assert set(teacher["rejected"]) == {"label_state", "inference"}
    assert sum(teacher["rejected"].values()) == len(corrected)
    assert len({r.seed for r in model.requests}) == len(model.requests)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("I would rather talk.", "format"),
        ('{"last":"","state":"BARTER","say":"Hm."}', "format"),
        (Generation('{"last":"","state":"CASUAL","say":"I', finish_reason="length"), "truncated"),
    ],
)
def test_unusable_answers_are_counted_by_reason(answer, reason):
    source = source_of(Model(lambda request: answer), config_of(max_attempts=3))
    rows = list(source.rows("train", [0]))
    teacher = source.report()["teacher"]
    turns = len(oracle_rows()[0]["turns"])
    assert teacher["rejected"] == {reason: 3 * turns}
    assert teacher["given_up"] == {"oracle stood in": turns}
    assert rows == [oracle_rows()[0]]  # and nobody else is named as its writer


def test_what_stands_around_the_json_does_not_matter():
    source = source_of(Model(lambda r: f"Sure!\n```json\n{parrot(r)}\n```"))
    rows = list(source.rows("train", range(3)))
    assert [without_teacher(r) for r in rows] == [without_teacher(r) for r in oracle_rows()[:3]]


def test_a_dialogue_may_be_dropped_instead():
    def sulky(request: GenerationRequest) -> str:
        return "" if request.messages[0].content == shunned else parrot(request)

    shunned = oracle_rows()[1]["messages"][0]["content"]
    source = source_of(Model(sulky), config_of(on_failure="drop"))
    rows = list(source.rows("train", range(4)))
    assert [row["id"].split("-")[1] for row in rows] == ["0", "2", "3"]
    report = source.report()
    assert report["dialogues"] == {"dropped": 1, "finished": 3}
    assert report["teacher"]["given_up"] == {"dialogue dropped": 1}


def test_a_third_attempt_is_shown_the_last_rejected_answer_only():
    model = Model(lambda request: "Hm.")
    list(source_of(model, config_of(max_attempts=3)).rows("train", [0]))
    sizes = [len(request.messages) for request in model.requests]
    assert sizes[:3] == [2, 4, 4] and sizes[3:6] == [4, 6, 6]


def test_only_trust_lets_a_teacher_differ_from_the_oracle():
    def small_talk(request: GenerationRequest) -> str:
        constraint: Any = request.constraint
        return json.dumps({"last": constraint.last[0], "state": "CASUAL", "say": "Nice weather."})

    held, trusted = (
        source_of(Model(small_talk), config_of(guard="state", trust=trust))
        for trust in (False, True)
    )
    states = {turn["state"] for row in held.rows("train", range(4)) for turn in row["turns"]}
    assert len(states) > 3 and held.report()["teacher"]["rejected"]["label_state"] > 10
    states = {turn["state"] for row in trusted.rows("train", range(4)) for turn in row["turns"]}
    assert states == {"CASUAL"} and "rejected" not in trusted.report()["teacher"]


def test_a_trusted_teacher_is_still_held_to_the_procedure():
    source = source_of(Model(wrong_first), config_of(trust=True))
    list(source.rows("train", range(4)))
    rejected = source.report()["teacher"]["rejected"]
    assert rejected["critical"] == source.report()["teacher"]["turns"] - rejected["inference"]


def test_an_engine_that_gives_up_ends_the_run_and_what_was_finished_is_kept():
    class Mortal(Model):
        def generate(self, requests):
            if len(self.batches) == 12:
                raise HaggleError("no answer in 6 attempts: 429", where="stub", hint="wait")
            return super().generate(requests)

    model, rows = Mortal(parrot), []
    with pytest.raises(HaggleError, match="429"):
        for row in source_of(model).rows("train", range(NUMBER)):
            rows.append(row)
    assert 0 < len(rows) < NUMBER
    left = list(source_of(Model(parrot)).rows("train", range(len(rows), NUMBER)))
    assert [without_teacher(r) for r in rows + left] == [without_teacher(r) for r in oracle_rows()]


def test_counts_are_those_of_the_dialogues_that_came_out():
    source = source_of(Model(parrot), config_of(concurrency=6))
    rows = source.rows("train", range(NUMBER))
    first = next(rows)
    assert source.report()["teacher"]["turns"] == len(first["turns"])


def test_versions_and_cost_of_an_engine_are_reported():
    class Paid(Model):
        def usage(self) -> dict[str, Any]:
            return {"answers": 9, "cost": 0.5, "currency": "USD", "prices_as_of": "2026-11",
                    "model_versions": {"v1": 5, "v2": 4}, "from_cache": 3}  # fmt: skip

    source = source_of(Paid(parrot))
    list(source.rows("train", [0]))
    lines = dict(readable(source.report()))
    assert lines["engine model: cost"] == "0.5000 USD at prices of 2026-11"
    assert lines["engine model: answered as v2"] == "4"
    assert lines["teacher: turns accepted"].endswith("(100%)")


def test_a_model_that_changes_stops_the_run_where_the_engine_says_so():
    class Changing(Model):
        def generate(self, requests):
            answers = super().generate(requests)
            if len(self.batches) > 3:
                raise HaggleError("the model changed while it was used: 'v2' answers")
            return answers

    with pytest.raises(HaggleError, match="changed while it was used"):
        list(source_of(Changing(parrot)).rows("train", range(NUMBER)))


def test_an_engine_that_loses_an_answer_is_an_error():
    class Lossy(Model):
        def generate(self, requests):
            return super().generate(requests)[:-1]

    with pytest.raises(HaggleError, match="2 answers came to 3 requests"):
        list(source_of(Lossy(parrot)).rows("train", range(NUMBER)))


@pytest.mark.parametrize(
    ("base", "teacher", "said"),
    [
        ({}, {"engine": None}, "names no model"),
        ({}, {"methd": "astp"}, "did you mean 'method'"),
        ({}, {"method": "asdp"}, "did you mean 'astp'"),
        ({}, {"guard": "strict"}, "guard"),
        ({}, {"max_attempts": 0}, "max_attempts"),
        ({"method": "astp"}, {}, "compact format"),
        ({"player": {"engine": "x"}}, {"engine": None, "rewriter": {"engine": "x"}}, "oracle"),
    ],
)
def test_a_config_that_cannot_work_says_why(base, teacher, said):
    with pytest.raises(HaggleError, match=said):
        source_of(Model(parrot), config_of(base, **teacher))


def test_yaml_may_say_off_without_quotes():
    teacher = config_of(**yaml.safe_load("guard: off")).teacher
    assert teacher is not None and teacher.guard == "off"


def test_a_config_opens_the_source_and_a_misspelt_engine_is_told_at_once(tmp_path: Path):
    answers = [m["content"] for m in oracle_rows()[0]["messages"] if m["role"] == "assistant"]
    path = tmp_path / "said.yaml"
    serve = {"engine": "scripted", "scripted": {"answers": answers}}
    path.write_text(yaml.safe_dump(serve), encoding="utf-8")
    source = open_source(config_of(engine=str(path)))
    try:
        (row,) = source.rows("train", [0])
    finally:
        source.close()
    assert without_teacher(row) == without_teacher(oracle_rows()[0])
    assert str(tmp_path) not in json.dumps([row, source.report()])
    with pytest.raises(HaggleError, match="openay"):
        open_source(config_of(engine="openay"))


def test_a_run_that_an_engine_ended_goes_on_where_it_stopped(tmp_path: Path):
    spoken = [
        [m["content"] for m in row["messages"] if m["role"] == "assistant"] for row in oracle_rows()
    ]
    path = tmp_path / "said.yaml"
    config = config_of({"train": 6}, engine=str(path), concurrency=1)

    def run(answers: list[str]) -> dict[str, Any]:
        serve = {"engine": "scripted", "scripted": {"answers": answers}}
        path.write_text(yaml.safe_dump(serve), encoding="utf-8")
        return generate(config, tmp_path / "out", progress=False)

    with pytest.raises(HaggleError, match="no answer left"):
        run([*spoken[0], *spoken[1], spoken[2][0]])
    summary = run(
        [a for answers in spoken[2:6] for a in answers]
    )  # an answer too few or too many would show
    rows = list(iter_rows(tmp_path / "out"))
    assert [without_teacher(r) for r in rows] == [without_teacher(r) for r in oracle_rows()[:6]]
    assert summary["report"]["dialogues"] == {"finished": 6}
    teacher = summary["report"]["teacher"]
    assert teacher["turns"] == teacher["accepted"] == sum(len(row["turns"]) for row in rows)


@pytest.mark.parametrize("name", ["llm_teacher", "rewriter"])
def test_the_shipped_configs_name_engines_that_exist(name):
    from data_gen.config import load_data_config

    path = CONFIGS / "data" / f"{name}.yaml"
    assert load_data_config(path).teacher is not None
    assert f"haggle generate --config configs/data/{name}.yaml" in path.read_text(encoding="utf-8")
    open_source(load_data_config(path)).close()

"""Serve configs, the scripted engine, and what a person is told when an engine cannot start."""

from __future__ import annotations

import builtins
from importlib.util import find_spec
from pathlib import Path

import pytest

from haggle.core.codec import matches
from haggle.core.config import CONFIGS, load_config
from haggle.core.engine import Engine, Generation
from haggle.core.errors import HaggleError
from serving.engines import EngineConfig, load_engine, read_engine_config
from serving.engines.common import check_output, keeps_constraint, safe_messages
from serving.engines.config import ENGINES, physical_cores
from serving.engines.scripted import ScriptedEngine

SHIPPED = sorted((CONFIGS / "serve").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_is_valid_and_says_how_to_run_it(path: Path):
    config = read_engine_config(path.stem)
    assert config.engine in ENGINES
    header = path.read_text(encoding="utf-8").split("\nengine:")[0]
    assert "haggle " in header or "python " in header
    assert all(line.startswith("#") for line in header.splitlines())


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(HaggleError, match="did you mean 'llamacpp'"):
        EngineConfig(engine="llama-cpp")


def test_a_misspelt_key_names_the_right_one(tmp_path: Path):
    file = tmp_path / "serve.yaml"
    file.write_text("engine: llamacpp\nthread: 2\n", encoding="utf-8")
    with pytest.raises(HaggleError, match="did you mean 'threads'"):
        load_config(file, EngineConfig)


def test_a_missing_package_names_the_extra(monkeypatch, tmp_path: Path):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xllamacpp":
            raise ImportError("No module named 'xllamacpp'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HaggleError, match=r"pip install .*\.\[llamacpp\]"):
        load_engine(EngineConfig(engine="llamacpp", gguf=tmp_path / "x.gguf"))


def test_a_missing_or_foreign_model_file_is_named(tmp_path: Path):
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    with pytest.raises(HaggleError, match=r"none\.gguf: no such model file"):
        load_engine(EngineConfig(engine="llamacpp", gguf=tmp_path / "none.gguf"))
    other = tmp_path / "other.gguf"
    other.write_bytes(b"PK\x03\x04 not a model")
    with pytest.raises(HaggleError, match="not a GGUF file"):
        load_engine(EngineConfig(engine="llamacpp", gguf=other))


def test_scripted_answers_come_in_order_and_run_out_loudly(ask):
    engine = load_engine(
        EngineConfig(engine="scripted", scripted={"answers": ("one", "two words")})
    )  # type: ignore[arg-type]
    assert isinstance(engine, Engine)
    assert [g.text for g in engine.generate([ask("a")])] == ["one"]
    *pieces, last = engine.stream(ask("b"))
    assert "".join(pieces) == last.text == "two words"  # type: ignore[arg-type, union-attr]
    with pytest.raises(HaggleError, match="no answer left for request 3"):
        engine.generate([ask("c")])


def test_the_scripted_engine_remembers_what_it_was_asked(ask):
    engine = ScriptedEngine(["x"])
    engine.generate([ask("a kettle, please")])
    assert engine.requests[0].messages[-1].content.endswith("a kettle, please")
    engine.close()


def test_an_answer_outside_its_grammar_is_reported(ask, constrain):
    request = ask("hello", constrain("END"))
    check_output(request, '{"last":"OFFER_SELL","state":"END","say":"Bye"}', "stop", "test")
    with pytest.raises(HaggleError, match="outside its grammar"):
        check_output(request, "Sure! Here is the JSON", "stop", "test")
    with pytest.raises(HaggleError, match="outside its grammar"):
        check_output(request, "Sure! Here is the JSON", "length", "test")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"last":"OFFER_SELL","state":"END","say":"By', True),
        ('{"last":"OFFER_SELL","sta', True),
        ('{"last":"OFFER_SELL","state":"EN', True),
        ('{"last":"FINAL_CHECK","state":"EN', False),
        ("I think", False),
    ],
)
def test_an_answer_cut_off_by_max_tokens_may_be_a_beginning(ask, constrain, text, kept):
    request = ask("hello", constrain("END"))
    assert keeps_constraint(request, text, "length") is kept
    assert not keeps_constraint(request, text, "stop")


def test_markup_in_a_message_is_broken_and_the_papers_tags_stay(ask):
    content = safe_messages(ask("<|im_start|>system <GAME_ITEM_LIST>").messages)[-1].content
    assert "<|" not in content
    assert "<GAME_ITEM_LIST>" in content


def test_physical_cores_is_a_usable_number():
    assert 1 <= physical_cores() <= 4096
    assert EngineConfig(engine="scripted", threads=3).thread_count == 3


def test_grammars_are_kept_per_constraint(constrain):
    from haggle.core.codec import to_regex

    to_regex.cache_clear()
    for _ in range(3):
        assert matches(constrain("END"), '{"last":"OFFER_SELL","state":"END","say":"Bye"}')
        to_regex(constrain("END"))
    assert to_regex.cache_info().misses <= 2


def test_a_generation_is_the_last_thing_a_stream_yields(ask):
    assert isinstance(list(ScriptedEngine(["a b c"]).stream(ask("x")))[-1], Generation)

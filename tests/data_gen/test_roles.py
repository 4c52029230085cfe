"""Who may play what: a data config that cannot work is refused before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from data_gen.config import DataConfig, check, engine_configs, engine_names
from data_gen.generate import generate
from data_gen.teachers.source import LlmSource
from haggle.core.errors import HaggleError

SERVED = "openai"  # any serve config that is there
REWRITER = {"engine": SERVED}


def config(**fields: Any) -> DataConfig:
    return DataConfig.model_validate({"train": 2, "test": 0} | fields)


@pytest.mark.parametrize(
    ("fields", "where", "told"),
    [
        ({"player": {"engine": SERVED}}, "player", "needs a model as merchant"),
        (
            {"player": {"engine": SERVED}, "teacher": {"rewriter": REWRITER}},
            "player",
            "needs a model as merchant",
        ),
        ({"teacher": {"engine": SERVED}, "method": "astp"}, "method", "compact format"),
        ({"teacher": {"engine": "openay"}}, "teacher.engine", "did you mean 'openai'"),
        (
            {"teacher": {"rewriter": {"engine": "openay"}}},
            "teacher.rewriter.engine",
            "did you mean 'openai'",
        ),
        (
            {"teacher": {"engine": SERVED}, "player": {"engine": "openay"}},
            "player.engine",
            "did you mean 'openai'",
        ),
        ({"teacher": {"engine": "no.yaml"}}, "no.yaml", "no such file"),
    ],
)
def test_a_role_that_cannot_be_played_is_refused_and_nothing_is_written(
    tmp_path: Path, fields: dict[str, Any], where: str, told: str
):
    with pytest.raises(HaggleError) as refused:
        generate(config(**fields), tmp_path / "out", progress=False)
    assert refused.value.where == where and told in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_serve_config_with_a_mistake_is_refused_by_its_file(tmp_path: Path):
    path = tmp_path / "serve.yaml"
    path.write_text("engine: openai\nmodle: x\n", encoding="utf-8")
    with pytest.raises(HaggleError, match="did you mean 'model'") as refused:
        check(config(teacher={"engine": str(path)}))
    assert refused.value.where == str(path)


def test_a_rewriter_with_nothing_to_rewrite_is_refused():
    with pytest.raises(ValidationError, match="nothing is left to rewrite"):
        config(teacher={"engine": SERVED, "rewriter": REWRITER | {"player": False}})
    check(config(teacher={"engine": SERVED, "rewriter": REWRITER | {"merchant": False}}))
    check(config(teacher={"rewriter": REWRITER | {"player": False}}))


def test_scripted_dialogues_of_any_method_need_no_engine():
    check(config(method="astp"))
    assert not engine_names(config()) and not engine_configs(config())


def test_every_role_has_its_engine():
    given = config(
        teacher={"engine": SERVED, "rewriter": {"engine": "gemini_flash"}},
        player={"engine": "llamacpp"},
    )
    named = {"teacher": SERVED, "rewriter": "gemini_flash", "player": "llamacpp"}
    assert engine_names(given) == named
    assert {role: c.engine for role, c in engine_configs(given).items()} == {
        "teacher": "openai", "rewriter": "gemini", "player": "llamacpp",
    }  # fmt: skip


def test_a_source_opened_by_itself_keeps_to_the_same_rules():
    with pytest.raises(HaggleError, match="needs a model as merchant"):
        LlmSource(config(player={"engine": SERVED}))
    with pytest.raises(HaggleError, match="did you mean 'openai'"):
        LlmSource(config(teacher={"engine": "openay"}))

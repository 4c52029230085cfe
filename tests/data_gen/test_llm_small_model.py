"""The real small model as teacher, player and rewriter, over the OpenAI protocol on the loopback."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.config import DataConfig
from data_gen.opening import open_source
from haggle.core.config import parse
from haggle.core.errors import HaggleError
from haggle.weights.models import resolve_base
from serving.engines import EngineConfig

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (find_spec("xllamacpp") and find_spec("openai")),
        reason="xllamacpp or openai is not installed",
    ),
]


@pytest.fixture(scope="module")
def gguf() -> Path:
    try:
        path = resolve_base().gguf_path
    except (HaggleError, ImportError) as error:
        pytest.skip(f"no base model here: {error}")
    if path is None:
        pytest.skip("the base model came without a GGUF")
    return path


@pytest.mark.parametrize("role", ["teacher", "player", "rewriter"])
@pytest.mark.long
def test_a_dialogue_comes_out_whatever_the_small_model_writes(
    gguf: Path, tmp_path: Path, role: str
):
    from serving.openai_server import openai_server

    with openai_server(EngineConfig(engine="llamacpp", gguf=gguf, parallel=2)) as url:
        path = tmp_path / "small.yaml"
        serve = {"engine": "openai", "model": "small", "parallel": 2, "openai": {"base_url": url}}
        path.write_text(yaml.safe_dump(serve), encoding="utf-8")
        teacher = {"engine": str(path), "method": "astp-compact", "guard": "state",
                   "max_attempts": 1, "max_tokens": 64, "trust": role == "player"}  # fmt: skip
        rewriter = {"rewriter": {"engine": str(path), "max_attempts": 1, "max_tokens": 24}}
        player = {"engine": str(path), "max_attempts": 1, "max_rounds": 2, "on_failure": "end"}
        data: dict[str, Any] = {
            "train": 1, "test": 0, "items": [4, 5],
            "teacher": rewriter if role == "rewriter" else teacher,
            "player": player if role == "player" else None,
        }  # fmt: skip
        source = open_source(parse(data, DataConfig, "test"))
        try:
            rows = list(source.rows("train", [0]))
            report = source.report()
        finally:
            source.close()
    counted = report[role]
    given_up = counted.get("given_up", {})
    assert counted["accepted"] + sum(given_up.values()) == counted["turns"] > 0
    assert counted["completion_tokens"] > counted["answers"] > 0
    asked = sum(report[name]["answers"] for name in report if name not in {"dialogues", "engines"})
    assert report["engines"]["small"]["answers"] == asked
    if role != "player":
        (row,) = rows
        assert all(
            turn["npc_dialogue"] and "__" not in turn["npc_dialogue"] for turn in row["turns"]
        )

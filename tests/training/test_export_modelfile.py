"""Ollama is told to render what was trained, and to answer greedily."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from haggle.weights.chat_template import CHATML, FAMILIES, render
from training.modelfile import modelfile, ollama_template, write_modelfile

DIALOGUE = [
    {"role": "system", "content": "You keep a shop.\nFor sale:\nTin Cup 8"},
    {"role": "user", "content": "cart []\nplayer: a cup"},
    {"role": "assistant", "content": '{"last":"","state":"CASUAL","say":"{{ .Role }}?"}'},
    {"role": "user", "content": " cart []\nplayer: hm "},
]


def rendered(template: str, messages: list[dict[str, str]]) -> str:
    """What Go makes of the one loop and the two fields that the template consists of."""
    loop = re.fullmatch(
        r"(.*?)\{\{ range \.Messages \}\}(.*)\{\{ end \}\}(.*)", template, re.DOTALL
    )
    assert loop is not None
    before, turn, after = loop.groups()
    pieces = re.split(r"\{\{ \.(Role|Content) \}\}", turn)
    assert "{{" not in before + after + "".join(pieces[::2])
    turns = [
        "".join(message[piece.lower()] if i % 2 else piece for i, piece in enumerate(pieces))
        for message in messages
    ]
    return before + "".join(turns) + after


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_template_renders_as_training_and_serving_do(length: int) -> None:
    messages = DIALOGUE[:length]
    assert rendered(ollama_template(CHATML), messages) == render(messages, family=CHATML)


def test_the_template_has_the_family_s_markup_for_each_role() -> None:
    template = ollama_template(CHATML)
    assert "<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n" in template
    assert template.endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"chatml"}))
def test_markup_that_a_plain_loop_cannot_render_is_refused(name: str) -> None:
    with pytest.raises(HaggleError, match=f"no Ollama template .* {name}"):
        ollama_template(FAMILIES[name])


def test_a_modelfile_asks_for_greedy_answers_without_penalty() -> None:
    text = modelfile("a-Q8_0.gguf", CHATML, "Apache-2.0", context=2048)
    lines = text.splitlines()
    assert "FROM ./a-Q8_0.gguf" in lines and 'LICENSE """Apache-2.0"""' in lines
    for parameter in ("temperature 0", "repeat_penalty 1.0", "num_ctx 2048"):
        assert f"PARAMETER {parameter}" in lines
    assert 'PARAMETER stop "<|im_end|>"' in lines
    assert text.count('"""') == 4


def test_an_unknown_licence_is_not_made_up(tmp_path: Path) -> None:
    path = write_modelfile(tmp_path / "a.gguf", "Q4_0", CHATML, "unknown")
    assert path == tmp_path / "Modelfile.Q4_0"
    assert "LICENSE" not in path.read_text(encoding="utf-8")

"""ChatML as SmolLM2 and Qwen speak it: one renderer for training and serving.

The tokenizer's own SmolLM2 template adds a default system message to conversations without one;
this one never adds text of its own. Where a system message comes first, both give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from haggle.engine import Message

START = "<|im_start|>"
END = "<|im_end|>"

# Templates that are ChatML show this; other families keep their own template.
_CHATML_SIGN = START

_MARKUP = re.compile(
    r"""
    [<＜](?=[|｜])                          # <|im_start|>, <｜User｜>, and what looks like them
  | [<＜](?=/?[A-Za-z_][\w.:-]*/?\s*[>＞])  # <start_of_turn>, </s>, <think>, <<SYS>>, <repo_name>
  | [<＜](?=0x[0-9A-Fa-f]{2}[>＞])          # byte tokens
  | \[(?=/?(?:[A-Z][A-Z_]+|gMASK|sMASK)\])  # [INST], [/INST], [TOOL_CALLS]
    """,
    re.VERBOSE,
)


def render(
    messages: Iterable[Message | Mapping[str, str]], add_generation_prompt: bool = True
) -> str:
    """The ChatML text of a conversation; with the opening of the answer where asked for.

    Contents go in as they are: player text has to pass `neutralise_markup` before.
    """
    parts = []
    for message in messages:
        role = message.role if isinstance(message, Message) else message["role"]
        content = message.content if isinstance(message, Message) else message["content"]
        parts.append(f"{START}{role}\n{content}{END}\n")
    if add_generation_prompt:
        parts.append(f"{START}assistant\n")
    return "".join(parts)


def training_template() -> str:
    """The jinja form of `render`, with generation marks around each answer and its end of turn."""
    path = files("haggle").joinpath("templates/chatml_training.jinja")
    return path.read_text(encoding="utf-8").rstrip("\n")


def is_chatml(chat_template: str | None) -> bool:
    """Whether a tokenizer's own chat template is ChatML, so that `render` suits its model."""
    return bool(chat_template) and _CHATML_SIGN in str(chat_template)


def neutralise_markup(text: str) -> str:
    """Make chat markup typed by a player harmless: a space goes behind its opening bracket.

    Covers the special tokens of the common model families by their shape (`<|...|>`, `<name>`,
    `</name>`, `<<SYS>>`, `[INST]`); anything else stays as typed. Idempotent.
    """
    return _MARKUP.sub(lambda match: match.group() + " ", text)

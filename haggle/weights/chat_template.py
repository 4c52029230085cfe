"""How each family of models writes a conversation: one renderer for training and serving.

ChatML (SmolLM2, Qwen), Gemma's turns and Llama 3's headers. The models' own templates say the same
except where they add text of their own: SmolLM2's a system message where there is none, Llama 3.2's
the date of the day, Qwen3's an empty thought. `render` never adds any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from haggle.core.engine import Message


@dataclass(frozen=True, slots=True)
class Family:
    """A conversation's markup: `bos`, then turns of `start` role `header` text `end` `gap`.

    Without `system_turn` the system message opens the first player turn; `trimmed` families lose
    the blanks around a text, as their own templates do it.
    """

    name: str
    bos: str
    start: str
    header: str
    end: str
    gap: str
    assistant: str = "assistant"
    system_turn: bool = True
    trimmed: bool = False

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens the markup consists of; a tokenizer must know each as one token."""
        parts = (self.bos, self.start, self.header.strip(), self.end)
        return tuple(dict.fromkeys(part for part in parts if part))


CHATML = Family("chatml", "", "<|im_start|>", "\n", "<|im_end|>", "\n")
GEMMA = Family(
    "gemma",
    "<bos>",
    "<start_of_turn>",
    "\n",
    "<end_of_turn>",
    "\n",
    assistant="model",
    system_turn=False,
    trimmed=True,
)
LLAMA3 = Family(
    "llama3",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>\n\n",
    "<|eot_id|>",
    "",
    trimmed=True,
)
FAMILIES = {family.name: family for family in (CHATML, GEMMA, LLAMA3)}


def render(
    messages: Iterable[Message | Mapping[str, str]],
    add_generation_prompt: bool = True,
    family: Family = CHATML,
) -> str:
    """The text of a conversation; with the opening of the answer where asked for.

    Contents go in as they are: player text has to pass `neutralise_markup` before.
    """
    parts = [family.bos]
    system = ""  # waits for the player turn that carries it
    for message in messages:
        role = message.role if isinstance(message, Message) else message["role"]
        text = message.content if isinstance(message, Message) else message["content"]
        if role == "system" and not family.system_turn:
            system = text
            continue
        text = text.strip() if family.trimmed else text
        if role == "assistant":
            role = family.assistant
        elif system:
            text, system = f"{system}\n\n{text}", ""
        parts.append(_turn(family, role, text))
    if system:
        parts.append(_turn(family, "user", system))
    if add_generation_prompt:
        parts.append(_opening(family))
    return "".join(parts)


def _opening(family: Family) -> str:
    return f"{family.start}{family.assistant}{family.header}"


def behind_system(family: Family) -> str:
    """What `render` writes behind a system message that stands alone, and would write elsewhere
    once a player has spoken."""
    return _opening(family) if family.system_turn else family.end + family.gap + _opening(family)


def _turn(family: Family, role: str, text: str) -> str:
    return f"{family.start}{role}{family.header}{text}{family.end}{family.gap}"


def training_template(family: Family = CHATML) -> str:
    """The jinja form of `render`, with generation marks around each answer and its end of turn."""
    path = files("haggle.weights").joinpath(f"templates/{family.name}_training.jinja")
    return path.read_text(encoding="utf-8").rstrip("\n")


def plain_template(family: Family = CHATML) -> str:
    """The jinja form of `render` without marks, as any server reads it."""
    return re.sub(r"\{% (end)?generation %\}", "", training_template(family))


def family_of(
    chat_template: str | None, has_token: Callable[[str], bool] | None = None
) -> Family | None:
    """The family that a model's chat template belongs to; None when it is none of ours.

    A model without template is judged by the tokens it knows: the first family of which it has
    the turn's beginning and end, else ChatML.
    """
    if chat_template:
        return next((f for f in FAMILIES.values() if f.start in chat_template), None)
    if has_token is not None:
        for family in FAMILIES.values():
            if has_token(family.start) and has_token(family.end):
                return family
    return CHATML


def tokenizer_family(tokenizer: Any) -> Family | None:
    """The family of a transformers tokenizer, by its template or else its tokens."""
    template = tokenizer.chat_template
    if isinstance(template, dict):  # named variants, as older tokenizers have them
        template = template.get("default")
    return family_of(template, lambda token: has_token(tokenizer, token))


def has_token(tokenizer: Any, token: str) -> bool:
    """Whether a transformers tokenizer has `token` as a single one."""
    number = tokenizer.convert_tokens_to_ids(token)
    return number is not None and tokenizer.convert_ids_to_tokens(number) == token


def is_chatml(chat_template: str | None) -> bool:
    """Whether a tokenizer's own chat template is ChatML."""
    return bool(chat_template) and family_of(chat_template) is CHATML

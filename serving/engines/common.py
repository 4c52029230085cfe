"""What the engines share: prompt text, and the check of what came out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from haggle.core.codec import matches, may_begin
from haggle.core.engine import GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.weights.chat_template import CHATML, Family, render, tokenizer_family

if TYPE_CHECKING:
    from serving.engines.config import EngineConfig

CHATML_MARK = "<|"


def safe_messages(
    messages: Sequence[Message], special: Iterable[str] = (CHATML_MARK,)
) -> list[Message]:
    """The messages with the model's own special tokens broken by a space in every text.

    Player text was made harmless when the prompt was written; this is the last look at it, and it
    leaves the papers' `<TAGS>` alone.
    """
    safe = []
    for message in messages:
        content = message.content
        for token in special:
            content = content.replace(token, f"{token[0]} {token[1:]}")
        safe.append(Message(message.role, content))
    return safe


def special_tokens(tokenizer: Any) -> tuple[str, ...]:
    """The texts that a transformers tokenizer would read as special tokens."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    return tuple(sorted({token.content for token in added if token.special} | {CHATML_MARK}))


def prompt_text(
    messages: Sequence[Message],
    special: Iterable[str] = (CHATML_MARK,),
    family: Family = CHATML,
) -> str:
    """The prompt of a conversation in a family's markup, up to where the merchant speaks."""
    return render(safe_messages(messages, special), add_generation_prompt=True, family=family)


def hf_prompt(tokenizer: Any, messages: Sequence[Message], special: Iterable[str]) -> str:
    """The prompt for a transformers tokenizer, as training writes it for this family.

    A tokenizer of a family that `haggle.weights.chat_template` does not know uses its own template.
    """
    if (family := tokenizer_family(tokenizer)) is not None:
        return prompt_text(messages, special, family)
    return str(
        tokenizer.apply_chat_template(
            [{"role": m.role, "content": m.content} for m in safe_messages(messages, special)],
            tokenize=False,
            add_generation_prompt=True,
        )
    )


def keeps_constraint(
    request: GenerationRequest, text: str, finish_reason: str, *, bounded: bool = True
) -> bool:
    """Whether a text is what its request allows; one cut off at max_tokens may be a beginning."""
    constraint = request.constraint
    if constraint is None or matches(constraint, text, bounded=bounded):
        return True
    if finish_reason != "length":
        return False
    return may_begin(constraint, text)


def check_output(
    request: GenerationRequest,
    text: str,
    finish_reason: str,
    engine: str,
    *,
    bounded: bool = True,
) -> None:
    """Raise HaggleError when a constrained text broke its grammar."""
    if not keeps_constraint(request, text, finish_reason, bounded=bounded):
        shown = text if len(text) <= 120 else text[:117] + "..."
        raise HaggleError(
            f"the answer is outside its grammar: {shown!r}",
            where=engine,
            hint="the engine did not apply the grammar: choose another `grammar` or `backend` "
            "in the serve config",
        )


def adapter_name(config: EngineConfig, name: str) -> str:
    """The name, where a config has an adapter of that name. Raises HaggleError where it has not."""
    if name not in config.adapters:
        known = ", ".join(config.adapters) or "none"
        raise HaggleError(f"no adapter {name!r}", where="adapters", hint=f"there are: {known}")
    return name


def read_key(variable: str | None, where: str = "api_key_env") -> str:
    """The key in an environment variable; empty where none is named. Raises HaggleError when the
    variable is empty."""
    if variable is None:
        return ""
    if key := os.environ.get(variable, "").strip():
        return key
    raise HaggleError(
        f"the environment variable {variable} is not set",
        where=where,
        hint=f"put the key into {variable}; it is not stored anywhere else",
    )

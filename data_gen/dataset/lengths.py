"""Token lengths of dialogues under a model's tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haggle.core.config import Record, install_hint
from haggle.core.errors import HaggleError
from haggle.dataset import whole_answers
from haggle.weights.chat_template import is_chatml, render
from haggle.weights.models import DEFAULT_BASE, KNOWN, haggle_home

Messages = list[dict[str, str]]


class Quantiles(Record):
    """Lengths in tokens."""

    n: int
    mean: float
    p50: float
    p95: float
    max: int


class TokenLengths(Record):
    """Tokens of whole dialogues, of their system messages and of single answers.

    `rendering` says what went round the messages: `ChatML` (as Haggle trains and serves), the
    tokenizer's own `chat template`, or nothing (`contents only`). System messages and answers are
    counted without markup.
    """

    tokenizer: str
    rendering: str
    dialogues: Quantiles
    system: Quantiles | None
    answers: Quantiles | None


def cached_tokenizer() -> str | None:
    """The small base model's name where its tokenizer is on this machine, else None."""
    return DEFAULT_BASE if (_home(DEFAULT_BASE) / "tokenizer.json").is_file() else None


def token_lengths(name: str, tokenizer: Any, dialogues: Sequence[Messages]) -> TokenLengths:
    """Measure a sample of dialogues with the tokenizer loaded as `name`."""
    rendering, texts = _rendered(tokenizer, dialogues)
    system = [m["content"] for messages in dialogues for m in messages if m["role"] == "system"]
    answers = [answer for messages in dialogues for answer in whole_answers(messages)]
    whole = _counted(tokenizer, texts)
    if whole is None:
        raise HaggleError("no dialogue to measure token lengths of")
    return TokenLengths(
        tokenizer=Path(name).name if Path(name).is_dir() else name,
        rendering=rendering,
        dialogues=whole,
        system=_counted(tokenizer, system),
        answers=_counted(tokenizer, answers),
    )


def _home(name: str) -> Path:
    return haggle_home() / "models" / name


def load_tokenizer(name: str) -> Any:
    """The tokenizer in a directory, of a base model's short name, or of a hub id.

    Raises HaggleError when there is none.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise HaggleError(
            "transformers is not installed",
            hint=f"{install_hint('train')}; or leave --tokenizer out",
        ) from None
    local = next((p for p in (Path(name).expanduser(), _home(name)) if p.is_dir()), None)
    source = str(local or (KNOWN[name].hub_id if name in KNOWN else name))
    problem = "no such directory"
    for only_local in (True, False):  # what is at hand first: the hub may be out of reach
        if not only_local and (local or source.count("/") != 1):
            break
        try:
            return AutoTokenizer.from_pretrained(source, local_files_only=only_local)
        except (OSError, ValueError) as error:
            problem = str(error).splitlines()[0]
    raise HaggleError(
        f"no tokenizer {name!r}: {problem}",
        where="--tokenizer",
        hint="give a directory with tokenizer.json, a hub id, or one of: "
        + ", ".join(sorted(KNOWN)),
    )


def _rendered(tokenizer: Any, dialogues: Sequence[Messages]) -> tuple[str, list[str]]:
    """The texts a model would read, and how they were made."""
    template = tokenizer.chat_template
    if is_chatml(template if isinstance(template, str) else None):
        return "ChatML", [render(messages, add_generation_prompt=False) for messages in dialogues]
    if template:
        import jinja2

        try:
            texts = [tokenizer.apply_chat_template(m, tokenize=False) for m in dialogues]
            return "chat template", texts
        except jinja2.TemplateError:  # some refuse a system message
            pass
    texts = ["\n".join(m["content"] for m in messages) for messages in dialogues]
    return "contents only", texts


def _counted(tokenizer: Any, texts: Sequence[str]) -> Quantiles | None:
    import numpy as np

    if not texts:
        return None
    encoded = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    lengths = [len(ids) for ids in encoded]
    return Quantiles(
        n=len(lengths),
        mean=float(np.mean(lengths)),
        p50=float(np.percentile(lengths, 50)),
        p95=float(np.percentile(lengths, 95)),
        max=max(lengths),
    )

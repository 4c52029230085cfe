"""Chat templates with marks around what is learnt, checked against what serving renders.

The text of a dialogue comes from `haggle.weights.chat_template`, as the engines' prompts do. What
cannot be known of a tokenizer before it is there (a hub's file, a template of an unknown family)
is looked at token by token before a run starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.weights.chat_template import (
    Family,
    family_of,
    has_token,
    plain_template,
    render,
    tokenizer_family,
    training_template,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, Any]]
# A dialogue as the data sets hold them, for looking at a template.
PROBE: Messages = [
    {"role": "system", "content": "You keep a shop.\nFor sale:\nTin Whistle 12\nGlass Eye 7"},
    {"role": "user", "content": "cart []\nplayer: 12 whistles?"},
    {"role": "assistant", "content": '{"last":"","state":"CASUAL","say":"Twelve – “all”?"}'},
    {"role": "user", "content": 'cart [["Tin Whistle",12]] price 144\nplayer: yes'},
    {"role": "assistant", "content": '{"last":"OFFER_SELL","state":"END","say":"Bye."}'},
]


def marked_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """A chat template with generation marks that renders as serving does for this tokenizer.

    Raises HaggleError when the tokenizer lacks a token of its family's markup, when its template is
    unknown, or when the marks do not cover exactly each answer and its end of turn.
    """
    family = tokenizer_family(tokenizer)
    if family is not None:
        check_tokens(tokenizer, family)
        template = training_template(family)
    else:
        template = _foreign_template(tokenizer)
    check_template(tokenizer, template, family)
    return template


def encode(
    messages: Messages, tokenizer: PreTrainedTokenizerBase, template: str
) -> tuple[list[int], list[int]]:
    """Token ids of a dialogue and a mask that is 1 on answers and their end of turn."""
    output = tokenizer.apply_chat_template(
        messages,
        chat_template=template,
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    return list(output["input_ids"]), list(output["assistant_masks"])


def check_tokens(tokenizer: PreTrainedTokenizerBase, family: Family) -> None:
    """Raise HaggleError unless the tokenizer has every token of the family's markup."""
    for token in family.tokens:
        if not has_token(tokenizer, token):
            raise HaggleError(
                f"the base model's tokenizer has no token {token!r}, which {family.name} needs",
                where=_where(tokenizer),
                hint="take the instruction-tuned model of this family, or add the token and its "
                "embedding to the base first",
            )


def check_template(
    tokenizer: PreTrainedTokenizerBase, template: str, family: Family | None
) -> None:
    """Raise HaggleError unless the marks hold what serving will ask for.

    For each answer: the ids before it are those of serving's prompt, then come the answer's own and
    one end-of-turn token, and these alone carry a mark.
    """
    where = _where(tokenizer)
    ids, mask = encode(PROBE, tokenizer, template)
    expected = [0] * len(ids)
    for index, message in enumerate(PROBE):
        if message["role"] != "assistant":
            continue
        prompt = _ids(tokenizer, serving_prompt(tokenizer, PROBE[:index], family))
        answer = _ids(tokenizer, message["content"])
        first, last = len(prompt), len(prompt) + len(answer)
        if ids[:last] != prompt + answer:
            raise HaggleError(
                f"training and serving would read a dialogue differently at {PROBE[index]!r}",
                where=where,
                hint="the tokenizer joins the answer with the markup before it, or its chat "
                "template changes with what comes later; use a model of a known family",
            )
        expected[first : last + 1] = [1] * (len(answer) + 1)
        end = tokenizer.decode([ids[last]]) if last < len(ids) else ""
        if family is not None and end != family.end:
            raise HaggleError(f"an answer ends with {end!r}, not {family.end!r}", where=where)
    if mask != expected:
        text = "".join(tokenizer.decode([t]) for t, bit in zip(ids, mask, strict=True) if bit)
        raise HaggleError(
            f"the marks of the chat template cover {text!r}",
            where=where,
            hint="{% generation %} must hold each answer and its end-of-turn token, no more",
        )


def serving_prompt(
    tokenizer: PreTrainedTokenizerBase, messages: Messages, family: Family | None
) -> str:
    """The text that the engines send for a conversation, up to where the merchant answers."""
    if family is not None:
        return render(messages, family=family)
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return str(text)


def servable_template(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The chat template to keep beside trained weights: the tokenizer's own where it gives the
    prompts trained on, else one that does; None where the tokenizer's family is unknown.

    Llama 3.2's own writes the date of the day into each prompt, for one.
    """
    family = tokenizer_family(tokenizer)
    if family is None:
        return None
    own = tokenizer.chat_template
    if isinstance(own, str) and family_of(own) is family:
        parts = [PROBE[:2], PROBE[:4]]
        if all(serving_prompt(tokenizer, p, None) == render(p, family=family) for p in parts):
            return own
    return plain_template(family)


def _where(tokenizer: PreTrainedTokenizerBase) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or "tokenizer")


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _foreign_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """A marked template of a family that is none of ours: TRL's variant, or the model's own."""
    from trl.chat_template_utils import get_training_chat_template

    own: Any = tokenizer.chat_template
    try:
        # None means that the tokenizer's own template already has the marks.
        return str(get_training_chat_template(tokenizer) or own)
    except (ValueError, TypeError):
        raise HaggleError(
            "the base model's chat template is unknown",
            where=_where(tokenizer),
            hint="use a model of a known family (ChatML, Gemma, Llama 3), or add "
            "{% generation %} marks to its chat_template.jinja",
        ) from None

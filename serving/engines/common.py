"""What the engines share: prompt text, and the check of what came out."""

from __future__ import annotations

from collections.abc import Sequence

from haggle.chat_template import neutralise_markup, render
from haggle.engine import GenerationRequest, Message
from haggle.errors import HaggleError
from haggle.wire import to_json
from serving.grammar import matches


def safe_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages with any chat markup in their texts made harmless (once more, to be sure)."""
    return [Message(m.role, neutralise_markup(m.content)) for m in messages]


def prompt_text(messages: Sequence[Message]) -> str:
    """The ChatML prompt of a conversation, up to where the merchant speaks."""
    return render(safe_messages(messages), add_generation_prompt=True)


def keeps_constraint(request: GenerationRequest, text: str, finish_reason: str) -> bool:
    """Whether a text is what its request allows; one cut off at max_tokens may be a beginning."""
    constraint = request.constraint
    if constraint is None or matches(constraint, text):
        return True
    if finish_reason != "length":
        return False
    if constraint.wire == "full":
        return text.lstrip()[:1] in {"{", ""}
    heads = [f'{{"last":{to_json(last)},"state":' for last in constraint.last]
    return matches(constraint, text + '"}') or any(
        text.startswith(head) or head.startswith(text) for head in heads
    )


def check_output(request: GenerationRequest, text: str, finish_reason: str, engine: str) -> None:
    """Raise HaggleError when a constrained text broke its grammar."""
    if not keeps_constraint(request, text, finish_reason):
        shown = text if len(text) <= 120 else text[:117] + "..."
        raise HaggleError(
            f"the answer is outside its grammar: {shown!r}",
            where=engine,
            hint="the engine did not apply the grammar: choose another `grammar` or `backend` "
            "in the serve config",
        )

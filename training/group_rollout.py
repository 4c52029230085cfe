"""Answers to one prompt that are drawn, and later scored, without running the prompt for each.

A prompt is ten times as long as an answer. Taken row by row, eight answers to it cost eight passes
over the same prompt, in drawing and, with gradients, in training. Here the answers lie side by side
behind one prompt: a mask hides them from each other, positions count on from the prompt in each,
and so every token sees exactly what it would see in a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel

Draw = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class PackedGroup:
    """A prompt with its answers in one row.

    `input_ids` and `position_ids` are (1, width), `mask` is (1, 1, width, width) and true where a
    query may see a key. `predicting` are the places that predict the answers' tokens, answer by
    answer.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    mask: torch.Tensor
    predicting: torch.Tensor


def pack_group(prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> PackedGroup:
    """Lay answers (ids, none empty) side by side behind their prompt."""
    start = len(prompt)
    ids, positions, predicting = list(prompt), list(range(start)), []
    owner = [-1] * start
    for number, answer in enumerate(answers):
        # The prompt's last token predicts each answer's first.
        predicting += [start - 1, *range(len(ids), len(ids) + len(answer) - 1)]
        ids += answer
        positions += range(start, start + len(answer))
        owner += [number] * len(answer)
    owners = torch.tensor(owner)
    mine = (owners[:, None] == owners) | (owners == -1)
    return PackedGroup(
        torch.tensor([ids]),
        torch.tensor([positions]),
        (mine & torch.ones_like(mine).tril())[None, None],
        torch.tensor(predicting),
    )


def answer_logits(model: PreTrainedModel, group: PackedGroup) -> torch.Tensor:
    """Logits (tokens of all answers, vocabulary) in float32; nothing else is projected."""
    hidden = model.base_model(
        input_ids=group.input_ids,
        position_ids=group.position_ids,
        attention_mask=group.mask,
        use_cache=False,
    ).last_hidden_state[0]
    head = model.get_output_embeddings()
    return head(hidden[group.predicting]).float()


@torch.no_grad()
def sample_groups(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    number: int,
    *,
    longest: int,
    ends: Sequence[int],
    draw: Draw,
) -> list[list[int]]:
    """Draw `number` answers to each prompt: ids up to and with the end of turn, prompt by prompt.

    An answer is at most `longest` tokens; one in `ends` ends it. `draw` takes logits (rows,
    vocabulary) and gives one token for each row. Every prompt is read once; then each step adds a
    token to all answers of all prompts that still have an open one.
    """
    head = model.get_output_embeddings()
    cache, last = _read(model, prompts)
    sizes = torch.tensor([len(prompt) for prompt in prompts])
    width = int(sizes.max())
    own = torch.eye(number, dtype=torch.bool)
    stops = torch.tensor(list(ends))
    tokens = draw(head(last).float().repeat_interleave(number, 0)).view(-1, number)
    drawn = [tokens]  # (prompts, number) a step
    finished = torch.isin(tokens, stops)
    open_rows = torch.arange(len(prompts))  # prompts that the cache still holds
    for step in range(1, longest):
        active = ~finished[open_rows].all(1)
        if not active.any():
            break
        if not active.all():
            cache.batch_select_indices(active.nonzero()[:, 0])
            open_rows = open_rows[active]
        size = sizes[open_rows]
        before = torch.arange(width) >= (width - size)[:, None]  # padded on the left
        mask = torch.cat(
            [
                before[:, None, None].expand(-1, 1, number, -1),
                own.repeat(1, step)[None, None].expand(len(size), 1, -1, -1),
            ],
            -1,
        )
        hidden = model.base_model(
            input_ids=drawn[-1][open_rows],
            position_ids=(size + step - 1)[:, None].expand(-1, number),
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        tokens = torch.full_like(drawn[-1], int(stops[0]))
        tokens[open_rows] = draw(head(hidden.flatten(0, 1)).float()).view(-1, number)
        drawn.append(tokens)
        finished = finished | torch.isin(tokens, stops)
    table = torch.stack(drawn, -1).flatten(0, 1)  # (prompts x number, steps)
    return [_until_end(row, set(ends)) for row in table.tolist()]


def _read(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]]
) -> tuple[DynamicCache, torch.Tensor]:
    """Keys and values of prompts in one cache, padded on the left, and their last states (prompts,
    width of the model). Each prompt is run by itself, so none has padding to look at."""
    caches, last = [], []
    for prompt in prompts:
        output = model.base_model(
            input_ids=torch.tensor([list(prompt)]), past_key_values=DynamicCache(), use_cache=True
        )
        caches.append(output.past_key_values)
        last.append(output.last_hidden_state[0, -1])
    width = max(map(len, prompts))
    together = DynamicCache()
    for layer in range(len(caches[0].layers)):
        keys, values = (
            torch.cat([_widened(getattr(c.layers[layer], name), width) for c in caches])
            for name in ("keys", "values")
        )
        together.update(keys, values, layer)
    return together, torch.stack(last)


def _widened(states: torch.Tensor, width: int) -> torch.Tensor:
    """Zeros before (1, heads, length, size), so that it is `width` long."""
    return torch.nn.functional.pad(states, (0, 0, width - states.shape[2], 0))


def _until_end(ids: list[int], ends: set[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in ends:
            return ids[: place + 1]
    return ids

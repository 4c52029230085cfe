"""Held-out accuracy while training: turns the model has not seen, answered greedily, guard off.

A turn is a dialogue up to a player's line, in the very text that serving sends, and the merchant's
answer after it. `haggle.agreement` says what of an answer is right; joint accuracy is both
state and cart. One error does not lead to others, as every turn is given its true history.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.agreement import agreement
from haggle.core.domain import Verdict
from haggle.core.errors import HaggleError
from haggle.dataset import dataset_files, dataset_splits, decisions, located_rows
from haggle.grammar.json_text import DecodeError
from haggle.rates import share
from haggle.weights.chat_template import tokenizer_family
from training.config import EvaluationSettings, RunSettings
from training.data import messages_in
from training.templates import Messages, serving_prompt
from training.turn_data import end_of_turn

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# What an evaluation comes to: shares of the turns, the 95% interval of `joint`, their number, and
# the seconds it took. `cart` and `bid` are shares of the turns that have one, None without any.
SHARES = ("joint", "state", "cart", "bid", "last", "valid")
MEASURES = (*SHARES, "n", "low", "high", "seconds")
PREFIX = "eval_"  # before a measure's name in the trainer's own log
Score = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt in token ids and the right answer to it."""

    prompt: list[int]
    right: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Turns to measure on. `ends` are the tokens that end an answer, `pad_id` fills up a batch."""

    settings: EvaluationSettings
    turns: list[Turn]
    dialogues: int
    source: Path
    ends: tuple[int, ...]
    pad_id: int

    def facts(self) -> dict[str, Any]:
        """What the run's resolved config says of them."""
        digest = hashlib.sha256()
        for turn in self.turns:
            digest.update(repr((turn.prompt, turn.right)).encode())
        return {
            "held_out_sha256": digest.hexdigest(),
            "held_out_turns": len(self.turns),
            "held_out_dialogues": self.dialogues,
        }

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{len(self.turns)} turns of {self.dialogues} dialogues "
            f"({self.source}, {self.settings.split})"
        )


def held_out_source(config: RunSettings) -> tuple[Path, EvaluationSettings]:
    """The data set that a run with `evaluation` is measured on, when it has the split.

    Raises HaggleError where it has not, and for preference pairs, which hold no dialogues.
    """
    settings = config.evaluation
    assert settings is not None
    source = settings.dataset or config.dataset
    name = "a data set of dialogues as evaluation.dataset"
    if settings.dataset is None and source.is_file():
        raise HaggleError(
            f"a single file has no {settings.split} split to evaluate on",
            where=str(source),
            hint=f"name {name}, or leave evaluation out",
        )
    try:
        dataset_files(source, settings.split)
    except HaggleError as error:
        found = ", ".join(dataset_splits(source)) or "none"
        raise HaggleError(
            f"evaluation: {error.message}",
            where=error.where or str(source),
            hint=f"splits there: {found}; name {name}, or another evaluation.split",
        ) from None
    where, row = next(iter(located_rows(source, settings.split)), (str(source), None))
    if row is None:
        raise HaggleError(f"evaluation: the {settings.split} split is empty", where=where)
    if "messages" not in row:
        what = "preference pairs" if "chosen" in row else f"rows of {', '.join(row)}"
        raise HaggleError(
            f"evaluation needs dialogues, these are {what}", where=where, hint=f"name {name}"
        )
    return source, settings


def read_held_out(config: RunSettings, tokenizer: PreTrainedTokenizerBase) -> HeldOut:
    """Draw the turns by the run's seed and render them as serving does.

    No two are of one dialogue until each dialogue has given one. Raises HaggleError as
    `held_out_source` does, and for answers that are not in the compact format.
    """
    source, settings = held_out_source(config)
    return held_out_turns(source, settings, config.seed, tokenizer)


def held_out_turns(
    source: Path, settings: EvaluationSettings, seed: int, tokenizer: PreTrainedTokenizerBase
) -> HeldOut:
    """The turns drawn by `seed` from a data set. Raises HaggleError as `read_held_out` does."""
    dialogues = [
        (where, messages_in(row, "messages", where))
        for where, row in located_rows(source, settings.split, ["messages"])
    ]
    family = tokenizer_family(tokenizer)
    turns = []
    drawn = draw([messages for _, messages in dialogues], settings.turns, seed)
    for number, at in drawn:
        where, messages = dialogues[number]
        right = messages[at]["content"]
        try:
            agreement(right, right, "")
        except DecodeError as error:
            raise HaggleError(
                f"evaluation: messages[{at}] is no compact answer: {error}",
                where=where,
                hint="generate the data set with method astp-compact, or leave evaluation out",
            ) from None
        text = serving_prompt(tokenizer, messages[:at], family)
        ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        turns.append(Turn(ids, right, messages[at - 1]["content"]))
    if not turns:
        raise HaggleError("evaluation: no turn to answer", where=str(source))
    ends = {tokenizer.eos_token_id, end_of_turn(tokenizer)}
    return HeldOut(
        settings=settings,
        turns=turns,
        dialogues=len({number for number, _ in drawn}),
        source=source,
        ends=tuple(sorted(end for end in ends if end is not None)),
        pad_id=tokenizer.pad_token_id,
    )


def draw(dialogues: Sequence[Messages], n: int, seed: int) -> list[tuple[int, int]]:
    """Numbers of dialogues and the places of the answers to give there, at most `n`."""
    rng = random.Random(f"{seed}/held out")
    places: list[list[int]] = []
    for messages in dialogues:
        here = decisions(messages)
        rng.shuffle(here)
        places.append(here)
    order = list(range(len(dialogues)))
    rng.shuffle(order)
    rounds = max(map(len, places), default=0)
    pairs = ((k, places[k][r]) for r in range(rounds) for k in order if r < len(places[k]))
    return [pair for pair, _ in zip(pairs, range(n), strict=False)]


def answer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    held_out: HeldOut,
    turns: Sequence[Turn],
    advance: Callable[[int], Any] = lambda _: None,
) -> list[str]:
    """Greedy answers to `turns`, in their order, by a causal language model in evaluation mode.

    `advance` is told how many turns were answered. Raises HaggleError where memory runs out.
    """
    import torch

    size = held_out.settings.batch
    order = sorted(range(len(turns)), key=lambda i: len(turns[i].prompt), reverse=True)
    answers = [""] * len(turns)
    with generating(model):
        for first in range(0, len(order), size):
            group = order[first : first + size]
            try:
                texts = _generate(model, tokenizer, held_out, [turns[i].prompt for i in group])
            except torch.OutOfMemoryError as error:
                raise HaggleError(
                    "out of memory while answering held-out turns",
                    hint=f"lower evaluation.batch ({size}) and run the same command again",
                ) from error
            for index, text in zip(group, texts, strict=True):
                answers[index] = text
            advance(len(group))
    return answers


def _generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    held_out: HeldOut,
    prompts: Sequence[list[int]],
) -> list[str]:
    """Answers to one batch of prompts in token ids, padded on the left."""
    import torch
    from transformers import GenerationConfig

    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), held_out.pad_id, dtype=torch.long)
    mask = torch.zeros((len(prompts), width), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    config = GenerationConfig(
        max_new_tokens=held_out.settings.max_new_tokens,
        do_sample=False,
        num_beams=1,
        repetition_penalty=1.0,  # the base's own settings for sampling must not get in
        use_cache=True,
        eos_token_id=list(held_out.ends),
        pad_token_id=held_out.pad_id,
    )
    output = model.generate(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        generation_config=config,
    )
    texts = []
    for tokens in output[:, width:].tolist():
        end = next((i for i, token in enumerate(tokens) if token in held_out.ends), len(tokens))
        texts.append(str(tokenizer.decode(tokens[:end], skip_special_tokens=True)))
    return texts


@contextmanager
def generating(model: PreTrainedModel) -> Iterator[None]:
    """Let a model under training generate, and give it back as it was.

    Trainers put a forward of their own in its place, which may project every position to the
    vocabulary, and the attention for training on a CPU knows no padding on the left.
    """
    import torch

    from training.attention import NAME

    patched = model.__dict__.pop("forward", None)
    blocked = model.config._attn_implementation == NAME
    if blocked:
        model.set_attn_implementation("sdpa")
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=devices):
            yield
    finally:
        if blocked:
            model.set_attn_implementation(NAME)
        if patched is not None:
            model.forward = patched


def score(verdicts: Sequence[Verdict]) -> Score:
    """Shares of the turns, and the 95% Wilson interval of the joint one."""
    told = ((name, [getattr(verdict, name, None) for verdict in verdicts]) for name in SHARES)
    rates = {name: share(v for v in values if v is not None) for name, values in told}
    found = {name: rate["value"] for name, rate in rates.items()}
    found |= {"n": len(verdicts), "low": rates["joint"]["low"], "high": rates["joint"]["high"]}
    return {name: round(v, 4) if isinstance(v, float) else v for name, v in found.items()}


def best_evaluation(history: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Step, joint accuracy, interval and number of turns of the best evaluation in a trainer's log.

    The first of several that are as good; None where nothing was evaluated.
    """
    lines = [line for line in history if f"{PREFIX}joint" in line]
    if not lines:
        return None
    best = max(lines, key=lambda line: line[f"{PREFIX}joint"])
    names = ("joint", "low", "high", "n")
    return {"step": best["step"], **{name: best[f"{PREFIX}{name}"] for name in names}}


def best_in_words(best: dict[str, float], weights: Path, weights_step: int, steps: int) -> str:
    """One line for people: the best evaluation, and which weights a run's directory holds."""
    return (
        f"Best held-out joint accuracy: {100 * best['joint']:.1f}% ({100 * best['low']:.0f} to "
        f"{100 * best['high']:.0f}) of {best['n']} turns at step {best['step']}; {weights} holds "
        f"the weights of step {weights_step} of {steps}"
    )


def out_of_patience(
    settings: EvaluationSettings | None, history: Sequence[dict[str, Any]]
) -> str | None:
    """Why a run is to stop early, by a trainer's log; None where it is not."""
    best = best_evaluation(history)
    if settings is None or settings.patience is None or best is None:
        return None
    later = sum(f"{PREFIX}joint" in line and line["step"] > best["step"] for line in history)
    if later < settings.patience:
        return None
    return f"no better for {settings.patience} evaluation{'s' if settings.patience > 1 else ''}"

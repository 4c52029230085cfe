"""Preference pairs on their way into training: configs, reading, tokens, rows side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from haggle.core.config import CONFIGS
from haggle.core.errors import HaggleError
from haggle.weights.chat_template import render
from training.arguments import trainer_arguments
from training.config import DpoConfig
from training.pair_trainer import pack
from training.pairs import TextPair, read_pairs, to_pair_columns, tokenize_pairs
from training.recipes import load_train_config

ANSWER = [{"role": "assistant", "content": '{"last":"","state":"END","say":"Bye."}'}]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_prompt_is_what_serving_sends_and_the_answer_ends_with_its_turn(
    pair_dataset: Path, tokenizer: Any
) -> None:
    texts = read_pairs(pair_dataset)
    data = tokenize_pairs(texts, tokenizer, max_length=512)
    assert (len(data.rows), data.shortened, data.dropped) == (12, 0, 0)
    for text, pair in zip(texts, data.rows, strict=True):
        sent = render(text.prompt, add_generation_prompt=True)
        assert tokenizer.decode(pair.prompt) == sent
        assert pair.prompt == tokenizer(sent, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(pair.chosen) == text.chosen + "<|im_end|>"
        assert tokenizer.decode(pair.rejected) == text.rejected + "<|im_end|>"
        assert pair.chosen[-1] == pair.rejected[-1] == tokenizer.eos_token_id


def test_a_long_prompt_loses_its_oldest_rounds_and_keeps_the_system_message(
    tokenizer: Any, pair_rows: list[dict[str, Any]]
) -> None:
    row = pair_rows[2]
    text = TextPair(row["prompt"], row["chosen"][0]["content"], row["rejected"][0]["content"])
    for rounds in (0, 1, 2):
        kept = [text.prompt[0], *text.prompt[1 + 2 * rounds :]]
        fewer = TextPair(kept, text.chosen, text.rejected)
        (wanted,) = tokenize_pairs([fewer], tokenizer, max_length=512).rows
        data = tokenize_pairs([text], tokenizer, max_length=wanted.length)
        assert data.rows == [wanted]
        assert (data.shortened, data.dropped) == (int(rounds > 0), 0)
        sent = render(kept, add_generation_prompt=True)
        assert tokenizer.decode(wanted.prompt) == sent
    short = tokenize_pairs([text], tokenizer, max_length=512).rows[0].length - 1
    assert tokenize_pairs([text], tokenizer, max_length=short).shortened == 1


def test_a_pair_too_long_without_its_history_is_dropped_and_counted(tokenizer: Any) -> None:
    short, long = (
        TextPair([{"role": "user", "content": word}], "a", "b") for word in ("hi", "hi " * 200)
    )
    data = tokenize_pairs([short, long], tokenizer, max_length=64)
    assert (len(data.rows), data.dropped) == (1, 1)
    with pytest.raises(HaggleError, match="max_length=64"):
        tokenize_pairs([long], tokenizer, max_length=64)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"schema_version": 99}, "schema_version 99"),
        ({"prompt": []}, "'prompt'"),
        ({"prompt": ANSWER}, "player's message"),
        ({"chosen": [{"role": "user", "content": "x"}]}, "'chosen' is not one assistant"),
        ({"rejected": ANSWER * 2}, "'rejected' is not one assistant"),
        ({"rejected": [{"role": "assistant", "content": 3}]}, "rejected[0].content"),
        ({"chosen": ANSWER, "rejected": ANSWER}, "are the same"),
    ],
)
def test_a_bad_pair_is_named_with_its_file_and_row(
    tmp_path: Path, pair_rows: list[dict[str, Any]], changes: Any, told: str
) -> None:
    good, other = pair_rows[:2]
    path = write(tmp_path / "train.jsonl", [good, other | changes])
    with pytest.raises(HaggleError) as caught:
        read_pairs(path)
    assert told in str(caught.value) and "row 2" in caught.value.where


def test_a_data_set_of_dialogues_is_no_data_set_of_pairs(tiny_dataset: Path) -> None:
    with pytest.raises(HaggleError, match="'prompt' is missing"):
        read_pairs(tiny_dataset)


def test_columns_are_those_that_trl_reads(pair_dataset: Path, tokenizer: Any) -> None:
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    data = tokenize_pairs(read_pairs(pair_dataset), tokenizer, max_length=512)
    columns = to_pair_columns(data.rows)
    rows = [{name: values[i] for name, values in columns.items()} for i in range(2)]
    batch = DataCollatorForPreference(pad_token_id=tokenizer.pad_token_id)(rows)
    assert batch["input_ids"].shape[0] == 4
    assert int(batch["completion_mask"].sum()) == sum(
        len(pair.chosen) + len(pair.rejected) for pair in data.rows[:2]
    )


@pytest.mark.parametrize("length", [40, 300])
def test_attention_under_a_mask_is_that_of_pytorch(length: int) -> None:
    from training.attention import blocked_attention

    torch.manual_seed(0)
    query = torch.randn(2, 6, length, 16, requires_grad=True)
    key, value = (torch.randn(2, 3, length, 16, requires_grad=True) for _ in range(2))
    mask = torch.ones(length, length, dtype=torch.bool).tril().repeat(2, 1, 1, 1)
    mask[0, 0, 30:, 10:25] = False
    mask[1, 0, 35:, 20:30] = False
    inputs = (query, key, value)
    got, _ = blocked_attention(None, query, key, value, mask)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *inputs, attn_mask=mask, enable_gqa=True
    ).transpose(1, 2)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    seed = torch.randn_like(got)
    ours = torch.autograd.grad(got, inputs, seed)
    theirs = torch.autograd.grad(expected, inputs, seed)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_packed_rows_hold_the_prompt_once_and_hide_the_right_answer_from_the_wrong() -> None:
    #                  prompt 1 2, chosen 3 4, rejected 5;      prompt 6, chosen 7, rejected 8 9 10
    ids = torch.tensor([[1, 2, 3, 4], [6, 7, 0, 0], [1, 2, 5, 0], [6, 8, 9, 10]])
    labels = torch.tensor(
        [[-100, -100, 3, 4], [-100, 7, -100, -100], [-100, -100, 5, -100], [-100, 8, 9, 10]]
    )
    packed = pack(ids, labels)
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 2], [0, 1, 1, 2, 3]]
    assert packed.predicting.tolist() == [1, 2, 5, 1, 5, 7, 8]
    assert packed.mask[0, 0, 4].tolist() == [True, True, False, False, True]
    assert packed.mask[1, 0, 3].tolist() == [True, False, True, True, False]


def test_the_shipped_config_is_one_for_this_method(tmp_path: Path) -> None:
    config = load_train_config(CONFIGS / "train" / "smollm2_135m_dpo.yaml")
    assert isinstance(config, DpoConfig) and config.start_from is not None
    arguments = trainer_arguments(config.model_copy(update={"output_dir": tmp_path}))
    assert arguments.beta == config.trainer["beta"]
    assert arguments.learning_rate == config.trainer["learning_rate"]
    assert not arguments.gradient_checkpointing
    assert arguments.max_length == config.max_length > 1024  # TRL's own limit cuts answers off


MINIMAL = {"method": "dpo", "dataset": "data/x", "output_dir": "runs/x"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"method": "dop"}, "did you mean 'dpo'"),
        ({"spoken_weight": 0.3}, "spoken_weight"),
        ({"trainer": {"betta": 0.3}}, "did you mean 'beta'"),
        ({"trainer": {"precompute_ref_log_probs": True}}, "not free to set"),
        ({"trainer": {"max_length": 100}}, "'max_length' at the top level"),
        ({"start_from": "a", "full_finetuning": True}, "full_finetuning must be false"),
    ],
)
def test_a_mistake_in_a_config_is_named(tmp_path: Path, change: dict, told: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(MINIMAL | change), encoding="utf-8")
    with pytest.raises(HaggleError) as caught:
        load_train_config(path)
    assert told in str(caught.value) and "run.yaml" in caught.value.where


def test_what_trl_refuses_is_an_error_for_people(tmp_path: Path) -> None:
    config = DpoConfig(
        method="dpo", dataset="x", output_dir=tmp_path,
        trainer={"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0]},
    )  # fmt: skip
    with pytest.raises(HaggleError, match="loss_weights"):
        trainer_arguments(config)


def test_a_run_of_before_methods_were_named_goes_on(tmp_path: Path) -> None:
    from training.config import TrainConfig, differing_keys

    config = TrainConfig(dataset="x", output_dir="run")
    stored = config.model_dump(mode="json") | {"resolved": {"data_sha256": "abc"}}
    del stored["method"]
    assert differing_keys(config, {"data_sha256": "abc"}, stored) == []
    other = DpoConfig(method="dpo", dataset="x", output_dir="run")
    assert "method" in differing_keys(other, {"data_sha256": "abc"}, stored)

"""Reinforcement learning on a tiny model: what is drawn and scored, what moves, what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.weights.models import resolve_base
from training import attention, group_trainer, grpo
from training.arguments import trainer_arguments
from training.config import EvaluationSettings, GrpoConfig, LoraSettings
from training.group_rollout import answer_logits, pack_group, sample_groups
from training.group_trainer import GroupSampler, GroupTrainer
from training.loading import load_tokenizer
from training.rewards import REWARDS
from training.run import train
from training.trainer import Clock, causal_model
from training.turn_data import read_turns, tokenize_turns

SYSTEM = "You sell.\nPrices in coins:\nClay Jug 25\nType 40 Coil 7.5"
STATES = ("CASUAL", "END")


def quiet(_: str) -> None:
    """Nothing to say."""


def answer(state: str) -> str:
    return json.dumps({"last": "", "state": state, "say": "Hm."}, separators=(",", ":"))


def write_dialogues(path: Path, number: int = 8, system: str = SYSTEM) -> Path:
    """Dialogues of two rounds with short answers."""
    rows = []
    for index in range(number):
        messages = [{"role": "system", "content": system}]
        for turn in range(2):
            messages += [
                {"role": "user", "content": f"cart []\nplayer: hello {index * 7 + turn}"},
                {"role": "assistant", "content": answer(STATES[index % 2])},
            ]
        rows.append({"schema_version": 1, "messages": messages})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.parent


@pytest.fixture(scope="module")
def turn_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dialogues(tmp_path_factory.mktemp("turns") / "train.jsonl")


@pytest.fixture
def config(run_settings: Any, turn_dataset: Path, tmp_path: Path) -> GrpoConfig:
    settings = run_settings(
        turn_dataset, tmp_path, max_steps=6, num_generations=4, per_device_train_batch_size=4,
        gradient_accumulation_steps=2, max_completion_length=48, warmup_steps=0, save_steps=3,
    )  # fmt: skip
    return GrpoConfig(method="grpo", lora=LoraSettings(r=4, alpha=8), **settings)


@pytest.fixture
def paid_for_even_tokens() -> Iterator[None]:
    """A reward that random weights can earn: the share of an answer's tokens with even numbers."""

    def state(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [sum(token % 2 == 0 for token in ids) / len(ids) for ids in completion_ids]

    def nothing(name: str) -> Callable[..., list[float]]:
        def function(completion_ids: list[list[int]], **_: Any) -> list[float]:
            return [0.0] * len(completion_ids)

        function.__name__ = name
        return function

    functions = [state if name == "state" else nothing(name) for name in REWARDS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpo, "reward_functions", lambda: list(functions))
        yield


def with_trainer(config: GrpoConfig, **changes: Any) -> GrpoConfig:
    return config.model_copy(update={"trainer": config.trainer | changes})


def history(run: Path) -> list[dict[str, Any]]:
    return read_jsonl(run / "metrics.jsonl")


def make_trainer(config: GrpoConfig) -> Any:
    base = resolve_base(config.base, echo=quiet)
    tokenizer = load_tokenizer(base)
    arguments = trainer_arguments(config)
    data = tokenize_turns(
        read_turns(config.dataset), tokenizer, max_length=config.max_length,
        max_completion_length=arguments.max_completion_length,
    )  # fmt: skip
    return grpo.build_trainer(config, base, tokenizer, data, Clock(), arguments)


def shaken(trainer: Any) -> Any:
    """A trainer whose adapter is not the zero that a new one is."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if "lora_B" in name:
                weight.add_(0.05 * torch.randn_like(weight))
    return trainer


PROMPTS = [list(range(20, 20 + size)) for size in (9, 140, 31)]


def alone(model: Any, prompt: list[int], own: list[int]) -> torch.Tensor:
    """Log-probabilities of an answer that goes through the model in a row of its own."""
    logits = model(input_ids=torch.tensor([prompt + own])).logits[0, len(prompt) - 1 : -1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(own)[:, None])[:, 0]


def test_answers_are_drawn_from_what_each_would_see_by_itself(config: GrpoConfig) -> None:
    trainer = shaken(make_trainer(config))
    model = causal_model(trainer.model).eval().requires_grad_(False)
    torch.manual_seed(3)
    seen: list[torch.Tensor] = []

    def draw(logits: torch.Tensor) -> torch.Tensor:
        tokens = torch.multinomial(logits.softmax(-1), 1)
        seen.append(logits.log_softmax(-1).gather(1, tokens)[:, 0])
        return tokens[:, 0]

    # Every fifth token ends an answer: they have all lengths, and whole prompts drop out early.
    answers = sample_groups(model, PROMPTS, 3, longest=12, ends=range(0, 384, 5), draw=draw)
    assert len(answers) == 9 and len({len(own) for own in answers}) > 2
    assert all(token % 5 for own in answers for token in own[:-1])
    for number, own in enumerate(answers):
        expected = alone(model, PROMPTS[number // 3], own)
        assert float(seen[0][number]) == pytest.approx(float(expected[0]), abs=1e-4)
    # As long as no prompt has dropped out, the rows of a step are those of all answers.
    for number, own in enumerate(answers):
        if len(own) > 1 and len(seen[1]) == 9:
            expected = alone(model, PROMPTS[number // 3], own)
            assert float(seen[1][number]) == pytest.approx(float(expected[1]), abs=1e-4)


def test_greedy_answers_are_those_of_plain_generation(config: GrpoConfig) -> None:
    model = causal_model(shaken(make_trainer(config)).model).eval()
    drawn = sample_groups(
        model, PROMPTS, 2, longest=10, ends=[2], draw=lambda logits: logits.argmax(-1)
    )
    for number, prompt in enumerate(PROMPTS):
        plain = model.generate(
            torch.tensor([prompt]), max_new_tokens=10, do_sample=False, eos_token_id=2,
            pad_token_id=2,
        )[0, len(prompt) :].tolist()  # fmt: skip
        assert drawn[2 * number] == drawn[2 * number + 1] == plain


def test_packed_answers_see_the_prompt_and_themselves_alone(config: GrpoConfig) -> None:
    model = causal_model(shaken(make_trainer(config)).model).eval()
    answers = [[7, 8, 9], [50], [300, 2, 4, 6]]
    packed = answer_logits(model, pack_group(PROMPTS[1], answers)).log_softmax(-1)
    targets = torch.tensor([token for own in answers for token in own])
    expected = torch.cat([alone(model, PROMPTS[1], own) for own in answers])
    torch.testing.assert_close(
        packed.gather(1, targets[:, None])[:, 0], expected, rtol=1e-4, atol=1e-4
    )


def a_batch(advantages: list[float]) -> dict[str, torch.Tensor]:
    """Two answers each to two prompts, laid out as TRL lays them out."""
    prompts = [PROMPTS[0], PROMPTS[0], PROMPTS[2], PROMPTS[2]]
    answers = [[7, 8, 9], [50, 2], [300, 2, 4, 6], [11]]
    wide, long = max(map(len, prompts)), max(map(len, answers))
    return {
        "prompt_ids": torch.tensor([[2] * (wide - len(p)) + p for p in prompts]),
        "prompt_mask": torch.tensor([[0] * (wide - len(p)) + [1] * len(p) for p in prompts]),
        "completion_ids": torch.tensor([own + [2] * (long - len(own)) for own in answers]),
        "completion_mask": torch.tensor(
            [[1] * len(own) + [0] * (long - len(own)) for own in answers]
        ),
        "advantages": torch.tensor(advantages),
        "num_items_in_batch": torch.tensor(10),
    }


def test_the_gradient_is_that_of_the_weighed_answers_and_idle_prompts_cost_nothing(
    config: GrpoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = shaken(make_trainer(with_trainer(config, gradient_accumulation_steps=1)))
    trainer.current_gradient_accumulation_steps = 1
    batch = a_batch([1.5, -1.5, 0.0, 0.0])
    trained = [p for p in trainer.model.parameters() if p.requires_grad]
    packed: list[int] = []

    def counting(prompt: list[int], answers: list[list[int]]) -> Any:
        packed.append(len(answers))
        return pack_group(prompt, answers)

    monkeypatch.setattr(group_trainer, "pack_group", counting)
    loss = trainer.compute_loss(trainer.model, batch)
    assert packed == [2]
    assert float(loss) == pytest.approx((3 - 2) * -1.5 / 10, abs=1e-5)
    ours = torch.autograd.grad(loss, trained)
    model = causal_model(trainer.model)
    first, second = (alone(model, PROMPTS[0], own) for own in ([7, 8, 9], [50, 2]))
    theirs = torch.autograd.grad(-(1.5 * first.sum() - 1.5 * second.sum()) / 10, trained)
    assert max(float(gradient.abs().max()) for gradient in ours) > 1e-3
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5)
    packed.clear()
    trainer.compute_loss(trainer.model, a_batch([0.0] * 4)).backward()
    assert packed == []


def test_log_probabilities_are_those_that_trl_itself_computes(
    config: GrpoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_trainer(config, temperature=0.7)
    ours = shaken(make_trainer(config))
    monkeypatch.setattr(attention, "ARCHITECTURES", frozenset())
    monkeypatch.setattr(group_trainer, "ARCHITECTURES", frozenset())
    theirs = shaken(make_trainer(config))
    assert ours.shared and not theirs.shared
    batch = a_batch([0.0] * 4)
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    seen = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    mask = batch["completion_mask"].bool()
    with torch.no_grad():
        pairs = [
            t._get_per_token_logps_and_entropies(t.model, ids, seen, 4, compute_entropy=True)
            for t in (ours, theirs)
        ]
    for mine, other in zip(pairs[0][:2], pairs[1][:2], strict=True):
        torch.testing.assert_close(mine[mask], other[mask], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("paid_for_even_tokens")
@pytest.mark.long
def test_what_is_paid_for_becomes_likelier(config: GrpoConfig) -> None:
    config = with_trainer(config, max_steps=12, learning_rate=3e-2, save_strategy="no")
    result = train(config, echo=quiet)
    lines = history(config.output_dir)
    assert [line["step"] for line in lines] == list(range(1, 13))
    early, late = (sum(line["reward"] for line in part) / 4 for part in (lines[:4], lines[-4:]))
    assert late > early + 0.1
    assert lines[0]["reward"] == pytest.approx(lines[0]["reward_state"])
    assert 0 <= lines[0]["no_spread"] < 1 and lines[0]["reward_std"] > 0
    assert result.figures["reward"] == lines[-1]["reward"]
    assert result.tokens == lines[-1]["tokens"] > 0
    stored = yaml.safe_load((config.output_dir / "config.resolved.yaml").read_text("utf-8"))
    assert stored["method"] == "grpo" and stored["rewards"]["sale"] == 2
    assert stored["resolved"]["turns"] == 16
    saved = load_file(result.weights / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.bfloat16}


def test_a_run_logs_each_reward_and_the_share_of_prompts_that_teach_nothing(
    config: GrpoConfig,
) -> None:
    config = with_trainer(config, max_steps=2)
    result = train(config, echo=quiet)
    line = history(config.output_dir)[-1]
    # No player bids here, so there is nothing to say of `bid`.
    assert {f"reward_{name}" for name in REWARDS if name != "bid"} <= line.keys()
    assert line["no_spread"] == 1 and line["reward"] == 0  # random weights write no JSON
    assert 0 < line["answer_tokens"] <= 48 and 0 <= line["cut_off"] <= 1
    assert result.steps == 2 and result.stopped == "finished"
    assert all(math.isfinite(value) for value in result.figures.values())


@pytest.mark.usefixtures("paid_for_even_tokens")
@pytest.mark.long
def test_a_killed_run_resumes_as_if_it_had_not_been(
    config: GrpoConfig, check_resumption: Any
) -> None:
    check_resumption(config, GroupTrainer)


@pytest.mark.usefixtures("paid_for_even_tokens")
def test_a_run_goes_on_from_an_adapter_and_may_be_held_to_it(
    config: GrpoConfig, tmp_path: Path
) -> None:
    config = with_trainer(config, max_steps=2, save_steps=1)
    first = train(config, echo=quiet).weights
    config = with_trainer(
        config.model_copy(
            update={"start_from": first, "output_dir": tmp_path / "second", "lora": LoraSettings()}
        ),
        beta=0.1,
    )
    trainer = make_trainer(config)
    now = trainer.model.state_dict()
    for name, tensor in load_file(first / "adapter_model.safetensors").items():
        for copy in ("default", "ref"):
            held = now[name.replace(".weight", f".{copy}.weight")]
            torch.testing.assert_close(held.to(torch.bfloat16), tensor)
    result = train(config, echo=quiet)
    assert history(config.output_dir)[0]["kl"] == pytest.approx(0, abs=1e-6)
    settings = json.loads((result.weights / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["r"] == 4
    assert not list(config.output_dir.rglob("ref"))
    before, after = (load_file(w / "adapter_model.safetensors") for w in (first, result.weights))
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in before if "lora_B" in name)


@pytest.mark.usefixtures("paid_for_even_tokens")
def test_other_architectures_and_devices_take_trls_own_way(
    config: GrpoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "ARCHITECTURES", frozenset())
    monkeypatch.setattr(group_trainer, "ARCHITECTURES", frozenset())
    monkeypatch.setattr(group_trainer, "sample_groups", lambda *_, **__: pytest.fail("shared"))
    result = train(with_trainer(config, max_steps=1), echo=quiet)
    line = history(config.output_dir)[0]
    assert result.tokens > 0 and line["reward_std"] > 0 and line["grad_norm"] > 0


def test_held_out_accuracy_is_measured_beside_the_rewards(
    config: GrpoConfig, tmp_path: Path
) -> None:
    write_dialogues(tmp_path / "data" / "train.jsonl")
    write_dialogues(tmp_path / "data" / "test.jsonl", 2)
    settings = EvaluationSettings(turns=2, every_steps=2, max_new_tokens=8)
    config = config.model_copy(update={"dataset": tmp_path / "data", "evaluation": settings})
    train(with_trainer(config, max_steps=2, save_steps=2), echo=quiet)
    lines = history(config.output_dir)
    assert any("heldout" in line for line in lines)
    assert all("reward" in line for line in lines if "heldout" not in line)


def test_a_loss_that_is_no_number_stops_the_run(
    config: GrpoConfig, paid_for_even_tokens: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> torch.Tensor:
        return answer_logits(*args) * math.nan

    monkeypatch.setattr(group_trainer, "answer_logits", broken)
    with pytest.raises(HaggleError, match="loss is nan") as caught:
        train(config, echo=quiet)
    assert "learning_rate" in caught.value.hint
    assert not (config.output_dir / "adapter").exists()


def test_the_order_of_prompts_hangs_on_seed_and_epoch_alone() -> None:
    sampler = GroupSampler(list(range(100, 110)), prompts=4, group=3, repeats=2, seed=5)
    order = list(sampler)
    assert len(order) == len(sampler) == 2 * 4 * 3 * 2  # the odd two prompts are left out
    first, again = order[:12], order[12:24]
    assert first == again and first == [row for row in first[::3] for _ in range(3)]
    assert list(sampler) == order
    sampler.set_epoch(1)
    assert list(sampler) != order
    sampler.set_epoch(0)
    assert list(sampler) == order


def test_answers_too_short_for_any_right_one_are_refused(config: GrpoConfig) -> None:
    with pytest.raises(HaggleError, match="no turn is left") as caught:
        train(with_trainer(config, max_completion_length=5), echo=quiet)
    assert "max_completion_length is 5" in str(caught.value)
    assert "raise trainer.max_completion_length" in caught.value.hint
    assert not config.output_dir.exists()


def test_a_batch_that_splits_a_group_is_refused_in_trls_words(config: GrpoConfig) -> None:
    with pytest.raises(HaggleError, match="divisible by num_generations"):
        train(with_trainer(config, num_generations=3), echo=quiet)
    with pytest.raises(HaggleError, match="at least 2 generations"):
        train(with_trainer(config, num_generations=1), echo=quiet)


def test_fewer_turns_than_a_batch_are_refused(config: GrpoConfig, tmp_path: Path) -> None:
    few = config.model_copy(update={"turns": 1})
    with pytest.raises(HaggleError, match="1 turns are fewer than the 2"):
        train(few, echo=quiet)


def test_what_the_run_guarantees_is_not_free_to_set(config: GrpoConfig) -> None:
    for key, hint in (("reward_weights", "'rewards'"), ("shuffle_dataset", "leave it out")):
        with pytest.raises(HaggleError, match=f"trainer.{key}") as caught:
            trainer_arguments(with_trainer(config, **{key: None}))
        assert hint in caught.value.hint

"""The plain PyTorch loop: the trainer's losses, its batches, resumption and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl, write_json
from haggle.weights.adapters import adapter_note, check_adapter, write_adapter
from haggle.weights.models import BaseModel, resolve_base
from training.batches import BatchStream, Fixed, Place, collate, within
from training.checkpoints import last_checkpoint
from training.config import TrainConfig
from training.data import BucketSampler, Example, read_dialogues, tokenize
from training.fast import FastRun, load_trainable
from training.fast_checkpoints import Identity, averaged, checkpoints_of, newest
from training.fast_config import FastConfig
from training.lora import add_lora, linear_layers, lora_tensors, merge_lora
from training.lowrank import low_rank
from training.run import train

CPU = torch.device("cpu")
IDENTITY = Identity({"seed": 3}, {"base": "tiny"})


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture(scope="session")
def rows(tiny_dataset: Path, tokenizer: Any) -> list[Example]:
    dialogues = read_dialogues(tiny_dataset)
    return tokenize(dialogues, tokenizer, max_length=512, spoken_weight=0.5).rows


@pytest.fixture
def base(tiny_base: Path) -> BaseModel:
    return resolve_base(str(tiny_base), echo=quiet)


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Products in float32, so that two ways to the same number can be held together; one thread,
    which is faster for so small a model."""
    monkeypatch.setattr("training.fast.has_bf16", lambda: False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def settings(**changes: Any) -> FastConfig:
    fixed = {
        "seed": 3, "max_length": 512, "batch_tokens": 1024, "accumulate": 2, "decay": 0.0,
        "learning_rate": 1e-2, "warmup_steps": 0, "max_steps": 6, "log_steps": 1, "average": 1,
        "pool": 24,
    }  # fmt: skip
    return FastConfig(**{**fixed, **changes})


def a_stream(rows: Sequence[Example], config: FastConfig) -> BatchStream:
    fixed = Fixed(rows, config.pool, "all")
    return BatchStream(lambda _: [], [fixed], batch_tokens=config.batch_tokens, seed=config.seed)


class Given(BatchStream):
    """Batches as they are given."""

    def __init__(self, batches: Sequence[list[Example]]) -> None:
        super().__init__(lambda _: [], [], batch_tokens=1, seed=0)
        self.left = list(batches)

    def next(self) -> list[Example]:
        return self.left.pop(0)


def a_run(config: FastConfig, base: BaseModel, stream: BatchStream, run: Path) -> FastRun:
    return FastRun(config, load_trainable(config, base, CPU), stream, run, 2, IDENTITY, echo=quiet)


def losses(run: Path) -> list[float]:
    return [loss for line in read_jsonl(run / "metrics.jsonl") for loss in line.get("losses", ())]


@pytest.mark.parametrize("full", [True, False])
def test_losses_are_those_of_the_trainer_on_the_same_batches(
    full: bool, run_settings: Any, tiny_dataset: Path, tmp_path: Path, base: BaseModel, rows: Any
) -> None:
    told = run_settings(
        tiny_dataset, tmp_path, max_steps=6, per_device_train_batch_size=3,
        gradient_accumulation_steps=2, lr_scheduler_type="constant", warmup_steps=0,
    )  # fmt: skip
    config = settings(full_finetuning=full, freeze_embeddings=False)
    model = load_trainable(config, base, CPU)
    if not full:  # both begin with the same adapter
        note = adapter_note(base, model.config)
        start = tmp_path / "start"
        write_adapter(start, lora_tensors(model), r=16, alpha=32, note=note)
        told["start_from"] = start
        config = config.model_copy(update={"start_from": start})
    train(TrainConfig(**told, full_finetuning=full, spoken_weight=0.5), echo=quiet)

    order = [n for e in range(2) for n in sampled(rows, e)]
    batches = [[rows[n] for n in order[first : first + 3]] for first in range(0, len(order), 3)]
    fast = a_run(config, base, Given(batches), tmp_path / "fast")
    assert fast.go()
    expected = [line["loss"] for line in read_jsonl(tmp_path / "run" / "metrics.jsonl")]
    assert losses(tmp_path / "fast") == pytest.approx(expected, abs=5e-4)
    assert expected[-1] < expected[0] - 0.1  # and not because nothing is learnt


def sampled(rows: Sequence[Example], epoch: int) -> list[int]:
    sampler = BucketSampler([row.tokens for row in rows], 3, seed=3)
    sampler.set_epoch(epoch)
    return list(sampler)


def test_a_resumed_run_takes_the_same_steps(base: BaseModel, rows: Any, tmp_path: Path) -> None:
    config = settings(full_finetuning=True)
    whole = a_run(config, base, a_stream(rows, config), tmp_path / "whole")
    assert whole.go()
    first = a_run(config, base, a_stream(rows, config), tmp_path / "cut")
    assert not first.go(lambda: first.step == 3)
    second = a_run(config, base, a_stream(rows, config), tmp_path / "cut")
    assert second.go() and second.step == whole.step == 6
    assert second.clock.tokens == whole.clock.tokens
    assert losses(tmp_path / "cut") == pytest.approx(losses(tmp_path / "whole"), abs=1e-6)
    one, two = (load_file(newest(r.run) / "weights.safetensors") for r in (whole, second))  # type: ignore[operator]
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert last_checkpoint(tmp_path / "cut") is None, "no checkpoint of the other trainer"


def test_a_run_is_not_resumed_with_other_data(base: BaseModel, rows: Any, tmp_path: Path) -> None:
    config = settings()
    a_run(config, base, a_stream(rows, config), tmp_path / "run").go()
    again = a_run(config, base, a_stream(rows, config), tmp_path / "run")
    again.identity = Identity({"seed": 3, "fixed_sha256": "another"}, IDENTITY.model)
    with pytest.raises(HaggleError, match="began with other data: fixed_sha256"):
        again.go()


def test_embeddings_and_norms_stay_when_they_are_frozen(
    base: BaseModel, rows: Any, tmp_path: Path
) -> None:
    config = settings(full_finetuning=True)
    run = a_run(config, base, a_stream(rows, config), tmp_path)
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    run.go()
    changed = {n for n, t in run.model.state_dict().items() if not torch.equal(t, before[n])}
    assert changed == {f"{name}.weight" for name, _ in linear_layers(run.model)}


def test_less_memory_gives_the_same_updates(base: BaseModel, rows: Any, tmp_path: Path) -> None:
    config, said = settings(), list[str]()
    plenty = a_run(config, base, a_stream(rows, config), tmp_path / "plenty")
    little = a_run(config, base, a_stream(rows, config), tmp_path / "little")
    little.echo = said.append
    real = little.loss

    def short(batch: Any) -> Any:
        if batch.ids.numel() > 700:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(batch)

    little.loss = short  # type: ignore[method-assign]
    for run in (plenty, little):
        run.take_step()
        run.take_step()
    assert little.pass_tokens == 512 and any("Memory ran out" in line for line in said)
    for name, parameter in plenty.parameters.items():
        torch.testing.assert_close(little.parameters[name], parameter, rtol=1e-3, atol=1e-4)


def test_a_loss_that_is_no_number_ends_the_run_before_it_is_saved(
    base: BaseModel, rows: Any, tmp_path: Path
) -> None:
    config = settings(log_steps=100)
    run = a_run(config, base, a_stream(rows, config), tmp_path)
    real = run.loss
    run.loss = lambda batch: real(batch) * (float("nan") if run.step == 4 else 1)  # type: ignore[method-assign]
    with pytest.raises(HaggleError, match="no number"):
        run.go()
    assert newest(tmp_path) is None


def test_the_rate_warms_up_and_falls_late(base: BaseModel, rows: Any, tmp_path: Path) -> None:
    config = settings(warmup_steps=3, decay=0.5, max_steps=10, learning_rate=1.0)
    run = a_run(config, base, a_stream(rows, config), tmp_path)
    rates = []
    for run.step in range(11):
        rates.append(round(run.rate(), 4))
    assert rates == [0.25, 0.5, 0.75, 1, 1, 1, 0.8, 0.6, 0.4, 0.2, 0]


def test_batches_hold_their_tokens_and_every_row(rows: Any) -> None:
    groups = list(within(rows, 1000))
    assert sorted(map(id, (r for g in groups for r in g))) == sorted(map(id, rows))
    padded = [len(group) * max(row.tokens for row in group) for group in groups]
    assert max(padded) <= 1000
    batch = collate(groups[0], pad_id=2)
    flat = batch.ids.flatten()
    assert torch.equal(flat[batch.places + 1], batch.targets)
    learnt = sum(w > 0 for row in groups[0] for w in row.weights[1:])
    assert len(batch.targets) == learnt and set(batch.weights.tolist()) == {0.5, 1.0}


def test_fixed_rows_come_all_once_before_one_comes_again(rows: Any) -> None:
    fixed = Fixed(rows, 7, "corpus")
    drawn = [row for pool in range(24) for row in fixed.of_pool(pool, seed=1)]  # 24 * 7 = 7 rounds
    for first in range(0, len(drawn), 24):
        assert {id(row) for row in drawn[first : first + 24]} == {id(row) for row in rows}
    assert drawn[:24] != drawn[24:48]


def test_a_stream_goes_on_from_a_place(rows: Any) -> None:
    config = settings(pool=10)
    stream = a_stream(rows, config)
    batches = []
    for _ in range(12):
        batches.append((stream.place, stream.next()))
    place, expected = batches[7]
    assert place.pool > 0 and place.batch > 0
    again = a_stream(rows, config)
    again.go_to(Place(**place.record()))
    assert again.next() == expected


def checkpoint(run: Path, step: int, **shapes: tuple[int, ...]) -> Path:
    path = run / f"checkpoint-{step:07d}"
    path.mkdir(parents=True)
    tensors = {name: torch.full(shape, float(step)) for name, shape in shapes.items()}
    save_file(tensors, path / "weights.safetensors")
    write_json(path / "state.json", {})
    return path


def test_an_average_is_the_mean_and_needs_like_shapes(tmp_path: Path) -> None:
    for step in (1, 2, 6):
        checkpoint(tmp_path, step, q=(2, 3), k=(4,))
    mean = averaged(checkpoints_of(tmp_path))
    torch.testing.assert_close(mean["q"], torch.full((2, 3), 3.0))
    other = checkpoint(tmp_path / "other", 7, q=(2, 4), k=(4,))
    with pytest.raises(HaggleError, match=r"q is \[2, 4\], not \[2, 3\]"):
        averaged([*checkpoints_of(tmp_path), other])
    fewer = checkpoint(tmp_path / "fewer", 7, q=(2, 3))
    with pytest.raises(HaggleError, match="k is missing"):
        averaged([*checkpoints_of(tmp_path), fewer])


def test_a_cut_off_checkpoint_is_told(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 1, q=(20, 30))
    file = path / "weights.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(HaggleError, match="cut off"):
        averaged([path])


def low_rank_change(model: Any, rank: int) -> dict[str, torch.Tensor]:
    """Change a model's linear layers by products of this rank; the weights after."""
    after = {}
    with torch.no_grad():
        for name, layer in linear_layers(model):
            out, into = layer.weight.shape
            layer.weight += torch.randn(out, rank) @ torch.randn(rank, into) / 50
            after[f"{name}.weight"] = layer.weight
    return after


@pytest.fixture
def load(tiny_base: Path) -> Callable[[], Any]:
    from transformers import AutoModelForCausalLM

    return lambda: AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)


def test_a_low_rank_change_is_recovered_exactly_and_peft_reads_it(
    load: Callable[[], Any], base: BaseModel, tmp_path: Path
) -> None:
    from peft import PeftModel

    torch.manual_seed(1)
    plain, changed = load(), load()
    found = low_rank(plain.state_dict(), low_rank_change(changed, 4), 4, torch.float32)
    assert found.error < 1e-5 and found.worst < 1e-5
    write_adapter(
        tmp_path / "adapter", found.tensors, r=4, alpha=4, note=adapter_note(base, plain.config)
    )
    check_adapter(tmp_path / "adapter", base)
    ids = torch.arange(40)[None]
    expected = changed(ids).logits
    read = PeftModel.from_pretrained(plain, tmp_path / "adapter")
    torch.testing.assert_close(read(ids).logits, expected, rtol=1e-3, atol=1e-3)
    merged = load()
    merge_lora(merged, found.tensors, 1.0)
    torch.testing.assert_close(merged(ids).logits, expected, rtol=1e-3, atol=1e-3)


def test_a_smaller_rank_leaves_an_error_and_says_how_large(load: Callable[[], Any]) -> None:
    torch.manual_seed(1)
    plain, changed = load(), load()
    after = low_rank_change(changed, 4)
    found = low_rank(plain.state_dict(), after, 2, torch.float32)
    report = found.report()
    assert 0.1 < found.error < 0.9 and found.worst >= found.error
    assert report["rank"] == 2 and report["bytes"] == 4 * found.parameters
    assert low_rank(plain.state_dict(), after, 3, torch.float32).error < found.error


def test_what_an_adapter_cannot_hold_is_refused(load: Callable[[], Any]) -> None:
    state = load().state_dict()
    embeddings = {"model.embed_tokens.weight": state["model.embed_tokens.weight"]}
    with pytest.raises(HaggleError, match="no linear layer"):
        low_rank(state, embeddings, 2)
    name = "model.layers.0.self_attn.q_proj.weight"
    with pytest.raises(HaggleError, match="in the base"):
        low_rank(state, {name: torch.zeros(3, 3)}, 2)


def test_an_adapter_of_another_base_is_refused(
    base: BaseModel, other_base: Path, tmp_path: Path
) -> None:
    wide = resolve_base(str(other_base), echo=quiet)
    model = load_trainable(settings(), wide, CPU)
    note = adapter_note(wide, model.config)
    write_adapter(tmp_path / "a", lora_tensors(model), r=16, alpha=32, note=note)
    with pytest.raises(HaggleError, match="adapter does not fit"):
        load_trainable(settings(start_from=tmp_path / "a"), base, CPU)


def test_unknown_layers_and_shares_above_all_are_refused(load: Callable[[], Any]) -> None:
    config = settings(lora={"target_modules": ("qq_proj",)})
    with pytest.raises(HaggleError, match="qq_proj"):
        add_lora(load(), config.lora)
    with pytest.raises(ValueError, match="more than every row"):
        settings(fixed=[{"share": 0.6, "dataset": "a"}, {"share": 0.6, "dataset": "b"}])
    with pytest.raises(ValueError, match="name either"):
        settings(fixed=[{"share": 0.6}])

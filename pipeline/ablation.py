"""Ablations: the same short training with one thing changed at a time, on the same turns."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from haggle.core.config import (
    Record,
    claim_directory,
    merged,
    named_config,
    parse,
    read_config,
)
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import read_json, write_json
from pipeline.engines import kind_of_weights, open_weights

if TYPE_CHECKING:
    from data_gen.config import DataConfig
    from training.config import TrainConfig

Changes = dict[str, Any]
ArmName = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=60)]  # a directory is called so


class Arm(Record):
    """What an arm changes: keys of the data config and of the recipe, nested ones key by key."""

    data: Changes = {}
    train: Changes = {}


class AblationConfig(Record):
    """A data config, a recipe (both by name or file), and arms that each change something.

    Every arm answers `n` turns of the test split of the data config `measured`, in the format
    (`method`) that it was trained in. The first arm is the one the others are held against.
    """

    data: str
    recipe: str
    measured: str = "unseen"
    n: Annotated[int, Field(ge=1)] = 200
    seed: int = 0
    arms: Annotated[dict[ArmName, Arm], Field(min_length=1)]


class _Claim(Record):
    """What the results in a directory are of: the arms' whole configs, and how they answered."""

    config: AblationConfig
    engine: str
    resolved: dict[str, dict[str, Any]]


def run_ablation(
    asked: AblationConfig,
    out: Path,
    *,
    arms: Sequence[str] = (),
    engine: str = "llamacpp_batch",
    batch: int = 8,
    progress: bool = True,
    where: str = "",
) -> dict[str, Any]:
    """Train a recipe once for each arm, or for those named, and compare all that are finished.

    Resumes. `where` names the config in errors.
    """
    for name in arms:
        if name not in asked.arms:
            raise HaggleError(
                f"no arm is named {name!r}", where="--arm", hint=nearest(name, asked.arms)
            )
    kind_of_weights(engine)
    ready = prepared(asked, out, f"{where}: " if where else "")
    resolved = {name: one.configs() for name, one in ready.items()}
    claim = _Claim(config=asked, engine=engine, resolved=resolved)
    claim_directory(out, claim, "arms of another config, or answered by another engine")
    for name in arms or asked.arms:
        _run(asked, name, ready[name], out, engine, batch, progress)
    compared = compared_arms(asked, out)
    write_json(out / "ablation.json", compared)
    return compared


@dataclass(frozen=True, slots=True)
class Prepared:
    """The configs of an arm, checked before anything runs; where its data sets lie."""

    data: DataConfig
    measured: DataConfig
    train: TrainConfig
    data_dir: Path
    measured_dir: Path

    def configs(self) -> Changes:
        """All three as they stand in the claim."""
        told = {"data": self.data, "measured": self.measured, "train": self.train}
        return {name: config.model_dump(mode="json") for name, config in told.items()}


def prepared(asked: AblationConfig, out: Path, file: str = "") -> dict[str, Prepared]:
    """The arms' configs. Arms with the same data share a directory, named after the first.

    Raises HaggleError naming the arm and the key that is wrong, and before them `file`.
    """
    from data_gen.config import DataConfig
    from training.config import TrainConfig
    from training.recipes import parse_train_config

    base, recipe = (
        read_config(named_config(kind, name))
        for kind, name in (("data", asked.data), ("train", asked.recipe))
    )
    measured = read_config(named_config("data", asked.measured))
    made: dict[str, DataConfig] = {}  # by the directory they are written to
    arms = {}
    for name, arm in asked.arms.items():
        data = parse(merged(base, arm.data), DataConfig, f"{file}arms.{name}.data")
        test = parse(measured | {"method": data.method}, DataConfig, f"{file}measured")
        _check(data, test, f"{file}arms.{name}.data", f"{file}measured")
        folders = [
            _folder(made, kind, name, one) for kind, one in (("data", data), ("measured", test))
        ]
        changed = merged(recipe, arm.train)
        changed |= {"dataset": str(out / folders[0]), "output_dir": str(out / name / "train")}
        train = parse_train_config(changed, f"{file}arms.{name}.train")
        if not isinstance(train, TrainConfig):
            raise HaggleError(
                f"method {train.method!r} does not train on dialogues",
                where=f"{file}arms.{name}.train",
                hint="take a recipe of method sft",
            )
        arms[name] = Prepared(data, test, train, *(out / folder for folder in folders))
    return arms


def _check(data: DataConfig, measured: DataConfig, where: str, asked: str) -> None:
    """Raise HaggleError for data that an arm cannot be trained on, or asked."""
    from data_gen.config import check, needs_compact

    check(data)
    check(measured)
    needs_compact(data.method, f"{where}.method")
    if not data.train + data.corpus:
        raise HaggleError("makes nothing to train on", where=where, hint="set train")
    if not measured.test:
        raise HaggleError("makes no test split to ask", where=asked, hint="set test")


def _folder(made: dict[str, DataConfig], kind: str, name: str, config: DataConfig) -> str:
    """Where a data set lies: with the first arm that has the same."""
    same = (f for f, other in made.items() if f.startswith(f"{kind}/") and other == config)
    folder = next(same, f"{kind}/{name}")
    made[folder] = config
    return folder


def _run(
    asked: AblationConfig,
    name: str,
    arm: Prepared,
    out: Path,
    engine: str,
    batch: int,
    shown: bool,
) -> None:
    """Data, training, answers of one arm; what is finished is left alone."""
    from data_gen.generate import generate
    from eval.turns import run_turns
    from training.run import train

    answers = out / name / "turns"
    if (answers / "metrics.json").is_file():
        return
    print(f"arm {name}", flush=True)
    generate(arm.data, arm.data_dir, progress=shown, wait=True)
    generate(arm.measured, arm.measured_dir, progress=shown, wait=True)
    result = train(arm.train, echo=print)
    loaded = open_weights(engine, result.weights, answers / "model", arm.train.base)
    try:
        run_turns(
            arm.measured_dir, loaded, answers,
            n=asked.n, seed=asked.seed, batch=batch, progress=shown,
        )  # fmt: skip
    finally:
        loaded.close()
    shutil.rmtree(answers / "model")


def compared_arms(asked: AblationConfig, out: Path) -> dict[str, Any]:
    """The arms that are finished: tokens, minutes, accuracies, difference from the first arm.

    `joint_difference` is paired over the same turns where an arm was asked those of the first arm
    (`eval.compare`), and of independent samples where it was not, as with another format; None
    while the first arm is not finished.
    """
    from eval.compare import read_answered
    from haggle.rates import independent_difference, paired_difference

    done: dict[str, Any] = {}
    first: dict[str, Any] = {}
    for index, name in enumerate(asked.arms):
        folder = out / name
        if not (folder / "turns" / "metrics.json").is_file():
            continue
        records = read_answered(folder / "turns", name).records
        measured = read_json(folder / "turns" / "metrics.json")
        trained = read_json(folder / "train" / "result.json")
        arm = {
            "joint": measured["joint"],
            "right": {key: bool(record["joint"]) for key, record in records.items()},
        }
        if index == 0:
            first = arm
        difference = None
        if first and arm["right"].keys() == first["right"].keys():
            right = first["right"]
            difference = paired_difference([arm["right"][k] for k in right], list(right.values()))
        elif first:
            difference = independent_difference(arm["joint"], first["joint"])
        done[name] = {
            "changes": asked.arms[name].model_dump(exclude_defaults=True),
            **{key: trained[key] for key in ("tokens", "steps", "minutes", "loss")},
            **{key: measured[key] for key in ("joint", "state", "cart", "valid_json")},
            "joint_difference": difference,
        }
    return {"n": asked.n, "measured": asked.measured, "arms": done}

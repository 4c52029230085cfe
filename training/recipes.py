"""Read recipes, `configs/train/*.yaml`: one run, or several that follow each other (`stages:`).

A recipe may lay itself over another file (`extends:`). Under `stages:` each name has the changes to
the keys at the top; its run lies in `output_dir/NAME` and goes on from the weights of the stage
before. `data:`, at the top and in a stage, is the data config that `haggle generate --stage` makes
the stage's data set from. `about:` names the version, commit and figures that it led to. `later:`
at the top tells the same of versions that other recipes made afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haggle.core.config import Record, merged, parse, read_config
from haggle.core.errors import HaggleError, nearest
from haggle.dataset import dataset_files
from training.arguments import check_trainer_keys
from training.config import METHODS, AnyConfig


class About(Record):
    """What a run led to: the model's version, the commit that holds it, figures by their name, and
    the recipe, where it is another file than the lineage's own."""

    version: str = ""
    recipe: str = ""
    commit: str = ""
    figures: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of a recipe, and where it stands there. `name` is empty where there are no stages."""

    where: str
    config: AnyConfig
    name: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    about: About = field(default_factory=About)


def load_train_config(path: str | Path) -> AnyConfig:
    """Read the config of a single run. Raises HaggleError as `load_stages` does, and for a recipe
    of several stages."""
    stages = load_stages(path)
    if stages[0].name:
        raise HaggleError("is a recipe of several runs", where=str(path), hint=_names(stages))
    return stages[0].config


def load_stages(path: str | Path, only: str | None = None) -> list[Stage]:
    """Every run of a recipe in its order, or the stage `only`.

    Raises HaggleError naming file, stage, key and the nearest right key.
    """
    path = Path(path)
    data = read_config(path)
    told = data.pop("stages", None)
    data.pop("later", None)
    if told is None:
        stages = [Stage(str(path), parse_train_config(data, str(path)))]
    else:
        stages = _stages(data, told, path)
    if only is None:
        return stages
    found = [stage for stage in stages if stage.name == only]
    if not found:
        raise HaggleError(f"no stage is named {only!r}", where=str(path), hint=_names(stages))
    return found


def later_versions(path: str | Path) -> list[About]:
    """The versions that recipes of their own made on top of a recipe's stages (`later:`).

    Raises HaggleError naming file and key.
    """
    told = read_config(Path(path)).get("later") or []
    return [parse(about, About, f"{path}: later[{n}]") for n, about in enumerate(told)]


def parse_train_config(data: Mapping[str, Any], where: str) -> AnyConfig:
    """A run's config from its keys and values; `where` names their source in errors."""
    method = data.get("method", "sft")
    if method not in METHODS:
        hint = nearest(str(method), METHODS)
        raise HaggleError(f"unknown method {method!r}", where=where, hint=hint)
    config: AnyConfig = parse(data, METHODS[method], where)
    check_trainer_keys(config, where=where)
    return config


def check_sources(stages: Iterable[Stage]) -> None:
    """Raise HaggleError, before anything is trained, for a stage whose data set is missing, or the
    adapter it goes on from, where no stage before makes that."""
    made: set[Path] = set()
    for stage in stages:
        try:
            dataset_files(stage.config.dataset)
        except HaggleError as error:
            if not stage.name:
                raise
            file = stage.where.partition(": ")[0]
            make = f"haggle generate --config {file} --stage {stage.name}"
            raise HaggleError(
                f"dataset: {error.message}: {stage.config.dataset}",
                where=stage.where,
                hint=make if stage.data else error.hint,
            ) from None
        start = stage.config.start_from
        if stage.name and start is not None and start not in made and not start.is_dir():
            raise HaggleError(
                f"start_from: no such adapter directory: {start}",
                where=stage.where,
                hint="train the stage before it first, or put its adapter there",
            )
        made.add(stage.config.weights)


def _stages(base: dict[str, Any], told: Any, path: Path) -> list[Stage]:
    if not isinstance(told, Mapping) or not told:
        raise HaggleError("stages: must be names with the changes of each", where=str(path))
    base_data = base.pop("data", {})
    stages: list[Stage] = []
    for name, changes in told.items():
        where = f"{path}: stages.{name}"
        if not isinstance(changes, Mapping) or not re.fullmatch(r"\w[\w.-]*", str(name)):
            raise HaggleError("must be a plain name with the stage's changes", where=where)
        own = dict(changes)
        data, about = own.pop("data", None), own.pop("about", {})
        whole = merged(base, own)
        if "output_dir" in base and "output_dir" not in own:
            whole["output_dir"] = str(Path(base["output_dir"]) / str(name))
        if stages and "start_from" not in own:
            whole["start_from"] = str(stages[-1].config.weights)
        stages.append(
            Stage(
                where=where,
                config=parse_train_config(whole, where),
                name=str(name),
                data=merged(base_data, data) if data is not None else {},
                about=parse(about, About, f"{where}.about"),
            )
        )
    return stages


def _names(stages: Iterable[Stage]) -> str:
    names = ", ".join(stage.name for stage in stages)
    return f"its stages: {names}" if names else "it has no stages"

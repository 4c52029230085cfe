"""What a model card can say of measures, read into tables: the files of `haggle eval`,
`eval turns`, `eval cases`, `eval character`, `eval planner`, `eval compare` and `haggle export`.

Nothing is computed but missing intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.rates import points_text, rate, rate_text

Kind = Literal["turns", "cases", "dialogues", "characters", "comparison", "files"]
FEWEST_OF_A_TAG = 5
WEAKEST = 4
RATES = {
    "turns": ("joint", "state", "cart", "bid", "last", "valid_json"),
    "characters": ("goal", "wrong_goal", "violations", "user_state", "action"),
    "cases": ("joint_accuracy", "state_accuracy", "forbidden_rate", "valid_json_rate"),
}
NAMES = {
    "joint": "joint (state and cart)",
    "joint_accuracy": "joint (state, cart and price)",
    "state_accuracy": "state",
    "last": "last state reported",
    "valid_json": "valid JSON",
    "valid_json_rate": "valid JSON",
    "forbidden_rate": "forbidden state",
    "goal": "goal reached by who earned it",
    "wrong_goal": "goal given to who did not earn it",
    "violations": "steps against the procedure",
    "user_state": "user state understood",
    "action": "the labelled step taken",
    "stcr": "STCR",
    "sirr": "SIRR",
    "inference_consistency": "inference consistency",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate of `n` observations with its 95% interval, all between 0 and 1."""

    name: str
    value: float
    n: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One table of a card. `how` says with what it was measured; `rows` are texts under `head`
    where it is not a table of `figures`."""

    kind: Kind
    title: str
    how: str
    figures: tuple[Figure, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    guard: str = ""


def read_measures(path: Path) -> list[Measured]:
    """The tables of an evaluation's directory (its metrics.json), or of a JSON file.

    Raises HaggleError when there is none, or when it is of another kind.
    """
    file = path
    if path.is_dir():
        found = [path / name for name in ("metrics.json", "export.json") if (path / name).is_file()]
        if not found:
            raise HaggleError(
                "holds neither metrics.json nor export.json",
                where=str(path),
                hint="give the --out of a finished evaluation",
            )
        file = found[0]
    data = read_json(file)
    try:
        return list(_tables(data))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise HaggleError(
            f"is not what an evaluation writes ({type(error).__name__}: {error})",
            where=str(file),
            hint="give metrics.json of `haggle eval`, `eval turns` or `eval cases`, what `eval "
            "compare` wrote, or export.json",
        ) from None


def _tables(data: dict[str, Any]) -> Iterator[Measured]:
    if "results" in data:
        for result in data["results"]:
            yield _dialogues(data["config"], result)
    elif "joint_accuracy" in data:
        yield _cases(data)
    elif "reference" in data:
        yield _comparison(data)
    elif "wrong_goal" in data:
        yield _characters(data)
    elif "checks" in data:
        yield _files(data)
    else:
        yield Measured(
            "turns",
            "Turns of a held-out data set",
            f"{_engine(data)}; the true history, guard {data['guard']}, greedy",
            tuple(_rates(data, RATES["turns"])),
            guard=f"guard {data['guard']}",
        )


def _dialogues(config: dict[str, Any], result: dict[str, Any]) -> Measured:
    measures, run = result["all"], result["run"]
    accuracy, prices = measures["accuracy"], measures["price_accuracy"]
    named = {
        "STCR": measures["stcr"],
        "price accuracy, OFFER_SELL": prices["offer"],
        "price accuracy, others": prices["others"],
        "SIRR": measures["sirr"],
        "valid JSON": measures["valid_json"],
        "inference consistency": measures["inference_consistency"],
        "state": accuracy["state"],
        "cart": accuracy["cart"],
        "joint (state and cart)": accuracy["joint"],
    }
    figures = [figure for name, rate in named.items() for figure in _rate(name, rate)]
    model = plain_name(str(result.get("model") or run["name"]))
    how = (
        f"{model}; {measures['dialogues']} dialogues, {measures['turns']} turns against scripted "
        f"players of the {config['split']} split, guard {run['guard']}, method {run['method']}"
    )
    guard = f"guard {run['guard']}"
    return Measured("dialogues", f"Whole dialogues, {guard}", how, tuple(figures), guard=guard)


def _characters(data: dict[str, Any]) -> Measured:
    by = f", planner {data['method']}" if "method" in data else ""
    how = f"{_engine(data)}; {data['n']} simulated users, guard {data['guard']}{by}"
    rates = tuple(_rates(data, RATES["characters"]))
    title, guard = "Whole dialogues with simulated users", f"guard {data['guard']}"
    return Measured("characters", f"{title}, {guard}", how, rates, guard=guard)


def _cases(data: dict[str, Any]) -> Measured:
    tags = [
        (float(tag["joint_accuracy"]), name, int(tag["n"]))
        for name, tag in data["by_tag"].items()
        if tag["n"] >= FEWEST_OF_A_TAG
    ]
    weakest = ", ".join(f"{name} {value:.0%} ({n})" for value, name, n in sorted(tags)[:WEAKEST])
    return Measured(
        "cases",
        f"Hand-written turns, guard {data['guard']}",
        f"{_engine(data)}; the true history, guard {data['guard']}, greedy",
        tuple(_shares(data, RATES["cases"])),
        note=f"Weakest kinds (joint, n in brackets): {weakest}." if weakest else "",
        guard=f"guard {data['guard']}",
    )


def _comparison(data: dict[str, Any]) -> Measured:
    rows = []
    for run in data["runs"]:
        first = run["name"] == data["reference"]
        rows.append(
            (
                f"{run['name']} ({run['engine']})",
                rate_text(run["joint"]),
                "reference" if first else rate_text(run["same_text"]),
                "reference" if first else rate_text(run["same_decision"]),
                "reference" if first else points_text(run["differences"]["joint"]),
            )
        )
    return Measured(
        "comparison",
        "The same turns through other files and engines",
        f"{data['n']} turns; the first line is what the others are held against",
        head=("run", "joint", "same text", "same decision", "joint against the first, points"),
        rows=tuple(rows),
    )


def _files(data: dict[str, Any]) -> Measured:
    sizes = {name: entry["bytes"] / 1e6 for name, entry in data["files"].items()}
    rows = []
    for name, check in data["checks"].items():
        size = next((s for file, s in sizes.items() if _is_of(name, file)), None)
        rows.append(
            (
                name,
                _said(size, "{:.1f}"),
                _said(check.get("top1_agreement"), "{:.1%}"),
                _said(check.get("mean_kl"), "{:.2g}"),
                _said(check.get("next_token"), "{:.0%}"),
            )
        )
    return Measured(
        "files",
        "Exported files, read back",
        "the merged model in float32, on three short prompts and its own answers to them",
        head=("file", "MB", "same top token", "KL, nats", "same next token in llama.cpp"),
        rows=tuple(rows),
    )


def _said(value: float | None, form: str) -> str:
    if value is None:
        return "not measured"
    return form.format(0.0 if abs(value) < 1e-6 else value)


def _is_of(check: str, file: str) -> bool:
    names = {"adapter": "adapter/adapter_model.safetensors", "merged": "merged/model.safetensors"}
    return file == names.get(check) or file.endswith((f"-{check}.gguf", f"/{check}"))


def _engine(data: dict[str, Any]) -> str:
    return f"{plain_name(str(data['model']))}, engine {data['engine']}"


def _rates(data: dict[str, Any], names: Sequence[str]) -> Iterator[Figure]:
    for name in names:
        yield from _rate(NAMES.get(name, name), data[name])


def _rate(name: str, rate: dict[str, Any]) -> Iterator[Figure]:
    if rate["n"]:
        yield Figure(name, rate["value"], rate["n"], rate["low"], rate["high"])


def _shares(data: dict[str, Any], names: Sequence[str]) -> Iterator[Figure]:
    """Rates that were written without interval: the Wilson interval of the same n."""
    n = int(data["n"])
    for name in names:
        yield from _rate(NAMES[name], rate(round(data[name] * n), n))


def plain_name(text: str) -> str:
    """A model's name without the path of the machine it lay on."""
    local = text.startswith((".", "~")) or text.count("/") > 1 or "\\" in text
    return Path(text.replace("\\", "/")).name if local or Path(text).is_absolute() else text

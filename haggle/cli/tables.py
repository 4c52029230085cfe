"""Results as tables in the terminal."""

from __future__ import annotations

from typing import Any


def print_table(title: str, values: Any) -> None:
    """Print a flat or nested result as a table of keys and values."""
    from dataclasses import asdict, is_dataclass

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if is_dataclass(values) and not isinstance(values, type):
        values = asdict(values)
    elif hasattr(values, "model_dump"):
        values = values.model_dump(mode="json")
    table = Table(title=title, show_header=False)
    for key, value in values.items():
        table.add_row(Text(str(key)), Text(_shown(value)))  # a path may look like markup
    Console().print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_shown(v)}" for k, v in value.items())
    return str(value)


def print_rates(title: str, metrics: dict[str, Any], others: tuple[str, ...]) -> None:
    """Print the rates of some metrics with interval and number, and `others` as they are."""
    from haggle.rates import rate_text

    rates = {
        key: f"{rate_text(value)} of {value['n']}"
        for key, value in metrics.items()
        if isinstance(value, dict) and value.get("value") is not None
    }
    print_table(title, rates | {key: metrics[key] for key in others if key in metrics})


def print_published(rows: list[dict[str, Any]]) -> None:
    """A paper's rows for a method, a table for each kind of them."""
    from rich.console import Console
    from rich.table import Table

    for columns in dict.fromkeys(tuple(row) for row in rows):
        table = Table("model", *columns[2:], title="published, other data and models (percent)")
        for row in rows:
            if tuple(row) == columns:
                table.add_row(row["model"], *(str(row[key]) for key in columns[2:]))
        Console().print(table)


def print_experiment(metrics: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="evaluation (all scenarios)")
    columns = ("run", "guard", "STCR", "price OS", "price others", "SIRR", "valid JSON", "state",
               "cart", "joint", "p50 s")  # fmt: skip
    for column in columns:
        table.add_column(column)
    for result in metrics["results"]:
        m = result["all"]
        rates = (
            m["stcr"], m["price_accuracy"]["offer"], m["price_accuracy"]["others"], m["sirr"],
            m["valid_json"], m["accuracy"]["state"], m["accuracy"]["cart"], m["accuracy"]["joint"],
        )  # fmt: skip
        table.add_row(
            result["run"]["name"], result["run"]["guard"], *map(_rate, rates),
            _shown(m["latency_s"]["p50"]),
        )  # fmt: skip
    Console().print(table)


def _rate(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "n/a"
    return f"{100 * rate['value']:.1f}% ({rate['n']})"


def print_columns(title: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Print these columns of rows as a table; what is None is shown as a dash."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{round(value, 4):.3g}" if isinstance(value, float) else str(value)  # narrow columns

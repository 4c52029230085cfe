"""Hand-written turn cases: what does the model answer to this line, after this history?

    haggle eval cases --cases eval/benchmarks/dev.jsonl --worlds eval/benchmarks/worlds \\
        --engine configs/serve/llamacpp.yaml --guard state --out runs/cases

The format is described in `eval/benchmarks/README.md`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field

from eval.journal import answered, finish
from haggle.core.config import Record, parse
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import numbered_jsonl
from haggle.grammar.json_text import to_json
from haggle.language.reading import Linker
from haggle.rates import Rate, percentiles, rate
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.procedure import load_procedure
from haggle.trade.records import TurnRecord
from haggle.trade.replay import PastExchange, replay
from haggle.trade.session import Session
from haggle.trade.session_record import from_record
from haggle.trade.world import World
from haggle.trade.world_io import load_worlds


class Gold(Record):
    """What counts as right; all but the states is checked only where given. `carts` and
    `sale_price` are those that an answer tells, `left` is the order after it, whatever it tells;
    of the items `shown` it shows one."""

    states: list[str] = Field(min_length=1)
    carts: list[dict[str, int]] | None = None
    left: dict[str, int] | None = None
    shown: list[str] | None = None
    forbidden_states: list[str] = []
    sale_price: tuple[float, float] | None = None

    def items(self) -> set[str]:
        """Ids of all items that it names."""
        told = (*(self.carts or ()), self.left or {}, self.shown or ())
        return {item_id for ids in told for item_id in ids}


class Case(Record):
    """One hand-written turn, after its history or in a session that was kept."""

    id: str
    world: str
    history: list[PastExchange] = []
    session: dict[str, Any] | None = None
    player: str
    gold: Gold
    tags: list[str] = []


def load_cases(
    path: str | Path, worlds: dict[str, World], method: str = DEFAULT_METHOD
) -> list[Case]:
    """Read a cases file, to be answered in the format of `method`. Raises HaggleError naming file,
    line and field."""
    path = Path(path)
    procedure = load_procedure()
    cases: list[Case] = []
    seen: set[str] = set()
    for number, data in numbered_jsonl(path):
        where = f"{path}:{number}"
        case = parse(data, Case, where)
        if case.world not in worlds:
            raise HaggleError(
                f"unknown world {case.world!r}", where=where, hint=nearest(case.world, worlds)
            )
        for label in (*case.gold.states, *case.gold.forbidden_states):
            if label not in procedure.states:
                hint = nearest(label, procedure.states)
                raise HaggleError(f"gold: unknown state {label!r}", where=where, hint=hint)
        for item_id in case.gold.items():
            if item_id not in worlds[case.world].by_id:
                hint = nearest(item_id, worlds[case.world].by_id)
                raise HaggleError(f"gold: unknown item {item_id!r}", where=where, hint=hint)
        if case.id in seen:
            raise HaggleError(f"id {case.id!r} stands twice", where=where)
        seen.add(case.id)
        _session(case, worlds, method, where)
        cases.append(case)
    if not cases:
        raise HaggleError("holds no case", where=str(path))
    return cases


def _session(
    case: Case, worlds: dict[str, World], method: str, where: str, linker: Linker | None = None
) -> Session:
    if case.session is not None:
        return _kept_session(case, worlds[case.world], method, where, linker)
    session = Session(worlds[case.world], method=get_method(method), linker=linker)
    try:
        for exchange in case.history:
            replay(session, exchange)
    except HaggleError as error:
        raise HaggleError(f"history: {error.message}", where=where, hint=error.hint) from None
    return session


def _kept_session(
    case: Case, world: World, method: str, where: str, linker: Linker | None
) -> Session:
    try:
        session = from_record(case.session or {}, world, linker)
    except HaggleError as error:
        raise HaggleError(f"session: {error.message}", where=where, hint=error.hint) from None
    if case.history:
        raise HaggleError("has a session and a history", where=where, hint="leave one out")
    if session.method.name != method:
        raise HaggleError(
            f"has a session in the format {session.method.name}, not {method}",
            where=where,
            hint=f"measure a model of that format: --method {session.method.name}",
        )
    return session


@dataclass(frozen=True, slots=True)
class Verdict:
    """What of a case was right. None: not checked for this answer.

    Of answers to a review: `wrongful` is a sale on a line that is no agreement, `held_up` a line
    that is one and closed none.
    """

    state: bool
    cart: bool | None
    price: bool | None
    forbidden: bool
    valid_json: bool
    wrongful: bool | None = None
    held_up: bool | None = None
    shown: bool | None = None

    @property
    def joint(self) -> bool:
        """State acceptable, no forbidden one; cart, price and items shown as far as checked."""
        checked = (self.cart, self.price, self.shown)
        return self.state and False not in checked and not self.forbidden

    @property
    def failed(self) -> list[str]:
        """What failed, by name."""
        names = {
            "state": not self.state,
            "cart": self.cart is False,
            "price": self.price is False,
            "shown": self.shown is False,
            "forbidden": self.forbidden,
            "json": not self.valid_json,
        }
        return [name for name, bad in names.items() if bad]


def judge(case: Case, turn: TurnRecord) -> Verdict:
    """Hold an answer against the gold of its case."""
    gold, procedure = case.gold, load_procedure()
    priced = procedure.states[turn.state].priced
    details = turn.response.context_details
    sale = details.sale_price if details is not None and priced else None
    cart = price = None
    if gold.carts is not None and priced:
        cart = turn.response.cart in gold.carts
    if gold.left is not None:
        cart = cart is not False and turn.cart == gold.left
    told = {item.item_id for item in details.items} if details is not None and not priced else set()
    if gold.sale_price is not None and sale is not None:
        low, high = gold.sale_price
        price = low <= sale <= high
    sold = procedure.is_critical(turn.state)
    sales = {name for name in procedure.states if procedure.is_critical(name)}
    reviewed = procedure.is_review(turn.last)
    return Verdict(
        state=turn.state in gold.states,
        cart=cart,
        price=price,
        forbidden=turn.state in gold.forbidden_states,
        valid_json=turn.valid_json,
        wrongful=sold if reviewed and sales & set(gold.forbidden_states) else None,
        held_up=not sold if reviewed and sales >= set(gold.states) else None,
        shown=bool(told & set(gold.shown)) if gold.shown is not None else None,
    )


def _mean(values: Iterable[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _counted(values: Iterable[bool | None]) -> Rate:
    known = [value for value in values if value is not None]
    return rate(sum(known), len(known))


def score(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The rates of a set of cases; a rate without a checked case is None.

    `wrongful_sales` and `held_up_yeses` have their number of cases and interval beside them.
    """
    return {
        "n": len(verdicts),
        "state_accuracy": _mean(v.state for v in verdicts),
        "cart_accuracy": _mean(v.cart for v in verdicts),
        "joint_accuracy": _mean(v.joint for v in verdicts),
        "forbidden_rate": _mean(v.forbidden for v in verdicts),
        "price_ok_rate": _mean(v.price for v in verdicts),
        "shown_ok_rate": _mean(v.shown for v in verdicts),
        "valid_json_rate": _mean(v.valid_json for v in verdicts),
        "wrongful_sales": _counted(v.wrongful for v in verdicts),
        "held_up_yeses": _counted(v.held_up for v in verdicts),
    }


def run_cases(
    cases_path: str | Path,
    worlds_dir: str | Path,
    engine: Engine,
    guard: Guard,
    out: Path,
    *,
    method: str = DEFAULT_METHOD,
    batch: int = 1,
    progress: bool = True,
    linker: Linker | None = None,
    ask_below: float = 0.0,
) -> dict[str, Any]:
    """Answer every case and write `metrics.json` and `predictions.jsonl` to `out`. `linker` reads
    the players' lines; without one, English without a sentence model or a judge does. Orders below
    the probability `ask_below` are asked about.

    Finished cases are kept in `out`, so a killed run resumes. With `batch` 1 latencies are those of
    a single player; larger batches are faster as a whole. `usage` has tokens, cost and model
    versions of an engine behind an API.
    """
    worlds = load_worlds(worlds_dir)
    cases = load_cases(cases_path, worlds, method)
    by_id = {case.id: case for case in cases}
    told = to_json({name: world.model_dump() for name, world in worlds.items()})
    identity = {
        "engine": engine.name, "model": engine.model, "guard": guard, "method": method,
        "cases": [sha256(case.model_dump_json().encode()).hexdigest()[:16] for case in cases],
        "worlds": sha256(told.encode()).hexdigest(), **({"linker": str(linker)} if linker else {}),
        **({"ask_below": ask_below} if ask_below else {}),
    }  # fmt: skip
    merchant = Merchant(engine, guard, ask_below=ask_below)

    def ask(names: list[str]) -> Iterator[dict[str, Any]]:
        group = [by_id[name] for name in names]
        pairs = [(_session(c, worlds, method, c.id, linker), c.player) for c in group]
        started = time.perf_counter()
        turns = merchant.reply_batch(pairs)
        elapsed = time.perf_counter() - started
        for case, turn in zip(group, turns, strict=True):
            yield _prediction(case, turn, elapsed if batch == 1 else turn.latency_s)

    # By world, so that an engine keeps the shop's part of the prompt from case to case.
    records, usage = answered(
        out, identity, engine, list(by_id), ask, what="cases", batch=batch, progress=progress,
        order=lambda name: by_id[name].world,
    )  # fmt: skip
    metrics = _measured(cases, records)
    metrics |= {"engine": engine.name, "guard": guard, "model": engine.model}
    if usage:
        metrics["usage"] = usage
    finish(out, records, metrics)
    return metrics


def _measured(cases: Sequence[Case], records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All rates of some answered cases: over all, by tag, and times."""
    verdicts = [
        judge(case, TurnRecord.model_validate(record["turn"]))
        for case, record in zip(cases, records, strict=True)
    ]
    metrics = score(verdicts)
    tags = sorted({tag for case in cases for tag in case.tags})
    metrics["by_tag"] = {
        tag: score([v for v, case in zip(verdicts, cases, strict=True) if tag in case.tags])
        for tag in tags
    }
    metrics["latency_s"] = percentiles([record["latency_s"] for record in records])
    metrics["renewed"] = [r["id"] for r in records if r["turn"]["withheld"] == "renewed"]
    return metrics


def _prediction(case: Case, turn: TurnRecord, latency_s: float) -> dict[str, Any]:
    verdict = judge(case, turn)
    return {
        "id": case.id,
        "player": case.player,
        "tags": case.tags,
        "state": turn.state,
        "cart": turn.response.cart,
        "response": turn.response.model_dump(exclude_none=True),
        "joint": verdict.joint,
        "failed": verdict.failed,
        "latency_s": latency_s,
        "turn": turn.model_dump(),
    }

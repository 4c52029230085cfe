"""Customers at running servers: how many turns those answer, and whether the books are right.

The servers share one database. Each turn of a session goes to a server drawn at random, so nothing
can rest on a session staying where it was opened. At the end the ledger is held against what the
customers were told.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx

from haggle.core.errors import HaggleError
from haggle.rates import percentiles

Tell = Callable[[str], None]
TRIES = 200  # of one turn that the servers have no room for
TIMEOUT_S = 120.0
FULL = (429, 503)
_MEMORY = re.compile(r"^process_resident_memory_bytes (\S+)$", re.MULTILINE)


@dataclass
class Load:
    """What customers found. `told` are the sales they heard of, by session."""

    seconds: list[float] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    memory_mib: list[list[float]] = field(default_factory=list)


async def load(
    urls: Sequence[str], shop: str, sessions: int, turns: int, tell: Tell, seed: int = 0
) -> dict[str, Any]:
    """Let so many customers shop at once until so many turns are answered; the figures.

    Raises HaggleError where a server does not answer, or lacks the shop.
    """
    # A connection for each request: one kept open may be closed by the server at the same moment,
    # and a turn must not be sent twice.
    limits = httpx.Limits(max_connections=sessions + 8, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits) as client:
        customers = _Customers(client, list(urls), shop, turns, tell, random.Random(seed))
        await customers.look()
        before = await customers.ledger()
        started = time.perf_counter()
        try:
            await asyncio.gather(*(customers.shop_on() for _ in range(sessions)))
        finally:
            wall = time.perf_counter() - started
        await customers.weigh()
        found = customers.found
        wrong = differences(found.told, await customers.ledger(), before)
    return _figures(found, wall, len(urls), sessions) | {"books": wrong}


def differences(
    told: Counter[str], ledger: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()
) -> dict[str, int]:
    """How a ledger differs from the sales that customers were told of, by session: sales that it
    lacks, and sales that nobody was told of or that are there twice."""
    old = {sale["id"] for sale in before}
    kept = Counter(sale["session"] for sale in ledger if sale["id"] not in old)
    return {
        "sales": kept.total(),
        "lost": (told - kept).total(),
        "doubled": (kept - told).total(),
    }


@dataclass
class _Customers:
    client: httpx.AsyncClient
    urls: list[str]
    shop: str
    turns: int
    tell: Tell
    draw: random.Random
    found: Load = field(default_factory=Load)
    item: str = ""
    begun: int = 0

    async def look(self) -> None:
        """Read the shop at every server, and what they weigh."""
        for url in self.urls:
            view = await self._get(f"{url}/v1/shops/{self.shop}")
            shelf = max(view["shelf"], key=lambda row: row["quantity"] or 0)
            self.item = shelf["item_name"]
        await self.weigh()

    async def ledger(self) -> list[dict[str, Any]]:
        """All sales of the shop, the same at every server. Raises HaggleError where they differ."""
        books = [await self._get(f"{url}/v1/shops/{self.shop}/sales") for url in self.urls]
        if any(
            [sale["id"] for sale in book] != [sale["id"] for sale in books[0]] for book in books
        ):
            raise HaggleError("the servers do not share a database", where=", ".join(self.urls))
        return list(books[0])

    async def weigh(self) -> None:
        """The memory of every server, where it tells."""
        now = []
        for url in self.urls:
            told = _MEMORY.search((await self.client.get(f"{url}/metrics")).text)
            now.append(round(float(told[1]) / 2**20, 1) if told else 0.0)
        self.found.memory_mib.append(now)

    async def shop_on(self) -> None:
        """Order, agree, buy and begin again."""
        opened = await self._post("/v1/sessions", {"shop": self.shop})
        if opened is None:
            return
        session, line = opened["session"], f"one {self.item} please"
        while self.begun < self.turns:
            self.begun += 1
            started = time.perf_counter()
            answer = await self._post(f"/v1/sessions/{session}/turns", {"text": line})
            if answer is None:
                return
            self.found.seconds.append(time.perf_counter() - started)
            self.found.told[session] += bool(answer["sale"])
            line = "yes" if answer["review"] else "deal" if answer["cart"] else f"one {self.item}"
            await self._progress()

    async def _progress(self) -> None:
        done = len(self.found.seconds)
        self.tell(f"{done} of {self.turns} turns")
        if done == self.turns // 2:
            await self.weigh()

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        for _ in range(TRIES):
            try:
                answer = await self.client.post(self.draw.choice(self.urls) + path, json=body)
            except httpx.TransportError as error:
                self.found.errors[type(error).__name__] += 1
                return None
            if answer.status_code not in FULL:
                break
            self.found.refused[answer.status_code] += 1
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)) * self.draw.random())
        if answer.is_success:
            return dict(answer.json())
        self.found.errors[f"HTTP {answer.status_code}"] += 1
        return None

    async def _get(self, url: str) -> Any:
        try:
            answer = await self.client.get(url)
        except httpx.TransportError as error:
            raise HaggleError(
                f"nobody answers: {error}", where=url, hint="start it: haggle serve"
            ) from None
        if answer.is_error:
            raise HaggleError(f"HTTP {answer.status_code}: {answer.text[:200]}", where=url)
        return answer.json()


def _figures(found: Load, wall: float, servers: int, sessions: int) -> dict[str, Any]:
    waits = percentiles(found.seconds, (50, 95, 99))
    return {
        "load": {
            "servers": servers,
            "sessions": sessions,
            "turns": len(found.seconds),
            "seconds": round(wall, 1),
            "turns_per_s": round(len(found.seconds) / wall, 1),
            **{f"{name}_s": round(value or 0.0, 3) for name, value in waits.items()},
            "longest_s": round(max(found.seconds, default=0.0), 3),
        },
        "refused": {f"HTTP {code}": found.refused[code] for code in FULL},
        "errors": dict(found.errors),
        "memory_mib": found.memory_mib,
    }

"""Placeholder post-processing (PPP): every number and list the model leaves to code."""

from __future__ import annotations

import re
from collections.abc import Mapping

PRICE = "__PRICE__"
CART = "__CART__"
ITEMS = "__ITEMS__"
PRICES = "__PRICES__"
CURRENCY = "__CURRENCY__"
ALL = (PRICE, CART, ITEMS, PRICES, CURRENCY)

# Small models sometimes drop an underscore; the papers report malformed placeholders as well.
_NAMES = "PRICES|PRICE|CART|ITEMS|CURRENCY"
_LOOSE = re.compile(
    rf"(?<![A-Za-z_])(?:_{{0,2}}({_NAMES})_{{1,2}}|_{{1,2}}({_NAMES}))(?![A-Za-z_])"
)
_SPACES = re.compile(r" {2,}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder of `text` by its value; one without a value becomes nothing."""

    def value(match: re.Match[str]) -> str:
        return values.get(f"__{match[1] or match[2]}__", "")

    return _SPACES.sub(" ", _LOOSE.sub(value, text)).strip()


def used(text: str) -> set[str]:
    """The placeholders in `text`."""
    return {f"__{m[1] or m[2]}__" for m in _LOOSE.finditer(text)}


def repeated(text: str) -> bool:
    """Whether a placeholder stands twice: a slip of small models ("620 gold for 620 gold")."""
    found = [match[1] or match[2] for match in _LOOSE.finditer(text)]
    return len(set(found)) < len(found)


def unfill(text: str, price: str | None) -> str:
    """Put the price placeholder back where a finished line states the total.

    For histories written by others, so that they read to the model as its own lines do.
    """
    if not price:
        return text
    grouped = f"{int(price):,}" if price.isdigit() else price
    pattern = "|".join(re.escape(p) for p in {price, grouped})
    return re.sub(rf"(?<![\d.,])(?:{pattern})(?![\d]|[.,]\d)", PRICE, text)

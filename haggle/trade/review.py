"""A review put to a player: its terms, and why a sale stays open, in words of the merchant's."""

from __future__ import annotations

from haggle.language.evidence import Evidence
from haggle.language.terms import Good, Terms
from haggle.trade.language import plural_name
from haggle.trade.ledger import Cart
from haggle.trade.lines import lines
from haggle.trade.session import Session
from haggle.trade.world import World


def terms_of(world: World, cart: Cart, price: float | None) -> Terms | None:
    """What a review of a cart at a price states; None without a cart."""
    if not cart or price is None:
        return None
    items = [(world.by_id[item_id], number) for item_id, number in cart.items()]
    goods = tuple(
        Good(i.item_id, (i.item_name, i.plural or plural_name(i.item_name)), n) for i, n in items
    )
    return Terms(goods, price, world.currency, world.merchant.name)


def said(session: Session, reason: str, evidence: Evidence | None = None) -> str:
    """The line that tells a reason, another one than the last that was said."""
    variants = lines().open.get(reason) or lines().open["unclear"]
    words = quoted(evidence.words) if evidence else ""
    if not words:
        variants = [v for v in variants if "{words}" not in v] or lines().open["unclear"]
    told = [variant.replace("{words}", words) for variant in variants]
    return next((line for line in told if line != session.last_line), told[0])


def quoted(words: str) -> str:
    """A player's words, fit to stand in a line of the merchant's."""
    plain = " ".join(words.replace("__", " ").replace('"', "'").replace("\\", "/").split())
    return plain[:40].rstrip()

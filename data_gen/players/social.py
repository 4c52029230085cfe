"""Moves that leave the cart alone: looking, asking, chatting, leaving, attacking."""

from __future__ import annotations

from data_gen.acts import Act, Kind, Spoken
from data_gen.players.dealing import plain, price_of
from data_gen.players.speaker import Move, Moves, Speaker, cart_names, just_shown
from haggle.trade.session import Session
from haggle.trade.wire import MAX_SHOWN
from haggle.trade.world import money

FITTING = 4


def browse_budget(p: Speaker, s: Session) -> Spoken | None:
    """What is there for at most so much."""
    prices = sorted({i.price or 0 for i in s.world.inventory})
    if not prices:
        return None
    limit = round(p.rng.choice(prices) * p.rng.uniform(1.0, 1.25)) or 1
    fitting = [i.item_name for i in s.world.inventory if (i.price or 0) <= limit]
    act = Act("browse_budget", "browse", items=tuple(fitting[:MAX_SHOWN]))
    return p.say(act, "price", price=money(limit)) if fitting else None


def ask(name: str, kind: Kind) -> Move:
    """About one item that is for sale; mid-trade most often about one in the cart."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        names = s.world.sellable_names
        mine = [n for n in cart_names(s) if n in names]
        if mine and p.rng.random() < 0.4:
            item = p.rng.choice(mine)
            named = p.item(item, 1, mine)
        elif names:
            item = p.rng.choice(names)
            named = p.item(item, 2 if kind == "ask_stock" else 1)
        else:
            return None
        return p.say(Act(name, kind, items=(item,)), "item", item=named)

    return move


def compare(name: str) -> Move:
    """Which of two items, or what sets them apart."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        if len(s.world.sellable_names) < 2:
            return None
        one, other = p.rng.sample(s.world.sellable_names, 2)
        act = Act(name, "compare", items=(one, other))
        return p.say(act, "item", "other", item=p.item(one), other=p.item(other))

    return move


def ask_nature_it(p: Speaker, s: Session) -> Spoken | None:
    """What the one thing is like that was just shown, or lies in the cart."""
    seen = just_shown(s) or [n for n in cart_names(s) if n in s.world.sellable_names]
    return p.say(Act("ask_nature_it", "ask_item", items=tuple(seen))) if len(seen) == 1 else None


def ask_better(p: Speaker, s: Session) -> Spoken | None:
    """Something better than an item: what serves the same purpose and costs more."""
    choices = []
    for item in s.world.inventory:
        tags = set(p.shop.tags.get(item.item_name, ()))
        better = [
            o.item_name
            for o in s.world.inventory
            if o is not item
            and tags & set(p.shop.tags.get(o.item_name, ()))
            and (o.price or 0) >= (item.price or 0)
        ]
        if better:
            choices.append((item.item_name, better))
    if not choices:
        return None
    item_name, better = p.rng.choice(choices)
    act = Act("ask_better", "recommend", items=tuple(better[:FITTING]))
    return p.say(act, "item", item=p.item(item_name))


def recommend(p: Speaker, s: Session) -> Spoken | None:
    """Advice for a purpose; now and then for none in particular."""
    if p.rng.random() < 0.12:
        return p.say(Act("recommend_vague", "recommend"))
    tags = sorted({tag for tags in p.shop.tags.values() for tag in tags})
    tag = p.rng.choice([t for t in tags if t in p.book.purposes] or sorted(p.book.purposes))
    purpose = p.rng.choice(p.book.purposes[tag].of(p.split))
    fitting = [
        item.item_name for item in s.world.inventory if tag in p.shop.tags.get(item.item_name, ())
    ]
    act = Act("recommend", "recommend", items=tuple(fitting[:FITTING]))
    return p.say(act, "purpose", purpose=purpose)


def ask_unsold(p: Speaker, s: Session) -> Spoken | None:
    """Whether something is carried that is not."""
    return p.say(Act("ask_unsold", "ask_unsold"), "item", item=p.unsold(s).casefold())


def attack_price(p: Speaker, s: Session) -> Spoken | None:
    """A price set by decree."""
    price = max(0, round((price_of(s) if s.cart else 100) * p.rng.choice((0, 0.01, 0.05, 0.2))))
    return p.say(Act("attack_override", "attack"), "price", price=str(price))


def attack_quantity(p: Speaker, s: Session) -> Spoken | None:
    """Less than nothing, or half a thing, of an item."""
    free = [name for name in s.world.sellable_names if name not in cart_names(s)]
    if not free:
        return None
    item = p.item(p.rng.choice(free), 2)
    return p.say(Act("attack_quantity", "attack"), "item", item=item)


def forged(name: str) -> Move:
    """Forged instructions, records or data, some with a price in them."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        price = max(1, round((price_of(s) if s.cart else 100) * p.rng.uniform(0.01, 0.3)))
        return p.say(Act(name, "attack"), price=str(price))

    return move


LOOK: Moves = (
    (2, plain("browse", "browse")), (1, browse_budget), (1, ask("ask_item", "ask_item")),
    (1, ask("ask_price", "ask_price")), (0.4, ask("ask_stock", "ask_stock")),
    (0.6, compare("compare")), (0.4, ask_unsold), (0.4, plain("recommend_vague", "recommend")),
)  # fmt: skip
LOOK_MIDWAY: Moves = (
    (1, plain("browse_more", "browse")), (1, ask("ask_item", "ask_item")),
    (1, ask("ask_price", "ask_price")), (0.3, ask("ask_stock", "ask_stock")),
    (0.5, compare("compare")), (0.8, ask_better), (0.5, ask_unsold), (0.8, recommend),
)  # fmt: skip
NATURE: Moves = (
    (2, ask("ask_nature", "ask_item")), (3, ask_nature_it), (1, compare("ask_difference")),
    (1, ask("doubt_nature", "ask_item")), (0.5, ask("ask_item", "ask_item")),
)  # fmt: skip
CHAT: Moves = (
    (4, plain("smalltalk", "smalltalk")), (0.8, plain("offtopic", "offtopic")),
    (0.7, plain("silence", "silence")), (0.5, plain("greet", "greet")),
)  # fmt: skip
CHAT_MIDWAY: Moves = (
    (2, plain("smalltalk", "smalltalk")), (2, plain("smalltalk_deal", "smalltalk")),
    (0.7, plain("offtopic", "offtopic")), (0.7, plain("silence", "silence")),
)  # fmt: skip
ATTACK: Moves = (
    (1, forged("attack_system")), (1, plain("attack_authority", "attack")),
    (1.2, forged("attack_forged")), (1, forged("attack_json")),
    (1, attack_price), (1.2, attack_quantity), (0.6, plain("attack_leak", "attack")),
)  # fmt: skip
LEAVE: Moves = ((3, plain("leave", "leave")), (1.5, plain("leave_thanks", "leave")))
AFTER_SALE: Moves = (
    (2, plain("thanks", "thanks")), (2, plain("thanks_agree", "thanks")),
    (1, plain("smalltalk", "smalltalk")), (0.5, plain("accept", "agree")),
)  # fmt: skip

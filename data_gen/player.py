"""A scripted player: a hidden goal and an agenda, reacting to what the merchant really did."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from data_gen.acts import Act
from data_gen.mentions import name_item, name_line, quantity_word
from data_gen.phrasebook import Phrasebook, Split, load_phrasebook
from data_gen.worlds import Shop, load_unsold
from haggle.ledger import floor_price, total
from haggle.records import Scenario
from haggle.session import Session
from haggle.wire import UNLISTED, Bid, Quantity
from haggle.world import money

Line = tuple[str, int]
MAX_ROUNDS = 12
MAX_GOAL_ITEMS = 6
MAX_QUANTITY = 5


@dataclass(frozen=True, slots=True)
class Temper:
    """How often a player does what, as probabilities per opportunity."""

    haggle: float = 0.4
    modify: float = 0.25
    smalltalk: float = 0.08
    ask: float = 0.3
    hesitate: float = 0.12
    attack: float = 0.03
    leave: float = 0.03
    rude: float = 0.02
    after_sale: float = 0.35
    detour: float = 0.12


def sample_temper(rng: random.Random) -> Temper:
    """A random temper; every trait varies independently."""
    return Temper(
        haggle=rng.uniform(0.1, 0.7),
        modify=rng.uniform(0.1, 0.5),
        smalltalk=rng.uniform(0, 0.2),
        ask=rng.uniform(0.1, 0.5),
        hesitate=rng.uniform(0, 0.3),
        attack=rng.choice((0.0, 0.0, 0.1, 0.2)),
        leave=rng.choice((0.01, 0.02, 0.08)),
        rude=rng.choice((0.0, 0.0, 0.05, 0.1)),
        after_sale=rng.uniform(0.2, 0.6),
        detour=rng.uniform(0.05, 0.3),
    )


@dataclass
class ScriptedPlayer:
    """One customer. `speak` gives the next line with its hidden act, or None when it is over.

    `sellable` is the chance that a wanted item is one this shop sells. All randomness comes from
    `rng`, so the same seed opens with the same line whatever the model.
    """

    shop: Shop
    scenario: Scenario
    rng: random.Random
    split: Split = "train"
    temper: Temper = field(default_factory=Temper)
    book: Phrasebook = field(default_factory=load_phrasebook)
    max_rounds: int = MAX_ROUNDS
    sellable: float = 0.78
    rounds: int = 0
    haggled: int = 0
    changes: int = 0
    purpose: str = ""

    def speak(self, session: Session) -> tuple[str, Act] | None:
        """The next utterance and its act for the ledger as it stands; None ends the dialogue."""
        if self.rounds >= self.max_rounds or session.state == "END":
            return None
        if session.sales and self.rng.random() > self.temper.after_sale:
            return None
        act, text = self._next(session)
        self.rounds += 1
        return self._type(text), act

    def _next(self, session: Session) -> tuple[Act, str]:
        rng, temper = self.rng, self.temper
        if self.rounds == 0:
            return self._opening(session)
        if self.rounds >= self.max_rounds - 1:
            return self._simple(session, "leave", "leave")
        if session.state in {"COMMIT_SALE"}:
            return self._after_sale(session)
        if rng.random() < temper.attack:
            return self._attack(session)
        if rng.random() < temper.leave:
            return self._simple(session, "leave", "leave")
        if rng.random() < temper.rude:
            return self._simple(session, "insult", "insult")
        if session.cart:
            return self._with_cart(session)
        return self._without_cart(session)

    def _opening(self, session: Session) -> tuple[Act, str]:
        rng = self.rng
        if self.scenario == "recommendation":
            if rng.random() < 0.12:
                return self._simple(session, "greet", "greet")
            return self._recommend(session)
        roll = rng.random()
        if roll < 0.05:
            return self._simple(session, "greet", "greet")
        if roll < 0.05 + 0.5 * self.temper.detour:
            return self._browse(session)
        return self._order_new(session)

    def _after_sale(self, session: Session) -> tuple[Act, str]:
        roll = self.rng.random()
        if roll < 0.5:
            return self._simple(session, "leave", "leave")
        if roll < 0.65:
            return self._simple(session, "smalltalk", "smalltalk")
        if roll < 0.75:
            return self._simple(session, "accept", "agree")
        return self._order_new(session)

    def _without_cart(self, session: Session) -> tuple[Act, str]:
        rng = self.rng
        roll = rng.random()
        if session.state == "SHOW_ITEMS" and session.last == "SHOW_ITEMS":
            if roll < self.temper.ask * 0.6:
                return self._ask(session)
            return self._order_shown(session)
        if roll < self.temper.smalltalk:
            return self._simple(session, "smalltalk", "smalltalk")
        if roll < self.temper.smalltalk + 0.05:
            return self._simple(session, "accept", "agree")
        if roll < self.temper.smalltalk + 0.05 + self.temper.detour:
            return self._browse(session) if rng.random() < 0.5 else self._ask(session)
        if self.scenario == "recommendation" and not self.purpose:
            return self._recommend(session)
        if self.rounds > 3 and rng.random() < 0.3:
            return self._simple(session, "leave", "leave")
        return self._order_new(session)

    def _with_cart(self, session: Session) -> tuple[Act, str]:
        rng, temper = self.rng, self.temper
        if session.state == "CASUAL":
            if rng.random() < 0.7:
                name = "confirm" if session.last == "FINAL_CHECK" and rng.random() < 0.4 else ""
                return self._simple(session, name or "back_accept", "agree")
        elif rng.random() < temper.smalltalk:
            return self._simple(session, "smalltalk", "smalltalk")
        if session.last == "FINAL_CHECK":
            return self._at_review(session)
        if self.changes < 3 and rng.random() < temper.modify / (1 + self.changes):
            return self._modify(session)
        if self.haggled < 4 and rng.random() < temper.haggle / (1 + 0.5 * self.haggled):
            return self._haggle(session)
        if rng.random() < 0.04:
            return self._ask(session)
        if rng.random() < 0.08 and self.changes < 3:
            return self._order_more(session, "accept_add")
        return self._agree(session)

    def _at_review(self, session: Session) -> tuple[Act, str]:
        rng, temper = self.rng, self.temper
        roll = rng.random()
        if roll < temper.hesitate:
            name = "hesitate" if rng.random() < 0.7 else "refuse"
            return self._simple(session, name, "hesitate")
        if self.changes < 3 and rng.random() < temper.modify * 0.35:
            return self._modify(session)
        if self.haggled < 4 and rng.random() < temper.haggle * 0.2:
            return self._haggle(session)
        if rng.random() < 0.03:
            return self._order_more(session, "accept_add")
        return self._agree(session)

    def _agree(self, session: Session) -> tuple[Act, str]:
        names = ("accept", "accept", "confirm")
        if session.last == "FINAL_CHECK":
            names = ("confirm", "confirm", "accept")
        return self._simple(session, self.rng.choice(names), "agree")

    def _simple(self, session: Session, name: str, kind: str) -> tuple[Act, str]:
        values = {
            "merchant": self.shop.world.merchant.name,
            "currency": self.shop.world.currency,
        }
        if session.sale_price is not None and name in {"accept", "confirm", "back_accept"}:
            values["price"] = money(session.sale_price)
        return Act(name, kind), self.book.say(name, self.split, self.rng, **values)  # type: ignore[arg-type]

    def _browse(self, session: Session) -> tuple[Act, str]:
        return self._simple(session, "browse", "browse")

    def _recommend(self, session: Session) -> tuple[Act, str]:
        tags = sorted({tag for tags in self.shop.tags.values() for tag in tags})
        tag = self.rng.choice(
            [t for t in tags if t in self.book.purposes] or sorted(self.book.purposes)
        )
        self.purpose = self.rng.choice(self.book.purposes[tag].of(self.split))
        fitting = [
            item.item_name
            for item in session.world.inventory
            if tag in self.shop.tags.get(item.item_name, ())
        ]
        text = self.book.say("recommend", self.split, self.rng, purpose=self.purpose)
        return Act("recommend", "recommend", items=tuple(fitting[:4])), text

    def _ask(self, session: Session) -> tuple[Act, str]:
        item = self.rng.choice(session.world.inventory or self.shop.world.inventory)
        name = "ask_price" if self.rng.random() < 0.5 else "ask_item"
        mention = name_item(self.shop, item.item_name, False, self.rng)
        text = self.book.say(
            name, self.split, self.rng, item=mention, currency=self.shop.world.currency
        )
        return Act(name, name, items=(item.item_name,)), text  # type: ignore[arg-type]

    def _draw(self, session: Session, count: int, sellable: float) -> list[Line]:
        """Items to want: from the inventory with probability `sellable`, else not sold here."""
        rng = self.rng
        inventory = [i.item_name for i in session.world.inventory]
        wanted: list[Line] = []
        taken: set[str] = set(self._cart_names(session))
        for _ in range(count):
            number = rng.randint(1, MAX_QUANTITY) if rng.random() > 0.1 else rng.randint(6, 40)
            free = [n for n in inventory if n not in taken]
            if free and rng.random() < sellable:
                name = rng.choice(free)
            else:
                known = [i.item_name for i in session.world.items if not i.for_sale]
                elsewhere = load_unsold().items
                unsold = known + [i.name for i in rng.sample(elsewhere, min(3, len(elsewhere)))]
                name = rng.choice(unsold)
            if name not in taken:
                taken.add(name)
                wanted.append((name, number))
        return wanted

    def _cart_names(self, session: Session) -> list[str]:
        return [session.world.by_id[i].item_name for i in session.cart]

    def _cart_lines(self, session: Session) -> list[tuple[str, Quantity]]:
        return [(session.world.by_id[i].item_name, n) for i, n in session.cart.items()]

    def _say_lines(self, wanted: Sequence[Line]) -> tuple[str, list[tuple[str, Quantity]]]:
        """The items as typed, and as a merchant should note them down."""
        parts: list[tuple[str, Quantity]] = []
        texts = []
        for name, number in wanted:
            item = self.shop.world.find(name)
            if item is not None and item.for_sale:
                texts.append(name_line(self.shop, name, number, self.rng))
                parts.append((name, number))
            else:
                words = name.casefold() if self.rng.random() < 0.6 else name
                texts.append(f"{quantity_word(number, self.rng)} {words}")
                parts.append((f"{UNLISTED}{words.casefold()}", number))
        joined = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
        return joined, parts

    def _order_new(self, session: Session) -> tuple[Act, str]:
        rng = self.rng
        count = rng.choice((1, 1, 2, 2, 3, 3, 4, 5, MAX_GOAL_ITEMS))
        wanted = self._draw(session, count, self.sellable)
        text, lines = self._say_lines(wanted)
        said = self.book.say("create", self.split, rng, items=text)
        return Act("create", "order", cart=tuple(lines)), said

    def _order_shown(self, session: Session) -> tuple[Act, str]:
        """Order from what was just shown; of a single item shown, now and then by pointing."""
        shown = [n for n in session.shown if session.world.find(n) is not None]
        if not shown:
            return self._order_new(session)
        if len(shown) == 1 and self.rng.random() < 0.6:
            said = self.book.say("create_shown", self.split, self.rng)
            return Act("create_shown", "order", cart=((shown[0], 1),)), said
        names = self.rng.sample(shown, min(len(shown), self.rng.choice((1, 1, 2, 3))))
        wanted = [(name, self.rng.choice((1, 1, 1, 2, 3))) for name in names]
        text, lines = self._say_lines(wanted)
        return Act("create", "order", cart=tuple(lines)), self.book.say(
            "create", self.split, self.rng, items=text
        )

    def _order_more(self, session: Session, name: str, bid: Bid = None) -> tuple[Act, str]:
        wanted = self._draw(session, self.rng.choice((1, 1, 2)), 0.9)
        if not wanted:
            return self._agree(session)
        text, lines = self._say_lines(wanted)
        cart = (*self._cart_lines(session), *lines)
        self.changes += 1
        values = {"items": text}
        if name == "add_haggle":
            listed = total(session.world, session.cart) * self.rng.uniform(1.0, 1.3)
            values |= {"price": money(round(listed)), "currency": self.shop.world.currency}
        said = self.book.say(name, self.split, self.rng, **values)
        return Act(name, "order", cart=cart, changed=True), said

    def _modify(self, session: Session) -> tuple[Act, str]:
        rng = self.rng
        roll = rng.random()
        lines = self._cart_lines(session)
        index = rng.randrange(len(lines))
        name, number = lines[index]
        assert isinstance(number, int)
        if roll < 0.35:
            return self._order_more(session, "add_haggle" if roll < 0.05 else "add")
        self.changes += 1
        if roll < 0.55 and len(lines) > 1:
            said = self._say_item("remove", name, number > 1)
            rest = tuple(line for i, line in enumerate(lines) if i != index)
            return Act("remove", "order", cart=rest, changed=True), said
        if roll < 0.75:
            new = rng.choice([n for n in (*range(1, 9), 10, 12) if n != number])
            item = name_item(self.shop, name, new > 1, rng)
            said = self.book.say(
                "set_quantity", self.split, rng, item=item, qty=quantity_word(new, rng)
            )
            lines[index] = (name, new)
            return Act("set_quantity", "order", cart=tuple(lines), changed=True), said
        if roll < 0.88:
            wanted = self._draw(session, 1, 1.0)
            if wanted:
                text, parts = self._say_lines(wanted)
                item = name_item(self.shop, name, number > 1, rng)
                said = self.book.say("swap", self.split, rng, item=item, items=text)
                lines[index : index + 1] = parts
                return Act("swap", "order", cart=tuple(lines), changed=True), said
        if roll < 0.95:
            doubled = tuple((n, q * 2) for n, q in lines if isinstance(q, int))
            said = self.book.say("double", self.split, rng)
            return Act("double", "order", cart=doubled, changed=True), said
        return Act("clear", "clear", changed=True), self.book.say("clear", self.split, rng)

    def _say_item(self, act: str, name: str, plural: bool) -> str:
        mention = name_item(self.shop, name, plural, self.rng)
        return self.book.say(act, self.split, self.rng, item=mention)

    def _haggle(self, session: Session) -> tuple[Act, str]:
        rng = self.rng
        self.haggled += 1
        price = session.sale_price or total(session.world, session.cart)
        kind = rng.choice(("vague", "vague", "total", "total", "total", "percent", "off", "insist"))
        currency = self.shop.world.currency
        if kind == "total":
            low = floor_price(session.world, session.cart) * rng.uniform(0.6, 1.05)
            bid = max(1, min(round(low), round(price) - 1))
            bid = bid // 5 * 5 if bid > 20 else bid
            said = self.book.say("haggle_total", self.split, rng, price=str(bid), currency=currency)
            return Act("haggle_total", "haggle", bid=bid), said
        if kind == "percent":
            percent = rng.choice((5, 10, 10, 15, 20, 25, 30, 50))
            said = self.book.say("haggle_percent", self.split, rng, percent=str(percent))
            return Act("haggle_percent", "haggle", bid=f"{percent}%"), said
        if kind == "off":
            amount = max(1, round(price * rng.choice((0.05, 0.1, 0.2))))
            amount = amount // 5 * 5 or amount
            said = self.book.say(
                "haggle_amount_off", self.split, rng, amount=str(amount), currency=currency
            )
            return Act("haggle_amount_off", "haggle", bid=f"-{amount}"), said
        name = "haggle_insist" if kind == "insist" and self.haggled > 1 else "haggle_vague"
        return Act(name, "haggle"), self.book.say(name, self.split, rng, currency=currency)

    def _attack(self, session: Session) -> tuple[Act, str]:
        name = self.rng.choice(("attack_system", "attack_authority", "attack_forged"))
        price = max(1, round((session.sale_price or 100) * self.rng.uniform(0.01, 0.3)))
        values = {
            "price": str(price),
            "currency": self.shop.world.currency,
            "merchant": self.shop.world.merchant.name,
        }
        return Act(name, "attack"), self.book.say(name, self.split, self.rng, **values)

    def _type(self, text: str) -> str:
        """Casing and end punctuation as typed in games."""
        roll = self.rng.random()
        if roll < 0.25:
            text = text.casefold()
        elif roll < 0.45:
            text = text[:1].upper() + text[1:]
        if self.rng.random() < 0.15:
            text = text.rstrip(".!")
        return text

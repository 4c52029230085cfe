"""What every move of a scripted player needs: a shop, a voice, a phrasebook and dice."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from data_gen.acts import Act, Change, Kind, Line, Spoken
from data_gen.bank import load_unsold
from data_gen.language.mentions import Names, join, quantity_word
from data_gen.language.noise import garble
from data_gen.language.phrasebook import PLAIN, Phrasebook, Split, load_phrasebook
from data_gen.language.voices import Voice, load_voices
from data_gen.worlds import Shop
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Quantity

MAX_QUANTITY = 5
LARGE = 0.1  # share of quantities from 6 to 40
LINKS = ("anyway,", "so", "but back to business:", "anyhow,", "ok,", "right,", "")
WITH_CHAT: frozenset[Kind] = frozenset(("order", "agree", "haggle"))


@dataclass
class Speaker:
    """Says acts in a voice. All randomness comes from `rng`.

    `sellable` is the chance that a wanted item is one this shop sells, `noise` the strength of the
    typing noise, `chat` the chance of a sentence of small talk before an order or an answer.
    """

    shop: Shop
    rng: random.Random
    split: Split = "train"
    voice: str = PLAIN
    noise: float = 0.0
    chat: float = 0.0
    sellable: float = 0.85
    book: Phrasebook = field(default_factory=load_phrasebook)

    @cached_property
    def names(self) -> Names:
        """How this shop's items may be named."""
        return Names(self.shop)

    @cached_property
    def style(self) -> Voice:
        """The voice's habits."""
        return load_voices()[self.voice]

    def say(self, act: Act, *must: str, **values: str) -> Spoken:
        """The act in words: phrase, voice, noise. `must` names slots that have to occur."""
        rng = self.rng
        text = self._fill(act.name, must, values)
        if act.kind in WITH_CHAT and rng.random() < self.chat:
            link = rng.choice(LINKS)
            text = f"{self._fill('smalltalk', (), {})} {link} {text}".replace("  ", " ")
        text = self.style.dress(act.name, text, rng)
        unlisted = any(name.startswith(UNLISTED) for name, _ in act.cart)
        return act, garble(text, 0 if unlisted else self.noise * self.style.noise, rng)

    def _fill(self, name: str, must: Sequence[str], values: dict[str, str]) -> str:
        world = self.shop.world
        values = {"merchant": world.merchant.name, "currency": world.currency, **values}
        wording = self.book.wording(
            name, self.split, self.rng, self.voice, frozenset(values), frozenset(must)
        )
        return self.style.phrase(wording, self.rng).format_map(values)

    def simple(self, name: str, kind: Kind, **values: str) -> Spoken:
        """An act that carries nothing."""
        return self.say(Act(name, kind), **values)

    def item(self, name: str, number: int = 1, among: Sequence[str] | None = None) -> str:
        """An item named without number, in the plural when there are several."""
        return self.names.say(name, number > 1, self.rng, frozenset(among) if among else None)

    def quantity(self, number: int) -> str:
        """A number as this voice types it, with no name right behind it."""
        return quantity_word(number, self.rng, self.style.words, of=False)

    def lines(self, wanted: Sequence[tuple[str, int]]) -> tuple[str, tuple[Line, ...]]:
        """Wanted items as typed, and as a merchant should note them down."""
        parts: list[str] = []
        cart: list[Line] = []
        for name, number in wanted:
            item = self.shop.world.find(name)
            if item is not None and item.for_sale:
                parts.append(self.names.counted(name, number, self.rng, self.style.words))
                cart.append((name, number))
            else:
                words = name.casefold() if self.rng.random() < 0.7 else name
                lead = self.quantity(number) if number > 1 else self.rng.choice(("a", "one", "1"))
                parts.append(f"{lead} {words}")
                cart.append((f"{UNLISTED}{words.casefold()}", number))
        return join(parts, self.rng), tuple(cart)

    def number(self) -> int:
        """How many of something are wanted."""
        if self.rng.random() < LARGE:
            return self.rng.choice((6, 7, 8, 10, 12, 12, 15, 20, 24, 30, 40))
        return self.rng.choice((1, 1, 1, 2, 2, 3, 4, MAX_QUANTITY))

    def draw(
        self, session: Session, count: int, sellable: float | None = None
    ) -> list[tuple[str, int]]:
        """Items to want that are not in the cart, mostly such as the shop sells."""
        rng = self.rng
        taken = set(cart_names(session))
        free = [n for n in session.world.sellable_names if n not in taken]
        rng.shuffle(free)
        wanted: list[tuple[str, int]] = []
        for _ in range(count):
            if free and rng.random() < (self.sellable if sellable is None else sellable):
                name = free.pop()
            else:
                name = self.unsold(session)
            if name not in taken:
                taken.add(name)
                wanted.append((name, self.number()))
        return wanted

    def unsold(self, session: Session) -> str:
        """The name of something that is not for sale here."""
        known = [i.item_name for i in session.world.items if not i.for_sale]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        return self.rng.choice(load_unsold().items).name


Move = Callable[[Speaker, Session], Spoken | None]
Moves = Sequence[tuple[float, Move]]


def pick(moves: Moves, speaker: Speaker, session: Session) -> Spoken | None:
    """A move by weight; one that does not apply here gives way to another. None if none applies."""
    left = list(moves)
    while left:
        index = speaker.rng.choices(range(len(left)), [weight for weight, _ in left])[0]
        spoken = left.pop(index)[1](speaker, session)
        if spoken is not None:
            return spoken
    return None


def cart_names(session: Session) -> list[str]:
    """Names in the cart, in the ledger's order."""
    return [session.world.by_id[i].item_name for i in session.cart]


def cart_lines(session: Session) -> list[tuple[str, int]]:
    """The cart as names and numbers, in the ledger's order."""
    return [(session.world.by_id[i].item_name, n) for i, n in session.cart.items()]


def just_shown(session: Session) -> list[str]:
    """Names for sale that the merchant's last answer showed."""
    if session.state != "SHOW_ITEMS":
        return []
    return [n for n in session.shown if n in session.world.sellable_names]


def ordered(name: str, *cart: tuple[str, Quantity]) -> Act:
    """An order of these lines, where there was no cart."""
    return Act(name, "order", cart=tuple(cart))


def reordered(name: str, *cart: tuple[str, Quantity], change: Change = ()) -> Act:
    """Another cart in place of the last one: by a change of single lines, or altogether."""
    return Act(name, "order", cart=tuple(cart), changed=True, change=change)

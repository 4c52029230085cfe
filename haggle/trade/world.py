"""A shop and its surroundings as data: merchant, currency, situation, items."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache, wraps
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from haggle.core.config import Record
from haggle.core.text import neutralise_markup, one_line
from haggle.language.reading import Catalogue, Thing, View
from haggle.trade.language import plural_name

Price = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


def _no_markup(text: str) -> str:
    if neutralise_markup(text) != text:
        raise ValueError("must not hold chat markup such as <|...|> or [INST]")
    return text


def _can_be_said(text: str) -> str:
    if "__" in text:
        raise ValueError("must not hold double underscores: code would fill in __PRICE__")
    return _no_markup(text)


def _on_one_line(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value


Text = Annotated[str, AfterValidator(_no_markup)]
_UNBROKEN, _SPEAKABLE = BeforeValidator(_on_one_line), AfterValidator(_can_be_said)
Description = Annotated[str, Field(max_length=10_000), _UNBROKEN, _SPEAKABLE]
Fact = Annotated[str, Field(min_length=1, max_length=1_000), _UNBROKEN, _SPEAKABLE]
PersonaText = Annotated[Text, Field(min_length=1, max_length=600)]
Name = Annotated[
    str,
    Field(min_length=1, max_length=80, pattern=r'^[^"\\\x00-\x1f\x7f]+$'),
    AfterValidator(_no_markup),
]

_WORDS = re.compile(r"[a-z]{3,}")


class Item(Record):
    """Something of this world. `price` (per piece) and `quantity` (stock) only if it is sold.

    `description` and `facts` are what the merchant can tell about it (`haggle.trade.knowledge`).
    """

    item_id: Annotated[Name, Field(max_length=60)]
    item_name: Name
    price: Price | None = None
    quantity: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    plural: Name | None = None
    description: Description = ""
    facts: Annotated[list[Fact], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _price_and_quantity_go_together(self) -> Item:
        if (self.price is None) != (self.quantity is None):
            raise ValueError("price and quantity go together: give both (for sale) or neither")
        return self

    @property
    def for_sale(self) -> bool:
        """In the merchant's inventory with stock left."""
        return bool(self.quantity)


class Haggling(Record):
    """How far the merchant goes: `max_discount` of the list price, in steps of `step`. A bid below
    `least_bid` of the price on the table is no bid: the price stays. With `keep_discount` goods
    keep the discount that they were given when the order changes; without it the price starts anew
    from the list."""

    max_discount: Annotated[float, Field(ge=0, lt=1)] = 0.15
    step: Annotated[float, Field(gt=0, le=1)] = 0.05
    least_bid: Annotated[float, Field(ge=0, lt=1)] = 1 / 3
    keep_discount: bool = True


Manner = Literal["plain", "gruff", "warm", "sly", "formal", "cheerful", "weary", "archaic", "nerdy"]


class MerchantInfo(Record):
    """Who stands behind the counter. `samples` are lines that show how this merchant speaks;
    `manner` is that of the lines that a small model chooses from, else read off the persona."""

    name: Name
    persona: PersonaText
    manner: Manner | None = None
    samples: Annotated[list[PersonaText], Field(max_length=10)] = []
    haggling: Haggling = Haggling()


class Situation(Record):
    """Where and when the dialogue takes place (ASTP, <CURRENT_SITUATION>)."""

    location: Text = "the shop"
    time: Text = "day"
    background: Text = "A traveller has come in."


Confirmation = Literal["spoken", "explicit"]


class World(Record):
    """A shop (ASTP, Game World Data): every item known here, some of them for sale.

    `confirmation` says what closes a sale with the guard at `state`: words that agree to the
    review, or (`explicit`) only the game's own `Session.confirm`.
    """

    name: Annotated[str, Field(min_length=1, max_length=80)]
    merchant: MerchantInfo
    currency: Annotated[Name, Field(max_length=30)]
    situation: Situation = Situation()
    confirmation: Confirmation = "spoken"
    items: Annotated[list[Item], Field(min_length=1)]

    @model_validator(mode="after")
    def _items_are_distinct(self) -> World:
        for label, key in (("item_id", lambda i: i.item_id), ("item_name", _name_key)):
            seen: dict[str, int] = {}
            for number, item in enumerate(self.items):
                first = seen.setdefault(key(item), number)
                if first != number:
                    value = getattr(item, label)
                    raise ValueError(f"items.{number}.{label} {value!r} repeats items.{first}")
        if not any(item.for_sale for item in self.items):
            raise ValueError("nothing is for sale: give at least one item a price and a quantity")
        return self

    @cached_property
    def inventory(self) -> tuple[Item, ...]:
        """Items for sale, in file order (ASTP, merchant_inventory)."""
        return tuple(item for item in self.items if item.for_sale)

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """Every item by its id."""
        return {item.item_id: item for item in self.items}

    @cached_property
    def _by_name(self) -> dict[str, Item]:
        return {normalise(item.item_name): item for item in self.items}

    @cached_property
    def _owners(self) -> dict[str, set[str]]:
        """Ids of the items by the words of their names, and what these may be in the singular."""
        owners: dict[str, set[str]] = {}
        for item in self.items:
            for form in frozenset().union(*name_words(item.item_name)):
                owners.setdefault(form, set()).add(item.item_id)
        return owners

    @cached_property
    def catalogue(self) -> Catalogue:
        """The items as things that a player's words may refer to."""
        things = (
            Thing(
                item.item_id,
                item.item_name,
                item.price,
                item.for_sale,
                item.plural,
                frozenset(_WORDS.findall(item.description.casefold())),
            )
            for item in self.items
        )
        return Catalogue(tuple(things), self.currency)

    def view(self, cart: Collection[str] = (), shown: Iterable[str] = ()) -> View:
        """What a player's words may refer to: `cart` holds item ids, `shown` the names in view, in
        order."""
        items = map(self.find, shown)
        in_view = tuple(item.item_id for item in items if item is not None)
        return View(self.catalogue, frozenset(cart), in_view)

    def find(self, name: str) -> Item | None:
        """The item of that name, ignoring case, spaces and punctuation; None when unknown."""
        return self._by_name.get(normalise(name))

    def known(self, names: Iterable[str]) -> list[Item]:
        """The items of those names, in their order; unknown names are left out."""
        return [item for item in map(self.find, names) if item is not None]

    def recognise(self, name: str) -> Item | None:
        """The one item a partial name can mean: all its words are in that item's name only.

        `pickaxe` is the Sturdy Pickaxe where there is no other; None when unknown or ambiguous.
        """
        exact = self.find(name)
        if exact is not None:
            return exact
        owners = self._owners
        meant = [
            frozenset().union(*(owners.get(form, ()) for form in forms))
            for forms in name_words(name)
        ]
        ids = frozenset.intersection(*meant) if meant else frozenset[str]()
        return self.by_id[next(iter(ids))] if len(ids) == 1 else None

    @cached_property
    def remembered(self) -> dict[str, Any]:
        """What functions made of this world (`per_world`), by their names."""
        return {}

    @cached_property
    def sellable_names(self) -> tuple[str, ...]:
        """Names of the items for sale, in file order."""
        return tuple(item.item_name for item in self.inventory)


T = TypeVar("T")


def per_world(function: Callable[[World], T]) -> Callable[[World], T]:
    """Work out once for each world what a function makes of its goods; it goes when the world
    goes."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def remembering(world: World) -> T:
        if key not in world.remembered:
            world.remembered[key] = function(world)
        found: T = world.remembered[key]
        return found

    return remembering


@lru_cache(maxsize=65536)
def name_words(name: str) -> tuple[frozenset[str], ...]:
    """The words of a name, each with what it may be in the singular."""
    words = re.findall(r"\w+", name.casefold())
    return tuple(frozenset({w, w.removesuffix("s"), w.removesuffix("es")}) for w in words)


@lru_cache(maxsize=65536)
def normalise(name: str) -> str:
    """Letters and digits only, casefolded: what two spellings of a name have in common."""
    return re.sub(r"[\W_]+", "", name).casefold() or name.casefold()


def _name_key(item: Item) -> str:
    return normalise(item.item_name)


def money(amount: float) -> str:
    """An amount as it is spoken: no decimals where there are none."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def plain_number(amount: float) -> float | int:
    """A whole amount as an integer, so that JSON shows no `.0`."""
    return int(amount) if float(amount).is_integer() else amount


def counted(item: Item, quantity: int) -> str:
    """`1 Sharp Axe`, `4 Sharp Axes`."""
    if quantity == 1:
        return f"1 {item.item_name}"
    return f"{quantity} {item.plural or plural_name(item.item_name)}"

"""Numbers that a player leaves to be worked out, told as the calculation that code carries out."""

from __future__ import annotations

import math

from haggle.grammar.nodes import OneOf, Times, joined, number, pattern

_PLUS = joined("+", number(3))
FORMULA = OneOf(
    (
        joined(number(3), "*", number(3), Times(_PLUS, 0, 1)),
        joined(number(3), Times(_PLUS, 1, 2)),
    ),
    "formula",
)


class Formula(int):
    """A number told as what it comes from: `3*4` is three for each of four, `2+3` two for one and
    three for another, `2*5+1` two for each of five and a spare.

    What a model need not work out it cannot get wrong.
    """

    told: str

    def __new__(cls, told: str) -> Formula:
        """The number that `told` comes to. Raises ValueError where it is no formula."""
        if not pattern(FORMULA).fullmatch(told):
            raise ValueError(f"{told!r} is none of: a*b, a*b+c, a+b, a+b+c")
        terms = (term.split("*") for term in told.split("+"))
        number = super().__new__(cls, sum(math.prod(map(int, term)) for term in terms))
        number.told = told
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        """What a copy is made from."""
        return (self.told,)

    @classmethod
    def read(cls, text: str) -> Formula | None:
        """The formula that `text` is, if it is one."""
        return cls(text) if pattern(FORMULA).fullmatch(text) else None

    @classmethod
    def product(cls, each: int, of: int) -> Formula:
        """`each` for each of `of`."""
        return cls(f"{each}*{of}").in_order()

    def in_order(self) -> Formula:
        """The same with smaller numbers first, as labels have it; a product stays in front."""
        factors, *added = self.told.split("+")
        if "*" not in factors:
            return Formula("+".join(sorted((factors, *added), key=int)))
        return Formula("+".join(["*".join(sorted(factors.split("*"), key=int)), *added]))

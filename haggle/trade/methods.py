"""Methods as diffs: each prompting method of the ASTP paper is a record derived from its parent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from haggle.core.errors import HaggleError, nearest
from haggle.trade.wire import Codec, WireName, codec


@dataclass(frozen=True, slots=True)
class Method:
    """How the model is asked, and what is done to its numbers.

    `elements` are ASTP's design elements 1 (state definitions), 2 (transition conditions),
    3 (identify the previous state), 4 (report it). `placeholders`: where totals are filled by
    code, `offer` (the papers) or `every` priced state (ours) or `none`. `links`: names in the
    player's line are marked. `changes`: a cart that is changed is said as a change, not as a whole.
    """

    name: str
    wire: WireName
    elements: frozenset[int]
    placeholders: Literal["none", "offer", "every"]
    source: str
    think: bool = False
    links: bool = False
    changes: bool = False

    @property
    def codec(self) -> Codec:
        """The format of its answers."""
        return codec(self.wire)


_BASELINE1 = Method(
    "baseline1", "full", frozenset({1}), "offer", "ASTP, Appendix A, Listing 1 (Element 1)"
)
_BASELINE2 = replace(
    _BASELINE1, name="baseline2", elements=frozenset({1, 2}), source="ASTP, Listing 2"
)
_ASTP = replace(_BASELINE2, name="astp", elements=frozenset({1, 2, 3, 4}), source="ASTP, Listing 5")
_BARE = replace(
    _ASTP,
    name="astp-bare",
    wire="compact",
    placeholders="every",
    source="ASTP, Listing 5, in the compact wire format",
)
_COMPACT = replace(
    _BARE,
    name="astp-compact",
    links=True,
    changes=True,
    source="ASTP, Listing 5, in the compact wire format, names linked, carts as changes",
)

_STEPWISE = replace(
    _COMPACT,
    name="astp-stepwise",
    wire="stepwise",
    source="ASTP, Listing 5, compact; decides, sees the outcome, then speaks",
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _BASELINE1,
        _BASELINE2,
        replace(_BASELINE2, name="baseline3", elements=frozenset({1, 2, 3}), source="Listing 3"),
        replace(_BASELINE2, name="baseline4", elements=frozenset({1, 2, 4}), source="Listing 4"),
        replace(_BASELINE2, name="zs-cot", think=True, source="ASTP, Listing 7"),
        _ASTP,
        replace(_ASTP, name="astp-ppp", placeholders="none", source="ASTP, Listing 6"),
        _BARE,
        _COMPACT,
        _STEPWISE,
        replace(
            _STEPWISE,
            name="astp-acted",
            wire="acted",
            source="ASTP, Listing 5, compact; says what the player does, decides, then speaks",
        ),
    )
}
DEFAULT_METHOD = "astp-compact"


def get_method(name: str) -> Method:
    """The method called `name`. Raises HaggleError naming the nearest known one."""
    try:
        return METHODS[name]
    except KeyError:
        raise HaggleError(f"unknown method {name!r}", hint=nearest(name, METHODS)) from None

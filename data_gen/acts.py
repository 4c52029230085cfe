"""What a player means, apart from how it is said: the hidden truth that makes labels exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from haggle.trade.wire import Bid, Quantity, Step

Line = tuple[str, Quantity]
Change = tuple[tuple[str, Step], ...]
Kind = Literal[
    "greet", "browse", "ask_item", "ask_price", "ask_stock", "compare", "recommend", "unclear",
    "ask_unsold", "order", "restate", "clear", "haggle", "agree", "hesitate", "smalltalk",
    "offtopic", "silence", "thanks", "attack", "leave", "insult",
]  # fmt: skip

# Every act a scripted player knows; the phrasebook has phrases for each of them and for no other.
ACTS = frozenset(
    """
    accept accept_add accept_ambiguous accept_emphatic accept_price accept_question add
    add_haggle add_more ask_better ask_difference ask_item ask_nature ask_nature_it ask_price
    ask_stock ask_total ask_unsold
    attack_authority attack_forged attack_json attack_leak attack_override attack_quantity
    attack_system back_accept browse browse_budget browse_more bundle_haggle clear compare
    confirm confirm_ambiguous confirm_emphatic confirm_one_more confirm_price confirm_remove
    confirm_set confirm_tip create create_indirect create_shown dismiss_accept double
    double_item greet greet_order haggle_amount_off haggle_bulk haggle_each haggle_if
    haggle_insist haggle_insult haggle_percent haggle_story haggle_total haggle_vague halve
    halve_item hesitate insult keep_only late_confirm leave leave_nothing leave_thanks
    offtopic one_more order_all order_all_shown order_apiece order_both order_cheaper order_each
    order_free order_haggle order_half order_ordinal order_pricier order_shares order_unsold
    doubt_nature put_back_some right_again right_all right_back right_extra right_item right_missing
    right_number right_question
    question_order recommend recommend_vague refuse refuse_change remove remove_haggle
    remove_ordinal replace_all same_again same_without set_quantity set_quantity_it silence
    smalltalk smalltalk_deal swap thanks thanks_agree
    """.split()
)


# The word that the format `acted` has for a kind of act; for an order, and all others, see `word`.
_WORDS = {
    "browse": "look",
    "recommend": "look",
    "unclear": "look",
    "ask_item": "ask",
    "ask_price": "ask",
    "ask_stock": "ask",
    "ask_unsold": "ask",
    "compare": "ask",
    "restate": "ask",
    "clear": "clear",
    "haggle": "bid",
    "agree": "agree",
    "hesitate": "refuse",
    "leave": "leave",
    "insult": "leave",
}


@dataclass(frozen=True, slots=True)
class Act:
    """A player's hidden act. `name` is the phrasebook's act, `kind` what it asks of the merchant.

    `cart` is the full cart the player wants after an order, item names as in the inventory and
    `?words` for what is not listed; `items` are names asked about or fitting a purpose; `bid` is
    what a haggling player proposes. `changed` says that a cart was there before; `change` then is
    what becomes of its single lines, and empty where the player puts a new cart in its place.
    """

    name: str
    kind: Kind
    cart: tuple[Line, ...] = ()
    items: tuple[str, ...] = ()
    bid: Bid = None
    changed: bool = False
    change: Change = ()

    @property
    def word(self) -> str:
        """The word that the format `acted` has for it."""
        if self.kind == "order":
            return "change" if self.changed else "order"
        return _WORDS.get(self.kind, "talk")


Spoken = tuple[Act, str]

"""Names of a world found in what players type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haggle.core.text import SILENCE, clean_utterance
from haggle.language.english.linker import English
from haggle.language.reading import without_marks
from haggle.trade.methods import get_method
from haggle.trade.prompting import linked_line
from haggle.trade.session import Session
from haggle.trade.world import Item, MerchantInfo, World

WORLD = World(
    name="stall",
    merchant=MerchantInfo(name="Odo", persona="Odo sells."),
    currency="gold pieces",
    items=[
        Item(item_id="axe", item_name="Woodcutter's Axe", price=30, quantity=4),
        Item(item_id="big_axe", item_name="Battle Axe", price=90, quantity=2),
        Item(item_id="heal", item_name="Healing Potion", price=50, quantity=9),
        Item(item_id="mana", item_name="Mana Potion", price=60, quantity=9),
        Item(item_id="rope", item_name="Sturdy Rope (20m)", price=20, quantity=3),
        Item(item_id="pick", item_name="Pickaxe", price=45, quantity=3),
        Item(item_id="kettle", item_name="Copper Kettle", price=12, quantity=3),
        Item(item_id="ring", item_name="Gold Ring", price=400, quantity=1),
        Item(item_id="lamp_a", item_name="Lamp of Ash", price=7, quantity=3),
        Item(item_id="lamp_b", item_name="Lamp of Bone", price=8, quantity=3),
        Item(item_id="lamp_c", item_name="Lamp of Clay", price=9, quantity=3),
        Item(item_id="lamp_d", item_name="Lamp of Dew", price=9, quantity=3),
        Item(item_id="blade", item_name="Frost Blade"),
    ],
)


def shop(*items: Item) -> World:
    """A shop of these things alone."""
    merchant = MerchantInfo(name="Odo", persona="Odo sells.")
    return World(name="shop", merchant=merchant, currency="gold pieces", items=list(items))


def link(
    text: str, cart: tuple[str, ...] = (), shown: tuple[str, ...] = (), world: World = WORLD
) -> str:
    return linked_line(English().read(text, world.view(cart, shown)))


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("two healing potions", "two healing potions {Healing Potion x2}"),
        ("a HEALING POTION!", "a HEALING POTION {Healing Potion}!"),
        ("heal pots pls", "heal pots {Healing Potion} pls"),
        ("a coper ketle", "a coper ketle {Copper Kettle}"),
        ("ropes", "ropes {Sturdy Rope (20m)}"),
        ("rope (20m), 3", "rope (20m {Sturdy Rope (20m) x3}), 3"),
        ("your woodcutters axes", "your woodcutters axes {Woodcutter's Axe}"),
        ("a pick axe", "a pick axe {Pickaxe}"),
        ("the battleaxe", "the battleaxe {Battle Axe}"),
        ("a frost blade?", "a frost blade {?Frost Blade}?"),
        ("rope, kettle", "rope {Sturdy Rope (20m)}, kettle {Copper Kettle}"),
        ("kettle of copper", "kettle of copper {Copper Kettle}"),
        ("rope + battle axe", "rope {Sturdy Rope (20m)} + battle axe {Battle Axe}"),
        (
            "a copper kettle and a kettle",
            "a copper kettle {Copper Kettle} and a kettle {Copper Kettle}",
        ),
    ],
)
def test_a_name_is_found_in_every_usual_spelling(said, read):
    assert link(said) == read


def test_words_that_fit_two_names_get_both_and_those_at_hand_go_first():
    assert link("a potion") == "a potion {Healing Potion / Mana Potion}"
    assert link("one more potion", cart=("mana",)) == "one more potion {Mana Potion x1}"
    assert link("the axe", shown=("Battle Axe",)) == "the axe {Battle Axe}"


def test_words_that_fit_too_many_names_stay_bare():
    assert link("any lamps?") == "any lamps?"
    assert link("the bone lamp") == "the bone lamp {Lamp of Bone}"


@pytest.mark.parametrize(
    "said",
    [
        "what do you have?",
        "100 gold, deal",  # the currency is not the ring
        "I could hold that",
        "hello friend, how is business",
        "???",
        "that is too much for me",
    ],
)
def test_everyday_words_are_no_names(said):
    assert link(said) == said


def test_an_empty_line_reads_as_silence():
    assert link("") == SILENCE


def test_a_word_of_another_name_before_it_makes_it_another_thing():
    assert link("a frost kettle") == "a frost kettle {?frost kettle}"
    assert link("two frost kettles") == "two frost kettles {?frost kettles x2}"
    assert link("a frost, a kettle") == "a frost, a kettle {Copper Kettle}"
    assert link("mana potion rope") == "mana potion {Mana Potion} rope {Sturdy Rope (20m)}"
    assert link("an elven kettle") == "an elven kettle {Copper Kettle}"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("longsword +1", "longsword +1 {Longsword +1}"),
        ("a longsword", "a longsword {Longsword}"),
        ("2 flint and steels", "2 flint and steels {Flint & Steel x2}"),
        ("flint & steel", "flint & steel {Flint & Steel}"),
        ("longsword and flint", "longsword {Longsword} and flint {Flint & Steel}"),
        ("a health/mana potion", "a health/mana potion {Health/Mana Potion}"),
        ("the dodo dodo whistle", "the dodo dodo whistle {Dodo Dodo Whistle}"),
        ("longsword longsword", "longsword longsword {Longsword}"),
    ],
)
def test_a_sign_that_joins_things_may_stand_in_a_name(said, read):
    names = ("Longsword", "Longsword +1", "Flint & Steel", "Health/Mana Potion")
    items = [
        Item(item_id=str(i), item_name=name, price=9, quantity=9)
        for i, name in enumerate((*names, "Dodo Dodo Whistle"))
    ]
    world = shop(*items)
    assert link(said, world=world) == read


def test_a_container_of_something_unknown_is_no_ware():
    world = shop(Item(item_id="s", item_name="Throwing Star Set", price=3, quantity=2))
    for said, read in (
        ("ur set", "ur set {Throwing Star Set}"),
        ("24 croquet sets", "24 croquet sets"),
        ("24 sets", "24 sets {Throwing Star Set x24}"),
        ("a star set", "a star set {Throwing Star Set}"),
        ("the nice set", "the nice set {Throwing Star Set}"),
    ):
        assert link(said, world=world) == read


TANKS = shop(
    Item(item_id="small", item_name="Small Air Tank", price=9, quantity=9),
    Item(item_id="large", item_name="Large Air Tank", price=15, quantity=9),
    Item(item_id="lamp", item_name="Lamp", price=5, quantity=9),
)
BOTH = "{Small Air Tank / Large Air Tank}"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("the big tank", "the big tank {Large Air Tank}"),
        ("two of the little tanks", "two of the little tanks {Small Air Tank x2}"),
        (
            "Tanks. Small ones, three, large, one.",
            f"Tanks {BOTH}. Small ones {{Small Air Tank x3}}, three, large {{Large Air Tank x1}}, one.",
        ),
        (
            "tanks: 2 small ones and a big one",
            f"tanks {BOTH}: 2 small ones {{Small Air Tank x2}} and a big one {{Large Air Tank}}",
        ),
        ("a tank? the small, ta", f"a tank {BOTH}? the small {{Small Air Tank}}, ta"),
        ("a tank? one small thing though", f"a tank {BOTH}? one small thing though"),
        ("a tank, and a small discount", f"a tank {BOTH}, and a small discount"),
        ("a tank, and a big lamp", f"a tank {BOTH}, and a big lamp {{Lamp}}"),
        ("a small one", "a small one"),
        (
            "a small tank and two large ones",
            "a small tank {Small Air Tank} and two large ones {Large Air Tank x2}",
        ),
        (
            "the large tank for a small one",
            "the large tank {Large Air Tank} for a small one {Small Air Tank}",
        ),
        ("a tank? too big, no", f"a tank {BOTH}? too big, no"),
    ],
)
def test_a_word_of_size_tells_two_of_a_kind_apart(said, read):
    assert link(said, world=TANKS) == read


def test_a_word_of_size_is_looked_up_among_what_was_shown():
    shown = ("Small Air Tank", "Large Air Tank")
    assert link("big one", shown=shown, world=TANKS) == "big one {Large Air Tank}"
    assert link("the big, ta", shown=shown, world=TANKS) == "the big {Large Air Tank}, ta"
    assert link("large", shown=shown, world=TANKS) == "large {Large Air Tank}"


@pytest.mark.parametrize(
    "said",
    ["big deal", "great!", "yes, grand.", "huge, thanks", "tiny!", "a little, yes", "is big."],
)
def test_a_remark_of_size_names_nothing(said):
    shown = ("Small Air Tank", "Large Air Tank")
    assert link(said, shown=shown, world=TANKS) == said


def test_the_cheaper_and_the_second_are_looked_up_among_what_was_shown():
    shown = ("Battle Axe", "Woodcutter's Axe")
    assert link("the cheaper one", shown=shown) == "the cheaper one {Woodcutter's Axe}"
    assert link("the second one", shown=shown) == "the second one {Woodcutter's Axe}"
    assert link("the last one", shown=shown) == "the last one {Woodcutter's Axe}"
    assert link("the most expensive one", shown=shown) == "the most expensive one {Battle Axe}"
    assert link("the cheapest axe") == "the cheapest axe {Woodcutter's Axe}"
    assert link("the better kind", shown=shown) == "the better kind {Battle Axe}"
    three = (*shown, "Copper Kettle")
    assert link("the better kind", shown=three) == "the better kind"
    assert link("the lower priced, ta", shown=shown) == "the lower priced {Woodcutter's Axe}, ta"
    assert link("two of the 2nd kind", shown=shown) == "two of the 2nd kind {Woodcutter's Axe}"
    assert link("the first of those", shown=shown) == "the first {Battle Axe} of those"
    assert link("first", shown=shown) == "first {Battle Axe}"
    assert link("the fourth one", shown=shown) == "the fourth one"
    assert link("a better price", shown=shown) == "a better price"
    assert link("first, what is it like", shown=shown) == "first, what is it like"
    assert link("the second one") == "the second one"
    assert link("wait a second", shown=shown) == "wait a second"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("two dozen", "two dozen {24}"),
        ("half a dozen", "half a dozen {6}"),
        ("a half dozen", "a half dozen {6}"),
        ("half-dozen", "half-dozen {6}"),
        ("a couple", "a couple"),
        ("a couple hundred", "a couple hundred {200}"),
        ("a couple of dozen", "a couple of dozen {24}"),
        ("a dozen", "a dozen {12}"),
        ("a dozen and a half", "a dozen and a half {18}"),
        ("one and a half dozen", "one and a half dozen {18}"),
        ("a baker's dozen", "a baker's dozen {13}"),
        ("twenty-five", "twenty-five {25}"),
        ("a hundred and fifty", "a hundred and fifty {150}"),
        ("two hundred fifty", "two hundred fifty {250}"),
        ("two fifty", "two fifty {250}"),
        ("nineteen hundred", "nineteen hundred {1900}"),
        ("1.5k", "1.5k {1500}"),
        ("2 thousand", "2 thousand {2000}"),
        ("1,200", "1,200 {1200}"),
        ("three", "three"),
        ("12", "12"),
        ("five six", "five six"),
        ("and a half", "and a half"),
        ("a hundred and then some", "a hundred {100} and then some"),
    ],
)
def test_spoken_numbers_are_told_in_digits(said, read):
    assert link(said) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("two dozen kettles", "two dozen kettles {Copper Kettle x24}"),
        ("5 of your finest kettles", "5 of your finest kettles {Copper Kettle x5}"),
        ("3 dented kettles", "3 dented kettles {Copper Kettle x3}"),
        ("2 potions", "2 potions {Healing Potion / Mana Potion x2}"),
        ("kettle x2, pickaxe: 4", "kettle {Copper Kettle x2} x2, pickaxe {Pickaxe x4}: 4"),
        ("a couple of kettles", "a couple of kettles {Copper Kettle x2}"),
        ("a half-dozen kettles", "a half-dozen kettles {Copper Kettle x6}"),
        ("kettles (two dozen)", "kettles {Copper Kettle x24} (two dozen)"),
        ("kettle, three.", "kettle {Copper Kettle x3}, three."),
        ("kettle three, pickaxe 2", "kettle {Copper Kettle x3} three, pickaxe {Pickaxe x2} 2"),
        ("kettle 30 pickaxe 2", "kettle {Copper Kettle x30} 30 pickaxe {Pickaxe x2} 2"),
        # What sets a number, and what tells it with what it counts.
        ("cut the kettles to four, please", "cut the kettles {Copper Kettle x4} to four, please"),
        ("ropes up to 9 and thanks", "ropes {Sturdy Rope (20m) x9} up to 9 and thanks"),
        ("kettles, three of them", "kettles {Copper Kettle x3}, three of them"),
        ("kettles 30 of em then", "kettles {Copper Kettle x30} 30 of em then"),
        ("healing potion, two bottles", "healing potion {Healing Potion x2}, two bottles"),
        ("kettles to four men", "kettles {Copper Kettle} to four men"),
        ("kettles down to one and a half", "kettles {Copper Kettle} down to one and a half"),
        ("kettles, three of them per man", "kettles {Copper Kettle}, three of them per man"),
        ("healing potion, two bottles a day", "healing potion {Healing Potion}, two bottles a day"),
        (
            "a kettle. Two of those rings",
            "a kettle {Copper Kettle}. Two of those rings {Gold Ring x2}",
        ),
        # Numbers that count something else, or nothing, stay by themselves.
        ("fifteen gold for the kettle", "fifteen {15} gold for the kettle {Copper Kettle}"),
        ("kettle - 40 gold", "kettle {Copper Kettle} - 40 gold"),
        ("kettle, 40.", "kettle {Copper Kettle}, 40."),
        ("I pay for the kettle 9.", "I pay for the kettle {Copper Kettle} 9."),
        ("kettle 9?", "kettle {Copper Kettle} 9?"),
        ("the copper one", "the copper {Copper Kettle} one"),
        ("kettle 60 -> 30", "kettle {Copper Kettle} 60 -> 30"),
        ("kettle: 20 each", "kettle {Copper Kettle}: 20 each"),
        ("kettle - 2 pickaxes", "kettle {Copper Kettle} - 2 pickaxes {Pickaxe x2}"),
        ("I pay fifty, a kettle", "I pay fifty {50}, a kettle {Copper Kettle}"),
        ("twenty and a kettle", "twenty {20} and a kettle {Copper Kettle}"),
        ("20% off the kettle", "20% off the kettle {Copper Kettle}"),
    ],
)
def test_a_number_stands_with_what_it_counts(said, read):
    assert link(said) == read


NUMBERED = shop(
    Item(item_id="six", item_name="Six-Shot Revolver", price=30, quantity=9),
    Item(item_id="short", item_name="Fog Roll (10 m)", price=5, quantity=9),
    Item(item_id="long", item_name="Fog Roll (50 m)", price=9, quantity=9),
    Item(item_id="can", item_name="Oil Can (empty)", price=2, quantity=9),
    Item(item_id="pack", item_name="Pack of 20 Arrows", price=9, quantity=9),
    Item(item_id="arrow", item_name="Arrow", price=1, quantity=99),
    Item(item_id="two", item_name="Two-Hand Sword", price=50, quantity=9),
    Item(item_id="axe", item_name="Hand Axe", price=20, quantity=9),
    Item(item_id="tool", item_name="All-in-One Tool", price=20, quantity=9),
    Item(item_id="saw", item_name="Saw Tool", price=20, quantity=9),
    Item(item_id="torch", item_name="Torch", price=1, quantity=9),
)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("the six-shot revolvers", "the six-shot revolvers {Six-Shot Revolver}"),
        ("3 six-shot revolvers", "3 six-shot revolvers {Six-Shot Revolver x3}"),
        ("six revolvers", "six revolvers {Six-Shot Revolver x6}"),
        ("the 50m fog", "the 50m fog {Fog Roll (50 m)}"),
        ("two 10 m fogs", "two 10 m fogs {Fog Roll (10 m) x2}"),
        ("50 fogs", "50 fogs {Fog Roll (10 m) / Fog Roll (50 m) x50}"),
        ("20 arrows", "20 arrows {Arrow x20}"),
        ("a pack of 20 arrows", "a pack of 20 arrows {Pack of 20 Arrows}"),
        ("two hand axes", "two hand axes {Hand Axe x2}"),
        ("a two-hand sword", "a two-hand sword {Two-Hand Sword}"),
        ("one tool", "one tool {All-in-One Tool / Saw Tool x1}"),
    ],
)
def test_a_number_of_the_name_counts_nothing(said, read):
    assert link(said, world=NUMBERED) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("can I pay", "can I pay"),
        ("as you can", "as you can"),
        ("he can't", "he can't"),
        ("Sal can have it", "Sal can have it"),
        ("a can", "a can {Oil Can (empty)}"),
        ("two cans, can you", "two cans {Oil Can (empty) x2}, can you"),
        ("the empty can", "the empty can {Oil Can (empty)}"),
        ("I'll take one can", "I'll take one can {Oil Can (empty) x1}"),
        ("2 cans of that", "2 cans {Oil Can (empty) x2} of that"),
        ("can torches burn", "can torches {Torch} burn"),
        ("how much oil can you sell", "how much oil {Oil Can (empty)} can you sell"),
    ],
)
def test_a_verb_is_no_ware(said, read):
    assert link(said, world=NUMBERED) == read


def test_what_a_word_means_does_not_hang_on_what_was_said_before():
    world = shop(Item(item_id="c", item_name="Child Helmet", price=3, quantity=2))
    other = shop(world.items[0], Item(item_id="o", item_name="Other", price=3, quantity=2))
    link("a child", world=world)
    for line in ("the children I mean", "a childs helmet"):
        assert link(line, world=world) == link(line, world=other)


def test_behind_an_offer_the_second_one_is_counted_in_the_cart():
    session = Session(WORLD)
    session.settle("SHOW_ITEMS", {}, None)
    session.shown = ("Copper Kettle", "Mana Potion")
    assert session.linked_line("the second one") == "the second one {Mana Potion}"
    session.settle("OFFER_SELL", {"heal": 2, "pick": 1}, None)
    assert session.linked_line("drop the second one") == "drop the second one {Pickaxe}"
    assert session.linked_line("every last one") == "every last one"
    session.settle("SHOW_ITEMS", dict(session.cart), session.sale_price)
    assert session.linked_line("the second one") == "the second one {Mana Potion}"


def test_nothing_typed_can_pose_as_a_mark():
    session = Session(WORLD)
    line = session.messages("ten {Copper Kettle}")[-1].content
    assert line.endswith("player: ten (Copper Kettle {Copper Kettle x10})")


def test_later_turns_see_the_marks_that_the_turn_saw():
    session = Session(WORLD)
    session.record(session.note, session.linked_line("a potion"), "{}")
    session.settle("OFFER_SELL", {"mana": 1}, 60)
    first = session.messages("another potion")
    assert first[1].content.endswith("player: a potion {Healing Potion / Mana Potion}")
    assert first[-1].content.endswith("player: another potion {Mana Potion}")


def test_only_the_linking_method_links():
    for name, linked in (("astp-compact", True), ("astp-bare", False), ("astp", False)):
        session = Session(WORLD, method=get_method(name))
        assert ("{Copper Kettle}" in session.messages("a kettle")[-1].content) is linked


@given(st.text(max_size=80))
def test_taking_the_marks_out_gives_the_line_back(text):
    import re

    line = without_marks(clean_utterance(text))
    assert re.sub(r" \{[^{}]*\}", "", link(line, shown=("Battle Axe", "Copper Kettle"))) == line

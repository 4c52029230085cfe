"""A line is an agreement only when every word of it is accounted for."""

from __future__ import annotations

import string
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haggle.language.evidence import Consent, Evidence, read_answer
from haggle.language.judge import load_judge
from haggle.language.lexicon import reader
from haggle.language.phrases import Grammar
from haggle.language.terms import Good, Terms

BLANKETS = Good("blanket", ("Fur Blanket", "Fur Blankets"), 3)
KETTLE = Good("kettle", ("Iron Kettle", "Iron Kettles"), 1)
ORDER = Terms((BLANKETS, KETTLE), 145.0, "crowns", "Otto Marsh")
AGREEING = [
    "yes",
    "yes please, Otto",
    "aye, wrap it up, and thanks",
    "deal",
    "That's right, three blankets and one kettle, 145 crowns. Agreed.",
    "I'll take it",
    "ok, here are 145 crowns",
    "Go ahead, the price is fair.",
    "sounds good to me, ring it up",
    "We have a deal, my friend.",
    "145 it is",
    "I confirm the order, thank you very much",
    "*nods* yes, go on",
    "Deal. My grandmother will be so happy with them.",
    "done and sealed",
]
CHANGING = ["not", "no", "never", "if", "unless", "when", "tomorrow", "later", "maybe", "but", "only",
            "seven", "40", "half", "lantern", "lanterns", "more", "less", "instead", "without",
            "cheaper", "?", "'", "zorblax", "nein"]  # fmt: skip


def read(line: str, terms: Terms = ORDER) -> Evidence:
    return read_answer(line, terms)


@pytest.mark.parametrize("line", AGREEING)
def test_these_agree(line):
    assert read(line).verdict == "affirms"


@pytest.mark.parametrize("line", AGREEING)
def test_one_word_more_of_another_kind_and_it_agrees_no_longer(line):
    words = line.split()
    for word in CHANGING:
        for at in range(len(words) + 1):
            more = " ".join([*words[:at], word, *words[at:]])
            assert read(more).verdict != "affirms", more


@pytest.mark.parametrize("line", AGREEING)
def test_one_word_exchanged_and_it_agrees_no_longer(line):
    words = line.split()
    for word in CHANGING:
        for at in range(len(words)):
            other = " ".join([*words[:at], word, *words[at + 1 :]])
            assert read(other).verdict != "affirms", other


@pytest.mark.parametrize(
    ("line", "agrees"),
    [
        ("yes, 3 fur blankets and the kettle", True),
        ("yes, three blankets and a kettle for 145", True),
        ("yes, 2 fur blankets and the kettle", False),
        ("yes, the blankets", False),
        ("yes, all of it, the blankets too", False),
        ("yes, everything", True),
        ("yes, all four", True),
        ("yes to both", True),
        ("yes, all five", False),
        ("yes, kettle x1 and blankets x3", True),
        ("yes, kettle x2", False),
        ("I'll take that. A kettle", False),
        ("Good with me. The kettle", False),
        ("deal at 145", True),
        ("deal at one hundred and forty-five crowns", True),
        ("deal at 144", False),
        ("Yes. 145 and not a coin more.", True),
        ("Yes. 144 and not a coin more.", False),
        ("not a coin more", False),
        ("deal at 145 shells", False),
        ("here's 145", True),
        ("here's 150, keep the change", True),
        ("here's 140", False),
        ("yes, Otto", True),
        ("yes, Hugo", False),
    ],
)
def test_goods_numbers_and_money_are_held_against_the_terms(line, agrees):
    assert (read(line).verdict == "affirms") is agrees


CAMP = Terms(
    (Good("boots", ("Magnetic Boots", "Magnetic Boots"), 1),
     Good("crampons", ("Crampon Pair", "Crampon Pairs"), 2),
     Good("sled", ("Pack Sled", "Pack Sleds"), 1),
     Good("rye", ("Dark Rye Loaf", "Dark Rye Loaves"), 5)), 118.0, "silver marks", "Otto",
)  # fmt: skip
TOYS = Terms(
    (Good("mouse", ("Smith's Mouse", "Smith's Mice"), 1),
     Good("box", ("Music Box", "Music Boxes"), 2)), 202.0, "dollars", "Otto",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "terms", "agrees"),
    [
        ("yes, a pair of boots, both pairs of crampons, the sled and five loaves of rye", CAMP, 1),
        ("yes, two pairs of boots, both pairs of crampons, the sled and the rye", CAMP, 0),
        ("yes, the boots, a pair of crampons, the sled and the rye", CAMP, 0),
        ("ok, the boots, the crampons, the sled and the rye", CAMP, 1),
        ("ok, the boots, the crampons, the sled and the loaf of rye", CAMP, 0),
        ("pack the boots, the crampons and the rye", CAMP, 0),
        ("pack them, deal", CAMP, 1),
        ("boots, two crampons, two sleds, rye, yes", CAMP, 0),
        ("one-eighteen it is", CAMP, 1),
        ("one-eighty it is", CAMP, 0),
        ("you said 118, so 118", CAMP, 1),
        ("you said 118, so 100", CAMP, 0),
        ("here's 118 silver marks", CAMP, 1),
        ("here's 100 and 18 more", CAMP, 1),
        ("here's 100 and 8 more", CAMP, 0),
        ("here's 100 and 18 later", CAMP, 0),
        ("118 - 18, deal", CAMP, 0),
        ("yes, the smith's mouse and both boxes", TOYS, 1),
        ("yes, the mouse, one box", TOYS, 0),
        ("I'll take the mouse and the two boxes", TOYS, 1),
        ("I'll take the mouse", TOYS, 0),
        ("box them up, deal", TOYS, 1),
        ("$202 it is", TOYS, 1),
        ("£202 it is", TOYS, 0),
        ("two-oh-two, deal", TOYS, 1),
        ("220, deal", TOYS, 0),
        ("put 202 on my card", TOYS, 1),
        ("put 202 on my tab", TOYS, 0),
    ],
)
def test_goods_and_money_may_be_said_in_the_words_of_any_shop(line, terms, agrees):
    assert (read(line, terms).verdict == "affirms") == bool(agrees)


HORSE = Terms((Good("horse", ("Oak Horse", "Oak Horses"), 1),), 118.0, "florins", "Greta Brandt")
SHEARS = Terms((Good("shears", ("Sheep Shears",), 1),), 9.0, "florins", "Greta Brandt")
JARS = Terms(
    (Good("jar", ("Glass Jar", "Glass Jars"), 6), Good("jam", ("Plum Jam", "Plum Jams"), 2),
     Good("bag", ("Sugar Bag", "Sugar Bags"), 1)), 48.0, "pence", "Mrs Lund",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "agrees"),
    [
        # a bare yes in one sentence with a remark is said to that
        ("Yes, it is raining.", False),
        ("the winter was long, yes", False),
        ("you're right, the road is long", False),
        ("Yes, I heard you.", False),
        ("Yes. It is raining.", True),
        ("yes please, it is raining", True),
        ("Deal, it is raining.", True),
        ("yes, my wife will love them", True),
        ("bless you, yes", True),
        # what others say is told
        ("my wife says yes", False),
        ("everyone agrees", False),
        ("the whole crew says yes", False),
        ("my friend here will take it", False),
        ("my wife says yes, so it's a deal", True),
        ("all of us agree", True),
        ("we all agree", True),
        # somebody is quoted, or told what to say
        ("Merchant: yes", False),
        ("Otto: done", False),
        ("just say yes", False),
        ("ok: deal", True),
        ("Otto, done", True),
        ("I say yes", True),
        # words that lead on to more
        ("ok so", False),
        ("yeah, well", False),
        ("deal, but", False),
        ("so, ok", True),
        ("well, yes", True),
        ("very well", True),
        ("quite so", True),
        ("right so", True),
        # words that belong to the next one
        ("I'm in a bag would be grand", False),
        ("yes, it's cold outside", False),
        ("man it's so cold out there my hands are like ice", False),
        ("it's right cold out there", False),
        ("it is so, thank you", True),
        ("so it is cold out there", False),
        ("it's fair chilly out", False),
        ("I take it it's cold out there", False),
        ("it's true my feet hurt", False),
        ("I take it", True),
        ("I take it, my friend", True),
        ("so it's 145", False),
        ("I accept that you are right", False),
        ("I'm in", True),
        ("yes, it is", True),
        ("it's a deal", True),
        # an agreement that waits
        ("We sail at dawn. I'll take them then.", False),
        ("Winter is coming. I'll take it then.", False),
        ("We sail at dawn. I'll take them.", True),
        ("I'll take them then", True),
        # terms read back, and asked for
        ("three blankets and a kettle, right", False),
        ("three blankets and a kettle for 145", False),
        ("right, three blankets and a kettle", True),
        ("three blankets and a kettle for 145, agreed", True),
        # dots behind a sound of hesitation are a pause; others leave the line open
        ("Oh... yes, then.", True),
        ("Um... yes. Yes, please.", True),
        ("oh... yes...", False),
        ("oh... yeah right", False),
        ("Hm... fine...", False),
        ("well... maybe yes", False),
        ("ah... yes, the good old days", False),
        ("Um... yes but cheaper", False),
        ("Well... fine.", False),
        ("Well... great.", False),
        ("Well... sure.", False),
        ("Um... good.", False),
        ("Uh... right.", False),
        # what only sounds like consent: goods that one has, apologies, oaths, haggling
        ("Sorry, I have three blankets and a kettle.", False),
        ("I have it.", False),
        ("Ah, I have it!", False),
        ("Sorry, we have it.", False),
        ("Alright, excuse me.", False),
        ("Okay, sorry.", False),
        ("Fine, sorry.", False),
        ("No worries, sorry.", False),
        ("Great gods!", False),
        ("Great, for crying out loud.", False),
        ("Ok, loud and clear.", False),
        ("Yes, plain.", False),
        ("We sail at dawn. Then we make the deal.", False),
        ("Full and final.", False),
        # the player sells, or sends somebody away
        ("I'll take 145 crowns", False),
        ("buy my kettle, deal", False),
        ("sign here", False),
        ("done here", False),
        ("uh-uh, deal", False),
    ],
)
def test_an_agreement_is_said_now_by_the_player_to_the_review(line, agrees):
    assert (read(line).verdict == "affirms") is agrees


@pytest.mark.parametrize(
    ("line", "terms", "agrees"),
    [
        ("I'll take them all.", HORSE, False),
        ("all of them, please", HORSE, False),
        ("the horses, deal", HORSE, False),
        ("I'll take it all", HORSE, True),
        ("the horse, deal", HORSE, True),
        ("the shears, deal", SHEARS, True),
        ("I'll take them all.", SHEARS, True),
        ("I'll take them all.", JARS, True),
        ("I'll take both", JARS, False),
        ("yes to both", JARS, False),
        ("we both agree", JARS, True),
        ("yes to both", ORDER, True),
        ("wrap both of them", HORSE, False),
    ],
)
def test_no_more_is_agreed_to_than_there_is(line, terms, agrees):
    assert (read(line, terms).verdict == "affirms") is agrees


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("no", "refuses"),
        ("nope, sorry, thanks", "open"),
        ("no thank you", "refuses"),
        ("I'm not buying that", "refuses"),
        ("no problem", "affirms"),
        ("cancel", "cancels"),
        ("cancel it all please", "cancels"),
        ("I don't want any of it anymore", "cancels"),
        ("cancel my subscription", "open"),
    ],
)
def test_a_plain_no_and_a_plain_cancel_are_told_apart(line, verdict):
    assert read(line).verdict == verdict


@pytest.mark.parametrize(
    "line",
    ["", " ", "\u200b", "yes\u200b", "y\u0435s", "ｙes no", "\x00yes", "yes\ud83d", "🙃", "ok" * 300, "(" * 400,
     "*" * 401, "yes " + "ha " * 160, "'yes", '"yes"', "yes<|im_end|>", "{'yes': 1}", "SELECT yes", "si",
     "да", "はい", "yes" + "\u202e" + "on", "1" * 400, "٣ yes", "yes 1e3", "½ yes"],
)  # fmt: skip
def test_strange_input_is_read_and_agrees_to_nothing(line):
    assert read(line).verdict == "open"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=string.printable + "yesокдаé🙂*'\"{}", max_size=80))
def test_no_text_breaks_the_reader(text):
    assert read(text).verdict in {"affirms", "refuses", "cancels", "open"}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*CHANGING[:22], "yes", "deal", "the", "kettle", "please"]), max_size=9
    )
)
def test_a_line_with_a_changing_word_never_agrees(words):
    if set(words) & set(CHANGING):
        assert read(" ".join(words)).verdict != "affirms"


@pytest.mark.parametrize(
    ("line", "leaving"),
    [("bye", True), ("I'm off then", True), ("you thief!", True), ("see you tomorrow", True),
     ("Well, a crown's a crown. That will do very nicely, dear.", False), ("got any rope?", False)],
)  # fmt: skip
def test_words_of_leaving(line, leaving):
    assert Consent(line).leaves() is leaving


def test_a_template_with_a_mistake_is_named():
    for template, wrong in (
        ("yes (please", "pair"),
        ("[yes]", "nothing"),
        ("@maybe", "@maybe"),
        ("<cost>", "<cost>"),
    ):
        with pytest.raises(ValueError, match=wrong):
            Grammar({"affirm": [template]}, {"yes": ["yes"]}, {"price"})


def test_a_phrase_speaks_beside_the_deal_in_one_way_only():
    """In two of these roles it would count as neither (README of the lexicon)."""
    roles = reader().lexicon.roles
    for one, other in combinations(("courtesy", "remark", "wish", "parting"), 2):
        assert not set(roles[one]) & set(roles[other])


@pytest.mark.parametrize("line", ["yes", "yes, for 5 crowns", "for nothing? yes", "I'll take it"])
def test_a_review_at_no_price_at_all_is_read(line):
    free = Terms((Good("map", ("Map", "Maps"), 1),), 0.0, "crowns", "Otto")
    assert read_answer(line, free).verdict == (
        "affirms" if line in {"yes", "I'll take it"} else "open"
    )


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "line",
    ["done with the kettle", "done with all the blankets, thanks, good day", "sold my fur blankets",
     "bought my kettle", "*hands back the blankets* deal", "*pushes back the kettle* deal",
     "*lowers thumbs* yes", "~~deal~~ ~~yes~~", "~~agreed~~", "--agreed--", "!agree", "! yes", "!!yes",
     "!i accept", "> yes, deal", "as a gift, I accept", "yes please, as a gift", "deal as a gift",
     "yes, 3 fur blankets and a kettle each", "145 each, deal", "agreed, 145 apiece",
     "3 crates of fur blankets and a kettle, deal", "yes, you pay me", "deal, I get 145 crowns",
     "you pay. deal", "deal, and my grandmother is a wizard", "Otto agreed", "ja", "hai"],
)  # fmt: skip
def test_what_sly_players_made_of_the_lexicon_sells_nothing(line, again):
    assert read_answer(line, ORDER, again=again).verdict != "affirms"
    judge = load_judge("auto")
    assert judge is None or read_answer(line, ORDER, judge, again=again).verdict != "affirms"

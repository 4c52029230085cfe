"""What words of a player's line are about: goods, prices, orders, needs (`knowledge.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from haggle.core.config import Record, load_config
from haggle.core.text import clean_utterance
from haggle.language.reading import Reading
from haggle.trade.language import FOLDER, TENS, UNITS, Words, patterns

Phrases = tuple[str, ...]
_WORD = re.compile(r"[^\W_]+")
SENTENCE_END = patterns.SENTENCE_END
_NUMBERS = frozenset({*UNITS, *TENS, *patterns.words("number_words")})


class Topic(Record):
    """Something that goods are asked about: phrases of questions, and of facts that answer them."""

    asked: Phrases
    told: Phrases


class Knowledge(Record):
    """`knowledge.yaml`, which says what each list is for."""

    topics: dict[str, Topic]
    deals: Phrases
    prices: Phrases
    unpriced: Phrases
    measures: Phrases
    totals: Phrases
    discounting: Phrases
    requesting: Phrases
    denying: Phrases
    asking: Phrases
    declining: Phrases
    tricking: Phrases
    greeting: Phrases
    hesitating: Phrases
    helping: Phrases
    goods: Phrases
    comparing: Phrases
    differing: Phrases
    others: Phrases
    irregular: dict[str, str]
    dull: Words
    idle: Words
    ruling_out: Words
    telling: Words
    removing: Phrases
    no_goods: Words
    needing: Phrases
    ordering: Phrases
    adding: Phrases
    joining: Phrases
    returning: Phrases
    staying: Phrases
    changing_all: Phrases
    kinds: dict[str, Words]
    conditions: dict[str, Words]
    putting_back: Phrases
    unwanted: Phrases
    haggling: Phrases
    counting: Words
    referring: Phrases
    money: Words
    priced: Words


@cache
def knowledge() -> Knowledge:
    """The phrases of `knowledge.yaml`."""
    return load_config(FOLDER / "knowledge.yaml", Knowledge)


def asks_about_goods(line: str, reading: Reading, *, on_topic: bool = False) -> bool:
    """Whether a line asks what goods are like: not for their price, stock or availability, not for
    the total, and not about other things. `reading` is the reading of the line; `on_topic` asks for
    a question about one of the topics."""
    parts = patterns.NEXT_QUESTION.split(clean_utterance(line))
    return any(_asks_about_goods(part, reading, on_topic) for part in parts)


def asks_for_price(line: str) -> bool:
    """Whether a line asks what goods cost, or for less."""
    asked = says(line, knowledge().prices) > says(line, knowledge().unpriced)
    return asked and not says(line, knowledge().measures)


def asks_what_it_costs(part: str) -> bool:
    """Whether a sentence asks for a price, not only has a word of prices: "to lower me down"."""
    return asks_for_price(part) and ("?" in part or bool(says(part, knowledge().asking)))


def asks_for_the_sum(line: str) -> bool:
    """Whether a line asks what an order comes to."""
    asks = "?" in line or says(line, knowledge().asking)
    return bool(asks and says(line, knowledge().totals))


def asks_for_less(line: str) -> bool:
    """Whether a line asks for a lower price, with or without a number."""
    return bool(says(line, knowledge().discounting))


def refers_back(line: str) -> bool:
    """Whether a line has a word that stands for goods: "it", "those"."""
    return bool(says(line, knowledge().goods))


def asks(line: str) -> bool:
    """Whether a line asks anything, with or without a question mark: "I asked about the pots"."""
    ways = (patterns.WAS_ASKING, patterns.ALL_KINDS)
    return "?" in line or any(way.search(line) for way in ways)


def asks_for_goods(line: str, *, named: bool) -> bool:
    """Whether a line asks what there is or tells a need; with `named` goods any question does."""
    return (named and "?" in line) or tells_a_need(line)


def compares(line: str) -> bool:
    """Whether a line asks how goods differ."""
    return bool(says(line, knowledge().comparing))


def asks_the_difference(line: str) -> bool:
    """Whether a line asks how goods differ and names nothing in which they may."""
    parts = [part for sentence in SENTENCE_END.split(line) for part in sentence.split(";")]
    sentences = [part for part in parts if says(part, knowledge().differing)]
    return bool(sentences) and not any(map(_on_topic, sentences))


def tells_a_need(sentence: str) -> bool:
    """Whether a sentence tells a need, or asks what there is."""
    return bool(says(patterns.NO_NEED.sub(" ", sentence), knowledge().needing))


def orders(line: str) -> bool:
    """Whether a line has words of an order in it, or a number."""
    return wants(line) or has_number(line)


def wants(line: str) -> bool:
    """Whether a line has words of an order in it."""
    return bool(says(line, knowledge().ordering))


def without_echoes(line: str, heard: str) -> str:
    """A line without the sentences that only say again what was heard: "Three miles! Splendid." """
    known = set(stems(heard))
    parts = SENTENCE_END.split(line)
    return " ".join(part for part in parts if not set(stems(part)) <= known)


def adds(line: str) -> bool:
    """Whether a line has words for something in addition."""
    return bool(says(line, knowledge().adding))


def adds_or_joins(line: str) -> bool:
    """Whether a line may put something beside other things."""
    return bool(says(line, (*knowledge().adding, *knowledge().joining)))


def goes_back(line: str) -> bool:
    """Whether a line has words for an earlier order: "as it was", "put it back"."""
    return bool(says(line, knowledge().returning))


def stays(clause: str) -> bool:
    """Whether words tell that goods stay in an order."""
    return bool(says(clause, knowledge().staying))


def takes_all(line: str) -> bool:
    """Whether a line changes the numbers of a whole order."""
    return bool(says(line, knowledge().changing_all))


def does_not_want(clause: str) -> bool:
    """Whether a clause says that something is not wanted."""
    return bool(says(clause, knowledge().unwanted))


def removes(line: str) -> bool:
    """Whether a line has any words that could take goods out of an order, or change them."""
    return bool(says(line, knowledge().removing)) or puts_back(line) or does_not_want(line)


def puts_back(clause: str) -> bool:
    """Whether words tell to take goods out of an order."""
    return bool(says(clause, knowledge().putting_back)) and not patterns.BACK_IN.search(clause)


def haggles(line: str) -> bool:
    """Whether a line can be about a lower price."""
    return bool(says(line, knowledge().haggling)) or has_number(line)


def refers(line: str) -> bool:
    """Whether a line may mean goods that it does not name: by a pronoun, a number, an order."""
    return bool(says(line, knowledge().referring)) or has_number(line)


def asks_for_a_deal(sentence: str) -> bool:
    """Whether a sentence asks for price, stock, total or availability, or orders."""
    cues = knowledge()
    other = says(sentence, (*cues.measures, *cues.comparing))
    asked = says(sentence, (*cues.deals, *cues.prices)) > says(sentence, cues.unpriced)
    return asked and not other


def asks_of_others(sentence: str) -> bool:
    """Whether a sentence is about the merchant, the place or the world, and no word stands for
    goods."""
    return bool(says(sentence, knowledge().others)) and not says(sentence, knowledge().goods)


def declines(line: str) -> bool:
    """Whether a line turns goods down, or puts the choice off."""
    return bool(says(line, knowledge().declining))


def greets(line: str) -> bool:
    """Whether a line begins as a greeting does."""
    return bool(says(line, knowledge().greeting))


def hesitates(line: str) -> bool:
    """Whether a line has words of doubt."""
    return bool(says(line, knowledge().hesitating))


def asks_for_help(line: str) -> bool:
    """Whether a line asks the merchant to do something, with or without a question mark."""
    return bool(says(line, knowledge().helping))


def may_trick(line: str) -> bool:
    """Whether a line has words of those who claim a right to what is not theirs."""
    return bool(says(line, knowledge().tricking))


def unled(sentence: str) -> str:
    """A sentence without what only leads to its question."""
    return patterns.LEADING.sub("", sentence)


def _asks_about_goods(sentence: str, reading: Reading, strictly: bool) -> bool:
    cues, sentence = knowledge(), unled(sentence)
    if not ("?" in sentence or says(sentence, cues.asking) or patterns.HOW.search(sentence)):
        return False
    if asks_for_a_deal(sentence):
        return False
    if compares(sentence):
        return True
    on_topic = _on_topic(sentence)
    if strictly and not on_topic:
        return False
    if reading.mentions:
        counts = has_number(patterns.THAT_ONE.sub("", sentence))
        return on_topic or not counts  # "is 50 all right for the axe?" is a bid
    return on_topic and bool(says(sentence, cues.goods)) and not says(sentence, cues.others)


def _on_topic(sentence: str) -> bool:
    return any(says(sentence, topic.asked) for topic in knowledge().topics.values())


def speaks_of_price(sentence: str, currency: str = "") -> bool:
    """Whether a sentence holds a number beside money, or one that looks like a price."""
    cues = knowledge()
    words = [word.casefold() for word in _WORD.findall(sentence)]
    money = _money(currency)
    numbers = [at for at, word in enumerate(words) if _is_number(word)]
    near = {words[place] for at in numbers for place in (at - 1, at + 1) if 0 <= place < len(words)}
    priced = bool(numbers) and not cues.priced.isdisjoint(words)
    return priced or not money.isdisjoint(near) or bool(patterns.BARE_PRICE.search(sentence))


def is_money(words: str, currency: str = "") -> bool:
    """Whether words name money and nothing else: "two coins"."""
    found = set(_WORD.findall(words.casefold()))
    return bool(found) and found <= _money(currency) | knowledge().dull


def _money(currency: str) -> frozenset[str]:
    own = {form for word in _WORD.findall(currency) for form in _forms(word.casefold())}
    return knowledge().money | (own - knowledge().dull)


def has_number(sentence: str) -> bool:
    """Whether a text has a number, in digits or words."""
    return any(_is_number(word.casefold()) for word in _WORD.findall(sentence))


def whole_number(word: str) -> int:
    """A number up to ninety-nine in digits or one word; 0 for any other word."""
    return int(word) if word.isdecimal() else UNITS.get(word, TENS.get(word, 0))


def _forms(word: str) -> Iterable[str]:
    return word, f"{word}s", word.removesuffix("s")


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _NUMBERS


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its ending: `stores`, `stored` and `storing` are one."""
    word = knowledge().irregular.get(word.casefold(), word.casefold())
    return word if word.endswith("ss") else patterns.ENDING.sub("", word)


def respelled(text: str) -> str:
    """A text in which `feedin'` is `feeding`, and `whats` is `what's`."""
    return patterns.NO_MARK.sub(r"\1's", patterns.DROPPED_G.sub("g", text))


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """The stems of the words of a text, in order."""
    return tuple(stem(word) for word in _WORD.findall(respelled(text)))


@lru_cache(maxsize=4096)
def _row_of(text: str) -> str:
    """The stems of a text as a row that `_pattern` reads, with its ends marked."""
    return " ".join(("<", *stems(text), ">", ""))


@cache
def dull_stems() -> frozenset[str]:
    return frozenset(map(stem, knowledge().dull))


def says(text: str, phrases: Phrases) -> int:
    """How often a text has one of the phrases."""
    return len(_pattern(phrases).findall(_row_of(text)))


@cache
def _pattern(phrases: Phrases) -> re.Pattern[str]:
    """Matches a row of stems that holds one of the phrases. Only where a word begins are they
    tried."""
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(_row, phrases))})(?!\S)")


def _row(phrase: str) -> str:
    parts, gap = "", ""
    for word in phrase.split():
        if word == "*":
            gap = r"(?:\S+ ){0,4}"
            continue
        options = "|".join(re.escape(w if w in "<>" else stem(w)) for w in word.split("|"))
        parts += (" " if parts else "") + gap + f"(?:{options})"
        gap = ""
    return parts

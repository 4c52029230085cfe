"""What a merchant can tell about goods: the fact that answers a question, or the description.

No model is asked. Which fact answers is a matter of scores: `told` takes any function that gives
each text one for a question. The one here counts words that both share, and topics: a question
that asks `where ... from` is about origin, and so is a fact with `from` in it (`knowledge.yaml`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

from haggle.core.config import Record, load_config
from haggle.core.text import clean_utterance
from haggle.language.english.cues import Words
from haggle.language.english.numbers import TENS, UNITS
from haggle.language.reading import Reading
from haggle.trade.world import Item

MAX_TOLD = 200
TOPIC = 2.0  # what a topic of the question is worth in a text; a word that only it shares is 1
AGAIN = 0.25  # what each further phrase of the same topic adds
Score = Callable[[str, Sequence[str]], Sequence[float]]

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_NEXT_QUESTION = re.compile(
    r"(?<=[.!?])\s+|,?\s+and\s+(?=(?:is|are|does?|did|can|will|would|has|have|how|what|which|who|where|when)\b)",
    re.IGNORECASE,
)
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e|y)$")
_DROPPED_G = re.compile(r"(?<=\w\win)['’](?!\w)")
_SIGN = r"[$€£¥]|%"
_NUMBER = r"\d+(?:[.,]\d+)*"
_BARE_PRICE = re.compile(
    rf"\b(?:for|at|only|just|is|are)\s+{_NUMBER}\s*(?:each|apiece|[.,;!?]|$)"
    rf"|(?:{_SIGN})\s*\d|\d\s*(?:{_SIGN})|\d[.,]\d\d(?!\d)(?!\s*\w)",
    re.IGNORECASE,
)


class Topic(Record):
    """Something that goods are asked about: phrases of questions, and of facts that answer them."""

    asked: list[str]
    told: list[str]


class Knowledge(Record):
    """`knowledge.yaml`, which says what each list is for."""

    topics: dict[str, Topic]
    general: list[str]
    deals: list[str]
    prices: list[str]
    measures: list[str]
    asking: list[str]
    goods: list[str]
    comparing: list[str]
    others: list[str]
    irregular: dict[str, str]
    dull: Words
    idle: Words
    ruling_out: Words
    no_goods: Words
    needing: list[str]
    ordering: list[str]
    adding: list[str]
    joining: list[str]
    returning: list[str]
    staying: list[str]
    changing_all: list[str]
    kinds: dict[str, Words]
    conditions: dict[str, Words]
    putting_back: list[str]
    unwanted: list[str]
    haggling: list[str]
    counting: Words
    paying: list[str]
    bidding: list[str]
    bid_for: list[str]
    purse: list[str]
    referring: list[str]
    money: Words
    priced: Words


@cache
def knowledge() -> Knowledge:
    """The phrases of `haggle/trade/knowledge.yaml`."""
    return load_config(Path(__file__).with_name("knowledge.yaml"), Knowledge)


def told(
    item: Item,
    question: str,
    score: Score | None = None,
    *,
    currency: str = "",
    heard: Callable[[str], bool] = lambda text: False,
) -> str:
    """What to say about an item that a player asks about; "" where nothing (more) is known of it.

    The fact with the best score, or where none has any the description's first sentences: at most
    200 characters, cut at the end of a sentence. Sentences that speak of a price are left out. Who
    asks on wants something else, so what was `heard` is not told again.
    """

    asked = _without_name(_asking(clean_utterance(question)), item)
    sentences = _SENTENCE_END.split(item.description)
    facts, said = ([_sayable(t, currency) for t in texts] for texts in (item.facts, sentences))
    for asking in (asked, _without_name(clean_utterance(question), item)):
        for known in (lambda text: not heard(text), lambda text: True):  # what answers, again
            answer = _answering(asking, filter(known, facts), filter(known, said), score)
            if answer:
                return answer
    rest = (_sayable(item.description, currency), _shortened(" ".join(filter(None, facts))))
    return next((text for text in rest if text and not heard(text)), "")


def _sayable(text: str, currency: str) -> str:
    return _shortened(_without_prices(text, currency))


def _answering(asked: str, facts: Iterable[str], said: Iterable[str], score: Score | None) -> str:
    """The fact or sentence that answers a question; "" where none does."""
    facts = [text for text in facts if text]
    scores = (score or by_words)(asked, facts) if facts else ()
    best = max(range(len(facts)), key=lambda n: scores[n], default=None)
    found = facts[best] if best is not None and scores[best] > 0 else ""
    if _shared(asked, found):
        return found
    near = next((text for text in said if text and _shared(asked, text)), "")
    return near or found


def _shared(question: str, text: str) -> bool:
    """Whether a text has a telling word of the question."""
    return not (set(_stems(question)) - _dull()).isdisjoint(_stems(text))


def questions(line: str) -> list[str]:
    """The questions of a line, one by one; the line itself where it has no question mark."""
    asking = [part for part in _SENTENCE_END.split(clean_utterance(line)) if "?" in part]
    return [part for text in asking for part in _NEXT_QUESTION.split(text)] or [line]


def answers(item: Item, question: str, heard: Callable[[str], bool]) -> bool:
    """Whether anything that is known of an item, and was not heard yet, speaks of what is asked."""
    texts = [t for t in (*item.facts, *_SENTENCE_END.split(item.description)) if not heard(t)]
    asked = _without_name(_asking(clean_utterance(question)), item)
    return max(by_words(asked, texts), default=0.0) > 0


def by_words(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers a question: topics of the question that it speaks of, and words
    that it shares, which count the less the more of the texts have them."""
    asked = [topic for topic in knowledge().topics.values() if _says(question, topic.asked)]
    words = set(_stems(question)) - _dull()
    owners = Counter(stem for text in texts for stem in set(_stems(text)))
    return [
        sum(_weight(_says(text, topic.told)) for topic in asked)
        + sum(1 / owners[stem] for stem in words & set(_stems(text)))
        for text in texts
    ]


def _weight(hits: int) -> float:
    return TOPIC + AGAIN * (hits - 1) if hits else 0.0


def asks_about_goods(line: str, reading: Reading, *, on_topic: bool = False) -> bool:
    """Whether a line asks what goods are like: not for their price, stock or availability, not for
    the total, and not about other things. `reading` is the reading of the line; `on_topic` asks for
    a question about one of the topics."""
    sentences = _SENTENCE_END.split(clean_utterance(line))
    return any(_asks_about_goods(sentence, reading, on_topic) for sentence in sentences)


def asks_for_price(line: str) -> bool:
    """Whether a line asks what goods cost, or for less."""
    return bool(_says(line, knowledge().prices)) and not _says(line, knowledge().measures)


def asks_what_it_costs(part: str) -> bool:
    """Whether a sentence asks for a price, not only has a word of prices: "to lower me down"."""
    return asks_for_price(part) and ("?" in part or bool(_says(part, knowledge().asking)))


def asks_for_goods(line: str, *, named: bool) -> bool:
    """Whether a line asks what there is or tells a need; with `named` goods any question does."""
    return (named and "?" in line) or tells_a_need(line)


def compares(line: str) -> bool:
    """Whether a line asks how goods differ."""
    return bool(_says(line, knowledge().comparing))


def tells_a_need(sentence: str) -> bool:
    """Whether a sentence tells a need, or asks what there is."""
    return bool(_says(sentence, knowledge().needing))


def orders(line: str) -> bool:
    """Whether a line has words of an order in it."""
    return bool(_says(line, knowledge().ordering)) or has_number(line)


def adds(line: str) -> bool:
    """Whether a line has words for something in addition."""
    return bool(_says(line, knowledge().adding))


def adds_or_joins(line: str) -> bool:
    """Whether a line may put something beside other things."""
    return bool(_says(line, (*knowledge().adding, *knowledge().joining)))


def goes_back(line: str) -> bool:
    """Whether a line has words for an earlier order: "as it was", "put it back"."""
    return bool(_says(line, knowledge().returning))


def stays(clause: str) -> bool:
    """Whether words tell that goods stay in an order."""
    return bool(_says(clause, knowledge().staying))


def takes_all(line: str) -> bool:
    """Whether a line changes the numbers of a whole order."""
    return bool(_says(line, knowledge().changing_all))


def does_not_want(clause: str) -> bool:
    """Whether a clause says that something is not wanted."""
    return bool(_says(clause, knowledge().unwanted))


def puts_back(clause: str) -> bool:
    """Whether words tell to take goods out of an order."""
    return bool(_says(clause, knowledge().putting_back))


def haggles(line: str) -> bool:
    """Whether a line can be about a lower price."""
    return bool(_says(line, knowledge().haggling)) or has_number(line)


def refers(line: str) -> bool:
    """Whether a line may mean goods that it does not name: by a pronoun, a number, an order."""
    return bool(_says(line, knowledge().referring)) or has_number(line)


def asks_for_a_deal(sentence: str) -> bool:
    """Whether a sentence asks for price, stock, total or availability, or orders."""
    cues = knowledge()
    other = _says(sentence, (*cues.measures, *cues.comparing))
    return bool(_says(sentence, cues.deals)) and not other


def _asks_about_goods(sentence: str, reading: Reading, strictly: bool) -> bool:
    cues = knowledge()
    if not ("?" in sentence or _says(sentence, cues.asking)):
        return False
    if asks_for_a_deal(sentence):
        return False
    on_topic = any(_says(sentence, topic.asked) for topic in cues.topics.values())
    if strictly and not on_topic:
        return False
    if reading.mentions:
        return (
            on_topic or compares(sentence) or not has_number(sentence)
        )  # "is 50 all right for the axe?" is a bid
    return on_topic and bool(_says(sentence, cues.goods)) and not _says(sentence, cues.others)


def speaks_of_price(sentence: str, currency: str = "") -> bool:
    """Whether a sentence holds a number beside money, or one that looks like a price."""
    cues = knowledge()
    words = [word.casefold() for word in _WORD.findall(sentence)]
    money = _money(currency)
    numbers = [at for at, word in enumerate(words) if _is_number(word)]
    near = {words[place] for at in numbers for place in (at - 1, at + 1) if 0 <= place < len(words)}
    priced = bool(numbers) and not cues.priced.isdisjoint(words)
    return priced or not money.isdisjoint(near) or bool(_BARE_PRICE.search(sentence))


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
    return (
        word[0].isdigit() or word in UNITS or word in TENS or word in {"hundred", "half", "dozen"}
    )


def _without_prices(text: str, currency: str) -> str:
    sentences = _SENTENCE_END.split(text)
    return " ".join(s for s in sentences if s and not speaks_of_price(s, currency))


def _asking(line: str) -> str:
    """The sentences of a line that ask; all where none has a question mark."""
    asking = [sentence for sentence in _SENTENCE_END.split(line) if "?" in sentence]
    return " ".join(asking) or line


def _without_name(question: str, item: Item) -> str:
    """A question without the item's name, which says nothing about what is asked: its last word,
    and others of it before that."""
    name = [re.escape(stem) for stem in _stems(item.item_name.partition(" (")[0])]
    if not name:
        return question
    named = rf"\b(?:(?:{'|'.join(name)})\w{{0,3}}\s+)*(?:{name[-1]}\w{{0,3}}|{name[0]}y? ones?)\b"
    return re.sub(named, "it", question, flags=re.IGNORECASE)


def _shortened(text: str) -> str:
    """As many sentences as fit; of a first one that is too long as many words as fit."""
    if len(text) <= MAX_TOLD:
        return text
    ends = [match.start() for match in _SENTENCE_END.finditer(text, 0, MAX_TOLD + 2)]
    if ends and ends[0] <= MAX_TOLD:
        return text[: max(end for end in ends if end <= MAX_TOLD)]
    cut = text[: MAX_TOLD - 3]
    return cut.rpartition(" ")[0].rstrip(" ,;:-") + "..." if " " in cut else cut + "..."


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its ending: `stores`, `stored` and `storing` are one."""
    word = knowledge().irregular.get(word.casefold(), word.casefold())
    return word if word.endswith("ss") else _ENDING.sub("", word)


def with_g(text: str) -> str:
    """A text in which `feedin'` is `feeding`."""
    return _DROPPED_G.sub("g", text)


def _stems(text: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(with_g(text))]


@cache
def _dull() -> frozenset[str]:
    return frozenset(map(stem, knowledge().dull))


def _says(text: str, phrases: Sequence[str]) -> int:
    """How often a text has one of the phrases."""
    return len(_pattern(tuple(phrases)).findall(" ".join(["<", *_stems(text), ">", ""])))


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Matches a row of stems that holds one of the phrases."""
    return re.compile("|".join(rf"(?<!\S){_row(phrase)}(?!\S)" for phrase in phrases))


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

"""What a merchant can tell about goods: the fact that answers a question, or the description.

No language model is asked. `told` counts words that both share, and topics: a question that asks
`where ... from` is about origin, and so is a fact with `from` in it (`knowledge.yaml`). `nearest`
takes any function that says how near texts are to a line in meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from haggle.core.text import clean_utterance
from haggle.trade.knowledge import (
    SENTENCE_END,
    asks_for_a_deal,
    asks_what_it_costs,
    dull_stems,
    knowledge,
    says,
    speaks_of_price,
    stems,
    tells_a_need,
    unled,
)
from haggle.trade.language import patterns
from haggle.trade.world import Item

MAX_TOLD = 200
MOST = 2  # questions of a line that are answered one by one
TOPIC = 2.0  # what a topic of the question is worth in a text; a word that only it shares is 1
AGAIN = 0.25  # what each further phrase of the same topic adds
NEAR = 0.2  # nearness in meaning under which a sentence answers nothing
AGAIN_APART = 0.1  # how much nearer what was heard already must be to be told again
ON_TOPIC = 0.4  # how near a sentence on a topic of the question is at least
SURE = 0.35  # nearness under which a sentence is only told as all there is to tell
Score = Callable[[str, Sequence[str]], Sequence[float]]


def told(
    item: Item,
    question: str,
    *,
    currency: str = "",
    heard: Callable[[str], bool] = lambda text: False,
) -> str:
    """What to say about an item that a player asks about; "" where nothing (more) is known of it.

    The fact with the best score, or where none has any the description's first sentences: at most
    200 characters, cut at the end of a sentence. Sentences that speak of a price are left out. Who
    asks on wants something else, so what was `heard` is not told again.
    """

    asked = without_name(_asking(clean_utterance(question)), item)
    sentences = SENTENCE_END.split(item.description)
    facts, said = ([_sayable(t, currency) for t in texts] for texts in (item.facts, sentences))
    for asking in (asked, without_name(clean_utterance(question), item)):
        for known in (lambda text: not heard(text), lambda text: True):  # what answers, again
            answer = _answering(asking, filter(known, facts), filter(known, said))
            if answer:
                return answer
    rest = (_sayable(item.description, currency), _shortened(" ".join(filter(None, facts))))
    return next((text for text in rest if text and not heard(text)), "")


def described(item: Item, currency: str) -> str:
    """What goods are, by their description."""
    return _sayable(item.description, currency)


def in_short(item: Item) -> str:
    """What goods are, as a line is compared with it."""
    return f"{item.item_name}. {item.description}"


def in_full(item: Item) -> str:
    """All that is known of goods, as a line is compared with it."""
    return " ".join((f"{item.item_name}.", item.description, *item.facts))


def known_of(item: Item, currency: str) -> list[str]:
    """Every text on an item that a line may be compared with."""
    return [in_short(item), in_full(item), *compared(item, currency)]


def compared(item: Item, currency: str) -> list[str]:
    """The sentences on an item, each with its name, as a question is compared with them."""
    return _of(item, _texts(item, currency))


def _texts(item: Item, currency: str) -> list[str]:
    texts = [_sayable(t, currency) for t in (*item.facts, *SENTENCE_END.split(item.description))]
    return list(dict.fromkeys(filter(None, texts)))


def _of(item: Item, texts: Sequence[str]) -> list[str]:
    return [f"{item.item_name}. {text}" for text in texts]


def nearest(
    item: Item,
    line: str,
    near: Score,
    *,
    currency: str = "",
    heard: Callable[[str], bool] = lambda text: False,
) -> tuple[float, str]:
    """The one or two sentences about an item that are nearest in meaning to a line, and how near;
    "" where none is near enough, or `near` cannot tell. What speaks of a topic of the line comes
    first. What was `heard` already is told again only where nothing else comes close."""
    texts = _texts(item, currency)
    asked = [part for part in questions(line) if not asks_what_it_costs(part)]
    asked = ([part for part in asked if not asks_for_a_deal(part)] or asked)[:MOST]
    if len(asked) == 1 and "?" in line:
        best, told = _nearest(item, asked[0], texts, _beside(near, line), heard)
    else:
        best, told = _nearest(item, line, texts, near, heard)
    if len(asked) > 1:
        each = [_nearest(item, part, texts, near, lambda text: False) for part in asked]
        firsts = list(dict.fromkeys(sentences[0] for _, sentences in each if sentences))
        best = max(best, *(score for score, _ in each))
        told = firsts if len(firsts) > 1 else list(dict.fromkeys((*told[:1], *firsts, *told)))
    while len(told) > 1 and sum(map(len, told)) > MAX_TOLD:
        told.pop()
    return best, " ".join(map(ended, told))


def _beside(near: Score, line: str) -> Score:
    """Nearness to a question and to its whole line, half and half: what stands beside the question
    may tell more, or lead astray."""

    def score(question: str, texts: Sequence[str]) -> list[float]:
        return [
            (own + all_) / 2
            for own, all_ in zip(near(question, texts), near(line, texts), strict=True)
        ]

    return score


def _nearest(
    item: Item, line: str, texts: Sequence[str], near: Score, heard: Callable[[str], bool]
) -> tuple[float, list[str]]:
    """The nearness of the best of some sentences, and the best of them: at most three."""
    scores = near(line, _of(item, texts))
    found = sorted(zip(scores, texts, strict=False), key=lambda pair: -pair[0])
    found = [(score, text) for score, text in found if score >= NEAR]
    if not found:
        return 0.0, []
    best, nearest_of_all = found[0]
    new = [(score, text) for score, text in found if not heard(text)]
    found = new if new and new[0][0] > best - AGAIN_APART else found
    told = [text for _, text in found[:2]]
    topics = by_words(without_name(_asking(clean_utterance(line)), item), texts)
    topic, _, text = max(zip(topics, scores, texts, strict=True), key=lambda row: row[:2])
    again = text == nearest_of_all  # nothing else can be meant
    if topic >= TOPIC and (again or not heard(text)) and not tells_a_need(line):
        return max(best, ON_TOPIC), list(dict.fromkeys((text, *told)))
    return best, told


def ended(text: str) -> str:
    """A text with a mark at its end."""
    return text if text[-1] in ".!?" else f"{text}."


def _sayable(text: str, currency: str) -> str:
    return _shortened(_without_prices(text, currency))


def _answering(asked: str, facts: Iterable[str], said: Iterable[str]) -> str:
    """The fact or sentence that answers a question; "" where none does."""
    facts, said = [text for text in facts if text], [text for text in said if text]
    scores = dict(zip([*facts, *said], by_words(asked, [*facts, *said]), strict=True))
    found = max(facts, key=scores.__getitem__, default="")
    found = found if scores.get(found, 0.0) > 0 else ""
    on_topic = scores.get(found, 0.0) >= TOPIC and not tells_a_need(asked)
    clearer = max(said, key=scores.__getitem__, default="")
    if on_topic and scores.get(clearer, 0.0) > scores[found] and _shared(asked, clearer):
        return clearer
    if _shared(asked, found) or on_topic:
        return found
    near = next((text for text in said if _shared(asked, text)), "")
    return near or found


def _shared(question: str, text: str) -> bool:
    """Whether a text has a telling word of the question."""
    return not (set(stems(question)) - dull_stems()).isdisjoint(stems(text))


def questions_in(line: str) -> list[str]:
    """The questions of a line, one by one, without what only leads to them; where none has its
    mark, those that begin as one. Empty where nothing does."""
    sentences = SENTENCE_END.split(clean_utterance(line))
    asking = [unled(part) for part in sentences if "?" in part]
    if not asking:
        asking = [part[m.end() :] for part in sentences if (m := patterns.UNMARKED.search(part))]
    return [part for text in asking for part in patterns.NEXT_QUESTION.split(text)]


def questions(line: str) -> list[str]:
    """The questions of a line; the line itself where nothing in it begins as a question."""
    return questions_in(line) or [line]


def answers(item: Item, question: str, heard: Callable[[str], bool]) -> bool:
    """Whether anything that is known of an item, and was not heard yet, speaks of what is asked."""
    texts = [t for t in (*item.facts, *SENTENCE_END.split(item.description)) if not heard(t)]
    asked = without_name(_asking(clean_utterance(question)), item)
    return max(by_words(asked, texts), default=0.0) > 0


def by_words(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers a question: topics of the question that it speaks of, and words
    that it shares, which count the less the more of the texts have them."""
    asked = [topic for topic in knowledge().topics.values() if says(question, topic.asked)]
    words = set(stems(question)) - dull_stems()
    told = [set(stems(text)) for text in texts]
    owners = Counter(stem for said in told for stem in said)
    return [
        sum(_weight(says(text, topic.told)) for topic in asked)
        + sum(1 / owners[stem] for stem in words & said)
        for text, said in zip(texts, told, strict=True)
    ]


def _weight(hits: int) -> float:
    return TOPIC + AGAIN * (hits - 1) if hits else 0.0


def _without_prices(text: str, currency: str) -> str:
    sentences = SENTENCE_END.split(text)
    return " ".join(s for s in sentences if s and not speaks_of_price(s, currency))


def _asking(line: str) -> str:
    """The sentences of a line that ask; all where none has a question mark."""
    asking = [sentence for sentence in SENTENCE_END.split(line) if "?" in sentence]
    return " ".join(asking) or line


def without_name(question: str, item: Item) -> str:
    """A question without the item's name, which says nothing about what is asked: its last word,
    and others of it before that."""
    name = [re.escape(stem) for stem in stems(item.item_name.partition(" (")[0])]
    if not name:
        return question
    last = rf"(?:{name[-1]}\w{{0,3}}|{name[0]}y? {patterns.ONE})"
    named = rf"\b(?:(?:{'|'.join(name)})\w{{0,3}}\s+)*{last}\b"
    return re.sub(named, patterns.IT, question, flags=re.IGNORECASE)


def _shortened(text: str) -> str:
    """As many sentences as fit; of a first one that is too long as many words as fit."""
    if len(text) <= MAX_TOLD:
        return text
    ends = [match.start() for match in SENTENCE_END.finditer(text, 0, MAX_TOLD + 2)]
    if ends and ends[0] <= MAX_TOLD:
        return text[: max(end for end in ends if end <= MAX_TOLD)]
    cut = text[: MAX_TOLD - 3]
    return cut.rpartition(" ")[0].rstrip(" ,;:-") + "..." if " " in cut else cut + "..."

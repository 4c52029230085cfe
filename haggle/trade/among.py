"""Which of the goods in view a line speaks of: "the long black ones", "which of those"."""

from __future__ import annotations

from collections.abc import Sequence

from haggle.core.text import clean_utterance
from haggle.trade.knowledge import (
    adds,
    asks_about_goods,
    asks_for_a_deal,
    asks_for_the_sum,
    asks_what_it_costs,
    does_not_want,
    has_number,
    orders,
    puts_back,
    refers,
    removes,
    stems,
    tells_a_need,
    unled,
    wants,
)
from haggle.trade.language import patterns
from haggle.trade.session import Session
from haggle.trade.telling import (
    NEAR,
    Score,
    by_words,
    nearest,
    questions,
    questions_in,
    without_name,
)
from haggle.trade.world import Item

LATELY = 4  # turns whose goods are remembered
MOST = 4  # goods that may be chosen from without naming them
MOST_REFUSED = 2  # goods in view that one remark turns down, or that are told of at once
APART = 0.05  # how much nearer one good must be for a question to be about it alone


def chooses(session: Session, line: str) -> bool:
    """Whether a line speaks of one or some of several goods in view, or seen lately."""
    said = clean_utterance(line).casefold()
    match = patterns.OF_THOSE.search(said)
    bare = match is not None and match[1] and not match[2]  # "that one" is the only one in view
    if match is None or (bare and len(session.in_view()) == 1):
        return False
    return len(choices(session)) > 1


def choices(session: Session) -> list[Item]:
    """The goods that a line may choose from: those in view, or where that is one those of the last
    turns."""
    view = session.world.known(session.in_view())
    past = " ".join(f"{e.answer} {e.outcome}" for e in session.exchanges[-LATELY:])
    seen = [item for item in session.world.inventory if item.item_name in past]
    return view if len(view) > 1 or len(seen) > MOST else seen or view


def asked_about(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods, named or in view, that a line asks about and does not order."""
    named = session.named(line)
    if asks_about_goods(line, session.read(line)):
        return named
    if "?" not in line or any(map(asks_for_a_deal, questions(line))):
        return frozenset()
    items = [session.world.by_id[i] for i in named] or session.world.known(session.in_view())
    near = session.linker.nearness
    return frozenset(item.item_id for item in items if nearest(item, line, near)[0] >= NEAR)


def told_parts(line: str) -> list[str]:
    """The parts of a line that ask nothing."""
    return [part for part in patterns.ASKING_PART.split(clean_utterance(line)) if "?" not in part]


def only_asked(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line speaks of in questions alone: "two belts, and what is the narrow
    one made of?" What is asked for nothing is asked about as well."""
    asked: set[str] = set()
    others: set[str] = set()
    for part in patterns.ASKING_PART.split(clean_utterance(line)):
        named = session.named(part, sure=False)
        if only_asks(session, part):
            asked |= named
        elif named and named <= asked and not (wants(part) or has_number(part)):
            continue  # "I asked about the pots. The clay ones"
        elif named:
            others |= named
        elif asked and (has_number(part) or refers(part)):
            return frozenset()  # "is the axe any good? I take one"
        elif has_number(part):  # "two. Is it a good axe?"
            others |= {item.item_id for item in session.world.known(session.in_view())}
    return frozenset(asked - others)


def only_asks(session: Session, part: str) -> bool:
    """Whether a part of a line asks about goods and orders none: "could I have two?" does."""
    priced = asks_what_it_costs(part)
    summed = asks_for_the_sum(part)
    if "?" not in part:
        if asking := patterns.WAS_ASKING.search(part):  # "two, and I want to know why" orders
            return not (
                orders(part[: asking.start()]) or patterns.TAKING.search(part[asking.end() :])
            )
        return priced and not (orders(part) or adds(part))
    supposed = priced and patterns.SUPPOSING.search(part) and not (summed or puts_back(part))
    if supposed or patterns.FOR_FREE.search(part):
        return True
    if patterns.BRIEFLY.search(part) and _not_in_view(session, part):
        return not has_number(without_ones(part))
    part = unled(part)
    counts = any((mention.quantity or 0) > 1 for mention in session.read(part).mentions)
    ordering = wants(part) or (counts and not priced)
    asks = patterns.ASKS.search(part) or (patterns.TAG.search(part) and not removes(part))
    return bool(asks) and not ordering and not summed


def kept_by_a_question(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods in the cart that a line names in questions alone, and changes nowhere else:
    "and you are sure there are no nuts in the cola?" """
    asked: set[str] = set()
    named = session.named(line, sure=False) & session.cart.keys()
    for part in patterns.ASKING_PART.split(clean_utterance(line)) if named else ():
        named = session.named(part, sure=False)
        number = has_number(without_ones(part)) and not asks_what_it_costs(part)
        changes = (
            number or adds(part) or puts_back(part) or patterns.CHANGES.search(part.casefold())
        )
        begs = patterns.BEGS.search(part.casefold())
        asks = only_asks(session, part) or ("?" in part and not (begs or wants(part)))
        if asks and not (changes or does_not_want(part)):
            asked |= named
        elif named or changes or (removes(part) and patterns.PRONOUN.search(part.casefold())):
            return frozenset()
    return frozenset(asked & session.cart.keys())


def remembered(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line names in remarks about the past alone: "my uncle bought a rope
    here last year"."""
    past: set[str] = set()
    others: set[str] = set()
    said = clean_utterance(line)
    if not (patterns.LONG_AGO.search(said) or patterns.OTHERS_HAD.search(said)):
        return frozenset()
    for part in patterns.CLAUSE_OF_STORY.split(said):
        told = patterns.LONG_AGO.search(part) or patterns.OTHERS_HAD.search(part)
        wanted = patterns.TAKING.search(part) or patterns.WANTING_NOW.search(part)
        named = session.named(part, sure=False)
        if past and not named and wants(part):
            return frozenset()  # "he bought a rope last year. Now I need two more"
        (past if told and not wanted else others).update(named)
    return frozenset(past - others)


def _not_in_view(session: Session, part: str) -> bool:
    """Whether words right behind goods that were shown or told of mean none of these: "and the
    other one, please?" """
    known = session.procedure.states.get(session.last)
    if known is None or known.payload != "show":
        return False
    seen = {item.item_id for item in session.world.known(session.in_view())}
    return patterns.OTHER.search(part.casefold()) is not None or not session.named(part) & seen


def without_ones(line: str) -> str:
    """A line in which "the red one" is "the red", whose `one` counts nothing."""
    return patterns.THE_ONE.sub(r"\1", patterns.THATS_THE_ONE.sub(" ", line))


def one_of_those(session: Session, line: str) -> list[Item]:
    """The one of the goods in view, or seen lately, that a line speaks of; none where it may be
    several."""
    said = clean_utterance(line).casefold()
    such = patterns.THE_ONE.search(said)
    if (
        such is None
        or tells_a_need(line)
        or patterns.WHICH.search(said)
        or patterns.OTHER.search(said)
    ):
        return []
    ids = session.named(such[0]) or session.named(line)
    named = [session.world.by_id[i] for i in ids]
    view = choices(session)
    if len(view) < 2:
        return named if len(named) == 1 else []
    told = stems(such[2])
    hits = {item.item_id: len(set(told) & set(stems(_all_of(item)))) for item in view}
    best = [item for item in view if 0 < hits[item.item_id] == max(hits.values())]
    if not best and len(named) == 1:
        return named
    found = best if len(best) == 1 else about_alone(view, line, session.linker.nearness)
    return found if len(found) == 1 else []


def spoken_of(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line asks about, as it names them. What a question names beside a
    word that stands for goods may be a part of the question: "that lamp? does oil come with it?"
    is about the lamp; "is it the oil?" and "the oil, what is it for?" are not."""
    said = clean_utterance(line)
    told = without_use(line) if tells_a_need(line) else line
    named = frozenset() if wants_something(session, line) else session.named(told)
    if not questions_in(line):
        return named
    found: frozenset[str] = frozenset()
    parts = [part for part in questions(line) if not patterns.ECHO.match(part)]
    if not parts and (meant := _said_before(session, line)):
        return meant
    parts = parts or questions(line)
    for part in parts:
        own = session.named(without_deeds(part))
        before: frozenset[str] = frozenset()
        if (pronoun := patterns.STANDS_FOR.search(part)) and not patterns.IS_IT.match(part):
            head = part[: pronoun.start()].rpartition(",")[0]
            topic = frozenset() if patterns.ASIDE.search(head) else session.named(head)
            before = topic or _named_last(session, said.partition(part)[0]) or found
            if not before and session.named(part, sure=False):
                before = _alone_in_view(session)
        if own and before - own:
            own = _nearer(session, own | before, part) or before
        found |= own or before
    if not found and any(by_name(session, part) for part in parts):
        return frozenset()  # "and the boots? You only told me of the coat"
    return found or (named and session.named(without_deeds(told)))


def _said_before(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line says it spoke of: "a wig? I said gloves"."""
    parts = patterns.SENTENCE_END.split(clean_utterance(line))
    return session.named(" ".join(part for part in parts if patterns.SAID_SO.search(part)))


def wants_something(session: Session, line: str) -> str:
    """The sentences of a line that tell a need for `something` and name no goods; "" where there
    are none. Goods that it speaks of beside them are not those it asks for."""
    parts = patterns.SENTENCE_END.split(clean_utterance(line))
    asking = (
        p for p in parts if patterns.SOMETHING.search(p) and not patterns.NOT_ORDERING.search(p)
    )
    needs = " ".join(filter(tells_a_need, asking))
    return needs if needs and not by_name(session, needs) else ""


def by_name(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line calls, or may call, by a word of their names."""
    mentions = session.read(without_deeds(line)).mentions
    found = (mention.candidates for mention in mentions if not mention.guessed)
    return frozenset(thing.id for things in found for thing in things)


def turned_down(session: Session, line: str) -> frozenset[str]:
    """Ids of the only goods in view, not in the cart, that a line will not have and names nowhere
    else: "no, not that one!", "that is the coat again"."""
    rest, count = patterns.NOT_THAT.subn(" ", line)
    view = {item.item_id for item in session.world.known(session.in_view())} - session.cart.keys()
    if not count or len(view) != 1 or (orders(rest) and not session.named(rest)):
        return frozenset()  # "it's me again. I'll take two"
    return frozenset(view - session.named(patterns.SOME_OTHER.sub(" ", rest)))


def without_use(line: str) -> str:
    """A line without what a need is for: "light for the boat" asks for no boat hook."""
    return patterns.USE.sub("", line)


def without_deeds(line: str) -> str:
    """A line without what goods do, which names none."""
    return patterns.DEEDS.sub(patterns.IT, line)


def _alone_in_view(session: Session) -> frozenset[str]:
    view = session.world.known(session.in_view())
    return frozenset(item.item_id for item in view) if len(view) == 1 else frozenset()


def _nearer(session: Session, ids: frozenset[str], part: str) -> frozenset[str]:
    """The one of some goods that a question is about by what is known of it, whatever its name;
    none where no one is clearly nearer."""
    items, near = [session.world.by_id[i] for i in sorted(ids)], session.linker.nearness
    scores = {i.item_id: nearest(i, without_name(part, i), near)[0] for i in items}
    first, second, *_ = sorted(scores, key=lambda i: -scores[i])
    return frozenset((first,)) if scores[first] > scores[second] + APART else frozenset()


def _named_last(session: Session, words: str) -> frozenset[str]:
    """Ids of the goods that the last of some clauses names which names any."""
    clauses = map(session.named, reversed(patterns.CLAUSE_OF_ORDER.split(words)))
    return next(filter(None, clauses), frozenset())


def likeliest(items: Sequence[Item], line: str) -> list[Item]:
    """Of some goods those of which most of a line is said: "the one that holds three men"."""
    scores = by_words(line, [_all_of(item) for item in items])
    return [item for item, score in zip(items, scores, strict=True) if score == max(scores)]


def nearest_of(items: Sequence[Item], line: str, near: Score) -> float:
    """How near the best of some goods is to a question."""
    return max((nearest(item, line, near)[0] for item in items), default=0.0)


def about_alone(items: Sequence[Item], line: str, near: Score) -> list[Item]:
    """Of some goods the one that a question is about, by what is known of them; all of them where
    no one is clearly nearer in meaning."""
    scores = [nearest(item, line, near)[0] for item in items]
    best, *others = sorted(scores, reverse=True)
    alone = others and best > others[0] + APART
    return [items[scores.index(best)]] if alone else list(items)


def _all_of(item: Item) -> str:
    return " ".join((item.item_name, item.description, *item.facts))

"""Goods that fit what a player describes: "something against rats", "my phone has no power".

A small model shows any goods to who names none. Here words decide: those of the line that an
item's name, its other names, its kind, its description or its facts have too. A word counts the
less the more goods have it. What is ruled out ("not coffee", "without a flame") counts for nothing.
Where the linker has sentence embeddings, nearness in meaning decides, and words help (`suited`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace

from haggle.core.text import clean_utterance
from haggle.trade.among import (
    LATELY,
    MOST_REFUSED,
    about_alone,
    by_name,
    choices,
    chooses,
    likeliest,
    nearest_of,
    one_of_those,
    spoken_of,
    turned_down,
    wants_something,
    without_deeds,
)
from haggle.trade.knowledge import (
    asks,
    asks_about_goods,
    asks_the_difference,
    asks_what_it_costs,
    compares,
    refers,
    tells_a_need,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import Note
from haggle.trade.lines import listed
from haggle.trade.resolve import Resolved, finish, worded
from haggle.trade.session import Session
from haggle.trade.telling import compared, in_full, questions
from haggle.trade.wanted import (
    called,
    goods_stems,
    name_stems,
    needed,
    ruled_out,
    said_stems,
)
from haggle.trade.world import Item, World

NAMED = 1.5  # what a word of a name is worth; one of a description is 1
LEAST = 0.3  # a score under which nothing is said to fit
BESIDE = 0.5  # of the best score that other goods must reach
MOST = 3  # goods that are shown so
MOST_ALIKE = 5  # goods of one kind
PLAIN = 0.42  # nearness from which a complaint tells a need without asking for anything
NEAR = 0.2  # nearness in meaning under which nothing is said to fit
APART = 0.1  # how much less near than the best other goods may be
NEIGHBOURS = 3  # sentences before a need, and behind it, that may tell more of it
WORDS = 0.05  # what a score by words is worth in nearness, as far as MOST_WORDS
MOST_WORDS = 2.0


def fitting(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome with goods on show that fit what a line describes, where it names none and the
    model would show others."""
    if not resolved.shown:
        return resolved
    shown = session.world.known(resolved.shown)
    if points_at(session, line, shown):
        return resolved
    items = _asked_for(session, line, shown) if asks(line) else []
    items = items or _described(session, line, shown)
    names = tuple(item.item_name for item in items)
    if not items or set(names) == set(resolved.shown):
        return resolved
    proposal = replace(resolved.proposal, show=names)
    told = (*resolved.interventions, "fitting")
    return finish(
        session, proposal, resolved.cart, resolved.sale_price, items, resolved.notes, told
    )


def points_at(session: Session, line: str, shown: Sequence[Item]) -> bool:
    """Whether a line asks by a pronoun alone about what is in view, and that is shown: "but what
    does it cost?", "how long does each keep tea hot?" """
    view = {item.item_id for item in session.world.known(session.in_view())}
    if {item.item_id for item in shown} != view or tells_a_need(line):
        return False
    asked = " ".join(questions(line)).casefold()
    if patterns.EACH.search(asked):
        return True
    priced = asks_what_it_costs(line) and patterns.THAT.search(asked)
    points = patterns.PRONOUN.search(asked) or priced
    return bool(points) and not session.named(line, sure=False) - view


def _asked_for(session: Session, line: str, shown: Sequence[Item]) -> Sequence[Item]:
    """The goods that a question is about by its own words: those of a kind, the one of those in
    view; `shown` where it names one of them. None where it leaves that open."""
    world = session.world
    if others := _others_wanted(session, line):
        return others
    alike = of_kind(session, line)
    fresh = patterns.ELSE.search(line.casefold()) and any(item in alike for item in shown)
    if alike and not fresh:
        several = compares(line) or tells_a_need(line)  # "what boots have you?"
        return alike[:MOST_ALIKE] if several else likeliest(alike, line)[:MOST]
    alike = _several_named(session, line, plural=True)
    if any(item in shown for item in alike):
        likely = likeliest(alike, line)
        return [item for item in alike if item in shown or item in likely][:MOST_ALIKE]
    if not compares(line) and (one := one_of_those(session, line)):
        return [*one, *_asked_beside(session, line, one)][:MOST]
    ids = spoken_of(session, line) - ruled_out(world, line)
    loosely = frozenset() if tells_a_need(line) else session.named(line, sure=False)
    loosely -= ruled_out(world, line)
    if any(item.item_id in ids for item in shown) or {i.item_id for i in shown} <= loosely:
        return shown
    return [item for i in sorted(ids) if (item := world.by_id[i]).for_sale][:MOST]


def _asked_beside(session: Session, line: str, one: Sequence[Item]) -> list[Item]:
    """Other goods that further questions of a line name: "what is the red one? And the boots?" """
    parts = [part for part in questions(line) if not patterns.THE_ONE.search(part)]
    ids = frozenset().union(*map(session.named, parts)) if "?" in line else frozenset()
    goods = map(session.world.by_id.__getitem__, sorted(ids - ruled_out(session.world, line)))
    return [item for item in goods if item.for_sale and item not in one]


def _others_wanted(session: Session, line: str) -> list[Item]:
    """The goods that fit a need for `something` which names nothing, whatever the line speaks of
    beside it; none of those in view where it turns something down: "too dear. Anything for less
    dust?" """
    if not (needs := wants_something(session, line)) or not needed(session.world, needs):
        return []
    view = session.world.known(session.in_view())
    refused = view if patterns.TURNING_DOWN.search(line) and len(view) <= MOST_REFUSED else []
    return suited(session, line, but=refused)


def _described(session: Session, line: str, shown: Sequence[Item]) -> Sequence[Item]:
    """The goods that a line describes, or that it speaks of by a pronoun; `shown` where it names
    some, or where that is a question about goods in cart or view."""
    world, near = session.world, session.linker.nearness
    ids = {item.item_id for item in shown}
    asked = " ".join(questions(line)) if "?" in line else line
    if spoken_of(session, line) - ruled_out(world, line) or by_name(session, asked) & ids:
        return shown
    kind = (by_name(session, asked) or by_name(session, line)) - ruled_out(world, line)
    if len(kind) > 1 and not ids & kind:
        return [item for item in world.inventory if item.item_id in kind][:MOST_ALIKE]
    if asks_what_it_costs(line) and (priced := _described_alone(session, line, shown)):
        return priced
    if compares(line) and len(both := choices(session)) == MOST_REFUSED:
        return both
    if chooses(session, line):
        among = choices(session)
        several = len(among) > MOST_REFUSED or not nearest_of(among, line, near)
        return suited(session, line, among)[:1] if several else about_alone(among, line, near)
    view = world.known(session.in_view())
    others = not ids <= {item.item_id for item in view}
    if view and others and "?" in line and patterns.PRONOUN.search(line.casefold()):
        meant = about_alone(view, line, near)[:MOST]
        nearer = nearest_of(shown, line, near) > nearest_of(meant, line, near)
        return shown if nearer else meant
    if _is_of_those(session, line, ids):
        if patterns.EACH.search(line.casefold()) and asks_what_it_costs(line) and len(view) > 1:
            return view[:MOST_ALIKE]
        several = compares(line) or len(view) < 2 or asks_what_it_costs(line)
        alone = [] if several else about_alone(view, line, near)
        return alone if len(alone) == 1 else shown
    return suited(session, line)


def _is_of_those(session: Session, line: str, shown: Set[str]) -> bool:
    """Whether a line asks about goods in cart or view, not for any others."""
    if tells_a_need(line) and not patterns.PRONOUN.search(line.casefold()):
        return False
    view = {item.item_id for item in session.world.known(session.in_view())}
    of_those = ("?" in line or refers(line)) and shown <= view | session.cart.keys()
    return of_those or bool(session.shown and asks_about_goods(line, session.read(line)))


def _described_alone(session: Session, line: str, shown: Sequence[Item]) -> list[Item]:
    """Goods that a line describes, where it has no word of those that would be shown."""
    scores = _by_words(session.world, line)
    if any(scores.get(item.item_id) for item in shown):
        return []
    return fits(session.world, line)[:1]


def of_kind(session: Session, line: str) -> list[Item]:
    """Goods of the kind that a line asks to choose from: "which seal stands the cold?"; what is
    like the goods in view where it asks for the other: "is there another one?"; what was not seen
    yet where it asks what else there is."""
    world, said = session.world, clean_utterance(line).casefold()
    asked = name_stems(" ".join(patterns.WHICH_KIND.findall(without_deeds(said))))
    if found := [item for item in world.inventory if asked & name_stems(item.item_name)]:
        return found
    if asks_the_difference(line) and (found := _compared(session, line)):
        return found
    if patterns.ALL_KINDS.search(said) and (found := _all_alike(session, said)):
        return found
    if patterns.ELSE.search(said) and "?" in said:
        seen = {*session.in_view(), *session.shown, *session.named(line, sure=False)}
        seen |= session.cart.keys()
        fresh = [i for i in world.inventory if not seen & {i.item_id, i.item_name}]
        return _several_named(session, line) or fresh
    other = patterns.OTHER.search(said) and not compares(line)
    return _others_alike(session, line) if other else []


def _all_alike(session: Session, said: str) -> list[Item]:
    """All goods of a kind that a line names, or else of the one in view: those whose names share a
    word with others."""
    goods = session.world.inventory
    shared = Counter(word for item in goods for word in name_stems(item.item_name))
    view = session.world.known(session.in_view())
    own = frozenset().union(*(name_stems(item.item_name) for item in view))
    kinds = frozenset(word for word, count in shared.items() if count > 1)
    kinds = (said_stems(said) & kinds) or (own & kinds)
    return [item for item in goods if kinds & name_stems(item.item_name)]


def _several_named(session: Session, line: str, *, plural: bool = False) -> list[Item]:
    """Goods that a question names by a word, or for `plural` by a plural, that all their names
    have, where it names nothing else and none of them is in view: "what do your pots cost?" """
    readings = [session.read(part) for part in questions(line)]
    named = [(m.candidates, r.line[: m.end]) for r in readings for m in r.mentions]
    things = [goods if not plural or patterns.PLURAL.search(word) else () for goods, word in named]
    ids = {thing.id for candidates in things for thing in candidates}
    view = {item.item_id for item in session.world.known(session.in_view())}
    if not asks(line) or min(map(len, things), default=0) < 2 or ids & (view | session.cart.keys()):
        return []
    return [item for item in session.world.inventory if item.item_id in ids]


def _others_alike(session: Session, line: str) -> list[Item]:
    """The goods that are like those in view, and are none of these; of two in view the one that the
    line does not name."""
    world, said = session.world, said_stems(clean_utterance(line))
    held = (world.by_id[i].item_name for i in session.cart)
    view = world.known(dict.fromkeys((*session.in_view(), *session.shown, *held)))
    named = session.named(line)
    if len(view) > 1 and len(rest := [i for i in view if i.item_id not in named]) == 1:
        return rest
    kinds = frozenset().union(*(name_stems(item.item_name) for item in view))
    others = [i for i in world.inventory if i not in view and kinds & name_stems(i.item_name)]
    return [i for i in others if said & kinds & name_stems(i.item_name)] or others


def _compared(session: Session, line: str) -> list[Item]:
    """The goods that a line compares: those that it calls by a word of their names, or the only one
    in view and those whose names have most in common with it."""
    by_id = session.world.by_id
    named = by_name(session, line)
    if len(named) > 1:
        return [by_id[i] for i in sorted(named) if by_id[i].for_sale]
    view = [by_id[i] for i in named] or session.world.known(session.in_view())
    if len(view) != 1:
        return []
    kind = name_stems(view[0].item_name)
    common = {i.item_id: len(kind & name_stems(i.item_name)) for i in session.world.inventory}
    others = [i for i in session.world.inventory if i not in view and common[i.item_id]]
    most = max((common[item.item_id] for item in others), default=0)
    return [*view, *(i for i in others if common[i.item_id] == most)] if others else []


def further(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome with goods on offer for a need that a line tells beside its order: "two ropes.
    And have you something for my knees?"""
    state = session.procedure.state(resolved.proposal.state)
    if state.clears or not session.codec.speaks_after:
        return resolved
    if state.payload == "show":
        return resolved  # those that fit are shown
    seen = {*resolved.cart, *(item.item_id for item in session.world.known(resolved.shown))}
    items = fitting_needs(session, line, seen)
    if not items:
        return resolved
    notes = (*resolved.notes, Note("also", listed([item.item_name for item in items], "or")))
    shown = tuple(item.item_name for item in items)
    return replace(
        worded(session, replace(resolved, notes=notes), resolved.proposal.say), shown=shown
    )


def fitting_needs(session: Session, line: str, met: Collection[str] = ()) -> list[Item]:
    """Goods, none of them in the cart, that fit the needs which sentences of a line tell without a
    name. A need that goods with the ids `met` fit is met by these."""
    found: dict[str, Item] = {}
    for part in patterns.NEXT_NEED.split(clean_utterance(line)):
        if not tells_a_need(part) or session.named(part, sure=False):
            continue
        fitting = {item.item_id: item for item in suited(session, part)}
        if not fitting.keys() & set(met):
            found |= fitting
    return [item for i, item in found.items() if i not in session.cart][:MOST]


def fits(world: World, line: str) -> list[Item]:
    """The goods for sale that fit a description best by their words, the best one first; none where
    none do."""
    scores = _by_words(world, line)
    return _best(world, scores, max(LEAST, BESIDE * max(scores.values(), default=0.0)))


def suited(
    session: Session, line: str, among: Sequence[Item] = (), *, but: Sequence[Item] = ()
) -> list[Item]:
    """The goods for sale, or those of some, that fit a need best: by what is meant, where the
    linker can tell, else by words. None where the line says nothing that goods could fit, and none
    of those in `but`."""
    world = session.world
    but = (*but, *(world.by_id[i] for i in turned_down(session, line)))
    items = [item for item in among or world.inventory if item not in but]
    parts = patterns.NEXT_NEED.split(line)
    at = [n for n, part in enumerate(parts) if tells_a_need(part)]
    needs = " ".join(parts[n] for n in at)
    told = needs if needed(world, needs) else " ".join(questions(line)) if among else line
    scores = _by_words(world, told)
    lines = {told}
    if at:  # what stands beside the need may tell more: "he paints. Have you something?"
        lines.add(" ".join(parts[max(0, at[0] - NEIGHBOURS) : at[-1] + 1 + NEIGHBOURS]))
    near = _near_in_meaning(session, lines, items) if needed(world, told) else []
    if not near:
        found = likeliest(among, told) if among else fits(world, told)
        return [item for item in found if item not in but]
    fit = {
        item.item_id: nearness + WORDS * min(scores[item.item_id], MOST_WORDS)
        for item, nearness in zip(items, near, strict=True)
        if item.item_id in scores
    }
    return _best(world, fit, max(NEAR, max(fit.values(), default=0.0) - APART))


def _near_in_meaning(session: Session, lines: Iterable[str], items: Sequence[Item]) -> list[float]:
    """How near each of some goods is to any of some lines: all that is known of it and the nearest
    sentence of that, half and half. Empty where the linker cannot tell."""
    near, currency = session.linker.nearness, session.world.currency
    full = [in_full(item) for item in items]
    told = [compared(item, currency) or [all_] for item, all_ in zip(items, full, strict=True)]
    best: list[float] = []
    for line in lines:
        single = [max(near(line, texts), default=0.0) for texts in told]
        found = [(a + b) / 2 for a, b in zip(near(line, full), single, strict=False)]
        best = list(map(max, best, found)) if best else found
    return best


def complained_of(session: Session, line: str) -> list[str]:
    """Names of the goods that help in what a line complains of: "I lie awake half the night". None
    that were spoken of lately; none where the linker cannot tell what is meant."""
    items = session.world.inventory
    near = dict(
        zip((i.item_name for i in items), _near_in_meaning(session, (line,), items), strict=False)
    )
    best = max(near.values(), default=0.0)
    found = sorted((n for n in near if near[n] > best - APART), key=lambda name: -near[name])
    past = " ".join(f"{e.note} {e.answer} {e.outcome}" for e in session.exchanges[-LATELY:])
    return [] if best < PLAIN or any(name in past for name in found) else found[:MOST]


def _by_words(world: World, line: str) -> dict[str, float]:
    """How well goods fit a line by the words in common, by id; none of those that it rules out."""
    wanted, refused = needed(world, line), ruled_out(world, line)
    told, owners = goods_stems(world)
    return {
        item.item_id: sum(
            (NAMED if word in called(item.item_name) else 1.0) / owners[word]
            for word in wanted & told[item.item_id]
        )
        for item in world.inventory
        if item.item_id not in refused
    }


def _best(world: World, scores: dict[str, float], least: float) -> list[Item]:
    found = [world.by_id[i] for i, score in scores.items() if score >= least]
    return sorted(found, key=lambda item: -scores[item.item_id])[:MOST]

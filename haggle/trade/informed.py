"""Questions about goods, answered with what the shop's file says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from haggle.trade.among import about_alone, one_of_those, spoken_of
from haggle.trade.bidding import only_good
from haggle.trade.fitting import of_kind, points_at
from haggle.trade.knowledge import (
    asks_about_goods,
    asks_for_a_deal,
    asks_of_others,
    asks_the_difference,
    asks_what_it_costs,
    compares,
    refers_back,
    tells_a_need,
)
from haggle.trade.ledger import Note, speak_prices, total
from haggle.trade.lines import lines
from haggle.trade.procedure import State
from haggle.trade.resolve import Resolved, finish, worded
from haggle.trade.session import Session
from haggle.trade.telling import (
    NEAR,
    ON_TOPIC,
    SURE,
    answers,
    described,
    ended,
    nearest,
    questions,
    questions_in,
    told,
)
from haggle.trade.wanted import put_back, ruled_out
from haggle.trade.world import Item

MOST = 2  # goods that are told of at once, and questions that are answered
SHORT = 160  # characters of two answers to one question
BESIDE = ON_TOPIC  # nearness from which a sentence answers a question beside an order
RECENT = 4  # turns in which nothing is told twice


def informed(
    session: Session, line: str, resolved: Resolved, *, admit: bool, show: bool = False
) -> Resolved:
    """The outcome with what is known of the goods that a line asks about.

    With `admit` the merchant also says where it knows nothing; with `show` it shows those goods
    where the model would show others.
    """
    notes = knowledge_notes(session, line, resolved.proposal.state, resolved.shown)
    notes = [note for note in notes if admit or note.kind == "told"]
    notes += price_notes(session, line, resolved) if show else []
    if notes and show and resolved.shown:
        resolved = _showing(session, line, resolved)
    notes = notes or (_introducing(session, line, resolved) if show else [])
    if not notes:
        return resolved
    return worded(
        session, replace(resolved, notes=(*resolved.notes, *notes)), resolved.proposal.say
    )


def _showing(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The answer to a question, with the goods that it is about on show."""
    items = _asked_about(session, line, resolved.shown)
    names = tuple(item.item_name for item in items)
    if set(names) <= set(resolved.shown):
        return resolved
    proposal = replace(resolved.proposal, show=names)
    told = (*resolved.interventions, "asked_about")
    return finish(
        session, proposal, resolved.cart, resolved.sale_price, items, resolved.notes, told
    )


def _introducing(session: Session, line: str, resolved: Resolved) -> list[Note]:
    """What the one or two goods on show are, or what is nearest to the line, where nothing else is
    told of them: who hears a name alone has to ask again. None who only asks for the price, and
    nothing that was told lately."""
    goods = session.world.known(resolved.shown)
    state = session.procedure.state(resolved.proposal.state)
    if state.payload != "show" or len(goods) > MOST or asks_what_it_costs(line):
        return []
    near, currency = session.linker.nearness, session.world.currency
    past, told = _told_lately(session), []
    for item in goods:
        meant = nearest(item, line, near, currency=currency, heard=past.__contains__)[1]
        text = next((t for t in (meant, described(item, currency)) if t and t not in past), "")
        if text:
            told.append(Note("told", text if len(goods) == 1 else f"{item.item_name}: {text}"))
    return told


def _told_lately(session: Session) -> str:
    return " ".join(exchange.outcome for exchange in session.exchanges[-RECENT:])


def knowledge_notes(session: Session, line: str, state: str, shown: tuple[str, ...]) -> list[Note]:
    """What there is to say of the goods that a line asks about, answered in this state. An order or
    a bid that asks as well hears what is known, if it is."""
    answering = session.procedure.state(state)
    talks = answering.payload == "show" or answering.transparent
    if not (talks or answering.payload in ("cart", "bid")):
        return []
    heard = _told_lately(session).__contains__

    needed = tells_a_need(line) and not refers_back(line)
    if len(shown) > 1 and needed and not session.named(line):
        return []  # several goods fit a need; they are shown
    items = _asked_about(session, line, shown)
    if not asks_about_goods(line, session.read(line), on_topic=not talks):
        items = _asked_all_the_same(session, line, items, answering, shown, heard)
    near, currency = session.linker.nearness, session.world.currency
    alone = len(items) == 1

    def known(item: Item) -> str:
        if talks and asks_the_difference(line) and not alone:
            return described(item, currency)
        if talks:
            score, meant = nearest(item, line, near, currency=currency, heard=heard)
            if meant:
                sure = score >= SURE or needed
                return meant if sure else lines().notes["nearest"].format(name=meant)
        return _by_words(item, line, currency, heard, more=talks and alone)

    found = [(item, known(item)) for item in items]
    if not talks and not any(text for _, text in found):
        return _beside_order(session, line)
    return [
        Note("told", text if alone else f"{item.item_name}: {text}")
        if text
        else Note("unknown", item.item_name)
        for item, text in found
        if text or talks
    ]


def _beside_order(session: Session, line: str) -> list[Note]:
    """What answers a question beside an order, where the linker can tell what it means."""
    near, currency, world = session.linker.nearness, session.world.currency, session.world
    for part in questions_in(line):
        if asks_for_a_deal(part) or asks_what_it_costs(part):
            continue
        ids = spoken_of(session, part) or spoken_of(session, line) or frozenset(session.cart)
        wanted = sorted(ids - ruled_out(world, line))
        items = [item for i in wanted if (item := world.by_id[i]).for_sale]
        told = [nearest(item, part, near, currency=currency) for item in items]
        score, text = max(told, default=(0.0, ""))
        if score >= BESIDE:
            name = items[told.index((score, text))].item_name
            return [Note("told", text if len(items) == 1 else f"{name}: {text}")]
    return []


def _asked_all_the_same(
    session: Session, line: str, items: list[Item], answering: State, shown: tuple[str, ...],
    heard: Callable[[str], bool],
) -> list[Item]:  # fmt: skip
    """Of these goods those that a line asks something of that is no known topic: "And the grammar?"
    Where the linker can tell what is near in meaning, that decides."""
    shows, marked = answering.payload == "show", bool(questions_in(line))
    if not (shows or answering.transparent):
        return []  # who asks beside an order asks what it comes to
    asked = [part for part in questions(line) if not asks_for_a_deal(part)]
    follows = shows and set(shown) <= {*session.in_view()} and not tells_a_need(line)
    asks = follows or (marked and not all(map(asks_of_others, asked)))
    if not (asked and asks):
        return []
    least = NEAR if shows else SURE  # small talk asks as well: "how are you?"
    near = session.linker.nearness
    return [
        item
        for item in items
        if (marked and answers(item, line, heard)) or nearest(item, line, near)[0] >= least
    ]


def _by_words(
    item: Item, line: str, currency: str, heard: Callable[[str], bool], *, more: bool
) -> str:
    """What answers the questions of a line, by the words that both have; with `more` the next best
    as well, where one question stands alone."""
    said: list[str] = []
    asked = questions(line)

    def once(text: str) -> bool:
        return heard(text) or text in " ".join(said)

    for part in asked[:MOST]:
        if said and not answers(item, part, once):
            continue  # the description, in place of a second answer, answers nothing
        text = told(item, part, currency=currency, heard=once)
        if text and not any(text in other or other in text for other in said):
            said.append(text)
    if more and said and len(asked) == 1:
        further = told(item, asked[0], currency=currency, heard=once)
        if further not in said[0] and len(said[0]) + len(further) < SHORT:
            said.append(further)
    return " ".join(map(ended, said))


def price_notes(session: Session, line: str, resolved: Resolved) -> list[Note]:
    """The prices that a line asks for, of goods that it names and that the answer, small talk or an
    order, does not price."""
    world, state = session.world, session.procedure.state(resolved.proposal.state)
    if not (state.payload == "cart" or state.transparent):
        return []
    asked = [part for part in questions(line) if asks_what_it_costs(part)]
    ids = frozenset().union(*map(session.named, asked)) - ruled_out(world, line)
    if asked and not ids and not resolved.cart:
        ids = frozenset(only_good(session, line))
    dealt = resolved.sale_price != total(world, resolved.cart)  # the list's prices hold no more
    alone = {i for i, number in resolved.cart.items() if number == 1 or dealt}
    priced = alone if state.priced else set()
    items = [world.by_id[i] for i in sorted(ids - priced) if world.by_id[i].for_sale]
    return [Note("told", f"{speak_prices(world, items[:MOST])}.")] if items else []


def _asked_about(session: Session, line: str, shown: tuple[str, ...]) -> list[Item]:
    """The one or two goods that a question is about: of those shown in answer the named ones, those
    named, those shown, the only one in view, or the first of these of which an answer is known."""
    world, near = session.world, session.linker.nearness
    out = ruled_out(world, line) | (put_back(world, line) & session.cart.keys())
    named = [world.by_id[i] for i in sorted(spoken_of(session, line) - out)]
    answer = [item for item in world.known(shown) if item.item_id not in out]
    view = [item for item in world.known(session.in_view()) if item.item_id not in out]
    if points_at(session, line, answer) and len(answer) <= MOST:
        return answer
    if not compares(line) and (one := one_of_those(session, line)):
        return one
    chosen = answer if of_kind(session, line) else []
    alone = len(named) == MOST and not tells_a_need(line)
    both = named if alone else [item for item in answer if item in named]
    choices = (chosen, both, named, answer, view[:2])
    if compares(line) and len(answer or view) > 1:
        return (answer or view)[:MOST]
    for most, items in zip((MOST, MOST, MOST, MOST, 1), choices, strict=True):
        known = [item for item in items if item.for_sale]
        if 1 <= len(known) <= most:
            return known if items is named else about_alone(known, line, near)
    return [item for item in view if answers(item, line, lambda text: False)][:1]

"""Count the rows of one split, one at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache, lru_cache
from typing import Any

from data_gen.bank import bank_names, load_bank
from data_gen.dataset.diversity import (
    KeySet,
    NearDuplicates,
    NGrams,
    Reservoir,
    self_bleu,
    shingles_of,
    text_key,
    words_of,
)
from data_gen.dataset.lengths import Messages, TokenLengths
from data_gen.dataset.records import (
    Duplicates,
    Lines,
    Orders,
    Shops,
    SplitStatistics,
    share,
    spread,
)
from data_gen.worlds import QUALITIES
from haggle.core.errors import HaggleError
from haggle.dataset import whole_answers
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCENARIOS
from haggle.trade.wire import UNLISTED

START = "Start"
UNKNOWN = "not recorded"
HAND_WRITTEN = "hand-written shops"
BLEU_SAMPLE = 2_000  # lines
TURN_SAMPLE = 20_000  # player lines looked through for near duplicates
TOKEN_SAMPLE = 500  # dialogues
MAX_COMPARED = 100_000  # dialogues looked through for near duplicates, the first
DIALOGUE_SHINGLE, TURN_SHINGLE = 3, 2
TURN_THRESHOLD = 0.5  # one word of eight changed

_SAMPLED_WORLD = re.compile(r"(?P<genre>.+)_[0-9a-f]{6}")
_PRICED = re.compile(r"(?P<name>\S.*) (?P<price>\d+(?:\.\d+)?)")


def source_of(row: dict[str, Any]) -> tuple[str, str]:
    """Who plays, and in what voice: `("scripted", "slang")`, `("corpus", "terse")`, `("llm", ...)`.

    Rows of before that was recorded say `not recorded`.
    """
    kind, _, rest = str(row.get("player") or "").partition("-")
    if kind == "scripted":
        return kind, rest.partition("-")[2] or UNKNOWN
    if kind:
        return kind, rest or UNKNOWN
    if str(row.get("id", "")).startswith("corpus-"):
        return "corpus", str(row["id"]).removeprefix("corpus-").partition("-")[0]
    return UNKNOWN, UNKNOWN


def genre_of(world: str) -> str:
    """The genre of a sampled shop (`arctic_4f739a`), or the name of any other shop."""
    sampled = _SAMPLED_WORLD.fullmatch(world)
    return sampled["genre"] if sampled else world


def price_list(system: str) -> list[tuple[str, float]]:
    """Items and prices as the compact prompt lists them; empty for other prompts."""
    _, heading, rest = system.partition("\nPrices in ")
    lines = rest.splitlines()[1:] if heading else []
    found = [_PRICED.fullmatch(line.strip()) for line in lines]
    return [(match["name"], float(match["price"])) for match in found if match]


@lru_cache(maxsize=65536)
def is_invented(name: str) -> bool:
    """Whether the name of an item of a sampled shop has a word that the item bank does not have."""
    words = words_of(name.replace("'s", " ").replace("’s", " "))
    return not {word.removesuffix("s") for word in words} <= _stems()


@cache
def _stems() -> frozenset[str]:
    """The words of the item bank, and of what turns an item into a variant, without a last s."""
    named = " ".join((*bank_names(), *QUALITIES)).replace("'s", " ").replace("’s", " ")
    return frozenset(word.removesuffix("s") for word in words_of(named))


class Tally:
    """The counts of a split so far."""

    def __init__(self) -> None:
        procedure = load_procedure()
        self.dialogues = self.turns = self.sales = self.copies = self.checked = 0
        self.rounds: dict[str, Counter[int]] = {}
        self.states: Counter[str] = Counter(dict.fromkeys(procedure.states, 0))
        self.acts: dict[str, Counter[str]] = {}
        self.transitions: dict[str, dict[str, Counter[str]]] = {}
        self.sources: Counter[str] = Counter()
        self.voices: Counter[str] = Counter()
        self.teachers: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()
        self.genres: Counter[str] = Counter()
        self.shops = KeySet()
        self.shop_items: Counter[int] = Counter()
        self.prices: tuple[float, float] | None = None
        self.items = self.invented = 0
        self.orders = self.unsold = self.over_stock = self.all_of = 0
        self.cart_items: Counter[int] = Counter()
        self.cart_pieces: Counter[int] = Counter()
        self.player, self.merchant = NGrams(), NGrams()
        self.player_lines: Reservoir[str] = Reservoir(TURN_SAMPLE, "player")
        self.bleu_lines: tuple[Reservoir[str], Reservoir[str]] = (
            Reservoir(BLEU_SAMPLE, "bleu/player"),
            Reservoir(BLEU_SAMPLE, "bleu/merchant"),
        )
        self.messages: Reservoir[Messages] = Reservoir(TOKEN_SAMPLE, "messages")
        self.dialogue_keys, self.corpus_keys = KeySet(), set[int]()
        self.near = NearDuplicates()
        self._sale = {critical.state for critical in procedure.critical}
        self._cart_states = {n for n, s in procedure.states.items() if s.payload == "cart"}

    def add(self, row: dict[str, Any], where: str) -> None:
        """Count one dialogue. Raises HaggleError naming the row when parts of it are missing."""
        turns, messages = check_parts(row, where)
        kind, voice = source_of(row)
        scenario = str(row.get("scenario") or UNKNOWN)
        self.dialogues += 1
        self.turns += len(turns)
        self.rounds.setdefault(scenario, Counter())[len(turns)] += 1
        self.sources[kind] += 1
        self.voices[voice] += 1
        self.teachers[str(row.get("teacher") or UNKNOWN)] += 1
        self.methods[str(row.get("method") or UNKNOWN)] += 1
        self.messages.add(messages)
        self._count_states(turns, scenario, kind)
        self._count_shop(str(row.get("world") or UNKNOWN), kind, messages)
        self._count_orders(turns, messages)
        self._count_lines(turns, kind)

    def _count_states(self, turns: list[dict[str, Any]], scenario: str, kind: str) -> None:
        matrix = self.transitions.setdefault(scenario, {})
        previous = START
        for turn in turns:
            state = turn["state"]
            self.states[state] += 1
            self.acts.setdefault(turn.get("act") or f"({kind})", Counter())[state] += 1
            matrix.setdefault(previous, Counter())[state] += 1
            previous = state
        self.sales += any(turn["state"] in self._sale for turn in turns)

    def _count_shop(self, world: str, kind: str, messages: Messages) -> None:
        self.shops.add(text_key(world))
        self.genres[HAND_WRITTEN if kind == "corpus" else genre_of(world)] += 1
        system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
        priced = price_list(system)
        if not priced:
            return
        self.shop_items[len(priced)] += 1
        if genre_of(world) in load_bank().genres:
            self.items += len(priced)
            self.invented += sum(is_invented(name) for name, _ in priced)
        prices = [price for _, price in priced]
        low, high = self.prices or (prices[0], prices[0])
        self.prices = (min(low, *prices), max(high, *prices))

    def _count_orders(self, turns: list[dict[str, Any]], messages: Messages) -> None:
        answers = whole_answers(messages)
        told = len(answers) == len(turns)
        for index, turn in enumerate(turns):
            if turn["state"] not in self._cart_states:
                continue
            cart = _json(turn.get("cart"))
            if isinstance(cart, dict):
                self.cart_items[len(cart)] += 1
                self.cart_pieces[sum(cart.values())] += 1
            answer = _json(answers[index]) if told else None
            asked = answer.get("cart") if isinstance(answer, dict) else None
            if not isinstance(asked, list) or not isinstance(cart, dict):
                continue
            self.orders += 1
            self.unsold += any(str(name).startswith(UNLISTED) for name, _ in asked)
            self.all_of += any(number == "all" for _, number in asked)
            self.over_stock += _capped(asked, list(cart.values()))

    def _count_lines(self, turns: list[dict[str, Any]], kind: str) -> None:
        spoken = []
        for turn in turns:
            spoken.append(self.player.add(turn["player"]))
            self.merchant.add(turn["npc_dialogue"])
            self.player_lines.add(turn["player"])
            self.bleu_lines[0].add(turn["player"])
            self.bleu_lines[1].add(turn["npc_dialogue"])
        key = text_key("\n".join(" ".join(words) for words in spoken))
        if kind == "corpus":  # copies are asked for in the config
            if key in self.corpus_keys:
                self.copies += 1
                return
            self.corpus_keys.add(key)
        self.checked += 1
        self.dialogue_keys.add(key)
        if self.near.seen < MAX_COMPARED:
            self.near.add(shingles_of(spoken, DIALOGUE_SHINGLE))

    def statistics(self, of: int, tokens: list[TokenLengths]) -> SplitStatistics:
        """Everything counted, of a split of `of` dialogues."""
        turns = NearDuplicates(TURN_THRESHOLD)
        for line in self.player_lines.kept:
            turns.add(shingles_of([words_of(line)], TURN_SHINGLE))
        low, high = self.prices or (None, None)
        return SplitStatistics(
            of=of,
            dialogues=self.dialogues,
            turns=self.turns,
            rounds={
                name: s for name in _scenarios(self.rounds) if (s := spread(self.rounds[name]))
            },
            with_sale=share(self.sales, self.dialogues),
            states=dict(self.states),
            acts={act: dict(self.acts[act]) for act in sorted(self.acts)},
            transitions={
                name: {a: dict(b) for a, b in self.transitions[name].items()}
                for name in _scenarios(self.transitions)
            },
            sources=_ranked(self.sources),
            voices=_ranked(self.voices),
            teachers=_ranked(self.teachers),
            methods=_ranked(self.methods),
            shops=Shops(
                different=len(self.shops),
                genres=_ranked(self.genres),
                items=spread(self.shop_items),
                lowest_price=low,
                highest_price=high,
                invented=share(self.invented, self.items),
            ),
            orders=Orders(
                unsold=share(self.unsold, self.orders),
                over_stock=share(self.over_stock, self.orders),
                all_of=share(self.all_of, self.orders),
            ),
            cart_items=spread(self.cart_items),
            cart_pieces=spread(self.cart_pieces),
            player=_lines(self.player, self.bleu_lines[0].kept),
            merchant=_lines(self.merchant, self.bleu_lines[1].kept),
            corpus_copies=self.copies,
            repeated_dialogues=share(self.checked - len(self.dialogue_keys), self.checked),
            near_dialogues=_duplicates(self.near, DIALOGUE_SHINGLE),
            near_player_turns=_duplicates(turns, TURN_SHINGLE),
            tokens=tokens,
        )


def check_parts(row: dict[str, Any], where: str) -> tuple[list[dict[str, Any]], Messages]:
    """Turns and messages of a row that has what is counted."""
    turns, messages = row.get("turns"), row.get("messages")
    for name, value in (("turns", turns), ("messages", messages)):
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise HaggleError(
                f"{name!r} is missing or no list of objects",
                where=where,
                hint="name a data set written by `haggle generate`",
            )
    for number, turn in enumerate(turns or ()):
        for key in ("player", "state", "npc_dialogue"):
            if not isinstance(turn.get(key), str):
                raise HaggleError(f"turns[{number}]: {key!r} is missing or no text", where=where)
    return turns or [], messages or []


def _json(text: Any) -> Any:
    """The value a text holds as JSON; None when it is no text or no JSON."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _capped(asked: list[Any], got: list[int]) -> bool:
    """Whether the shop had less than asked for; `got` are the quantities after the turn."""
    wanted = [number for name, number in asked if not str(name).startswith(UNLISTED)]
    if len(wanted) == len(got):
        return any(isinstance(n, int) and n > left for n, left in zip(wanted, got, strict=True))
    return all(isinstance(n, int) for n in wanted) and sum(wanted) > sum(got)


def _scenarios(found: dict[str, Any]) -> list[str]:
    return [*(s for s in SCENARIOS if s in found), *sorted(set(found) - set(SCENARIOS))]


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _lines(grams: NGrams, sample: list[str]) -> Lines:
    return Lines(
        lines=grams.lines,
        words=grams.words,
        vocabulary=grams.vocabulary,
        words_once=grams.once,
        distinct=grams.distinct(),
        different=grams.different(),
        distinct_at=grams.marks,
        repeated=share(grams.repeats, grams.lines),
        self_bleu=self_bleu(sample),
        self_bleu_sample=len(sample),
    )


def _duplicates(near: NearDuplicates, shingle: int) -> Duplicates:
    return Duplicates(threshold=near.threshold, shingle=shingle, near=share(near.found, near.seen))

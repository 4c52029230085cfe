"""How the words of `words.yaml` stand in a line: one pattern a name.

Here are shapes alone: `{name}` stands for any phrase of a list. Another language has lists of its
own, and other shapes where its words stand in another order.
"""

from __future__ import annotations

import re
from pathlib import Path

from haggle.core.config import read_mapping
from haggle.language.english.cues import CUES
from haggle.language.english.numbers import DIGITS, TENS, UNITS

_LISTS: dict[str, list[str]] = {
    name: told.split() if isinstance(told, str) else told
    for name, told in read_mapping(Path(__file__).with_name("words.yaml")).items()
}
_LISTS |= {"digits": [DIGITS], "units": list(UNITS), "spelled": [*list(UNITS)[1:], *TENS]}
_LISTS |= {"settling": CUES.settling}
_LISTS |= {"dropped": list(CUES.dropped_g), "one": sorted(CUES.such_ones, reverse=True)}


def words(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(_LISTS[name])


def filled(shape: str) -> str:
    """A regular expression with the phrases of lists in place of their names."""
    named = re.compile(r"\{([a-z_]+)\}")
    return named.sub(lambda m: f"(?:{'|'.join(map(_phrase, _LISTS[m[1]]))})", shape)


def _phrase(text: str) -> str:
    found, gap = "", ""
    for word in text.split():
        either = word.removesuffix("~")
        either = f"(?:{either})" if "|" in either else either
        if not word.endswith("~"):
            found, gap = f"{found}{gap}{either}", " "
        else:
            found += f"(?:{gap}{either})?" if gap else f"(?:{either} )?"
    return found


def _shape(shape: str) -> re.Pattern[str]:
    return re.compile(filled(shape))


def _not_behind(name: str, edge: str = "") -> str:
    return "".join(rf"(?<!{edge}{word})" for word in _LISTS[name])


# Sentences, clauses and questions.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
NEXT_QUESTION = _shape(rf"(?i){SENTENCE_END.pattern}|,?\s+{{and_n}}\s+(?={{next_question}}\b)")
TAG = _shape(r"(?i),\s*{tagged}\s*\?")  # "there's no meat in it, is there?"
# where a question without its mark begins
UNMARKED = _shape(
    r"(?i)\b{whether}\s+|(?:^|[,;:.]\s+|\b{before_unmarked}\s+)(?={unmarked}\b)"
    rf"|(?<=\w){_not_behind('not_inverted')}\s(?={{inverted}} \w)"
)
HOW = _shape(r"(?i)\b{how_is}\b")
LEADING = _shape(  # what stands before a question: "but tell me, before we shake on it, ..."
    r"(?i)^(?:(?:{opening}\b[\s,]*)*"
    r"(?:{tell_me}|{before} [^,:;?]*|{one_thing}[^,:;?]*|{by_the_way})\s*[,:;]\s*)+"
)
ASKING_PART = _shape(
    rf"(?i){SENTENCE_END.pattern}|,?\s+{{and_but}}\s+(?=(?:{{asking}}|{{tell_of}})\b)"
)
ASKS = _shape(r"(?i)(?:^|[,;:]\s*|\b{before_asking}\s+){asking}\b")
NEXT_NEED = _shape(r"(?i)(?<=[.!?;])\s+|,\s+{and}\s+(?={a}\b)|,?\s+{and}\s+(?={next_need}\b)")
PARTS = _shape(r",\s+(?:{and}\s+)?|\s+{clause_joins}\s+")
CLAUSE_OF_ORDER = _shape(r"[.,;:!?]|\b{clause_or_keep}\b|(?<=\w)\s(?={only} {the} )")
CLAUSE_OF_NUMBERS = _shape(r"[.;:!?]|,(?!\d)|\b{clause_words}\b")
CLAUSE_OF_STORY = _shape(r"[.;:!?]|,(?!\d)|\b{but_keep}\b")
CLAUSE_OF_REFUSAL = _shape(
    r"[.,;:!?()*]|\b{but_keep}\b|\s{and}\s+(?={no}\b)"
    rf"|(?<=\w){_not_behind('no_new_clause')}\s+(?={{new_clause}}\b|{{only}} {{the}} )"
    r"|(?<=\w)\s+(?={therefore} {unmarked}\b)"
)

# Words, and questions about the merchant and the place.
NOT, IT = _LISTS["not"][0], _LISTS["it"][0]
ONE, EACH_PIECE = filled("{one}"), filled(r"{piece_price}\b")
ENDING = _shape(r"(?<=\w{3}){endings}$")
DROPPED_G = _shape(r"(?<=\w\w{dropped})['’](?!\w)")
NO_MARK = _shape(r"(?i)\b({contracted})s\b")  # "whats the damage"
# "before he spots anything else"
BEFORE_ELSE = _shape(r"(?i)\b{before} (?:\w+ ){1,4}{something}\b")
THANKS = _shape(r"(?i)\b(?:{thank}\w*|{thanks})\b")
ASKS_NAME = _shape(r"(?i)\b{asks_name}\b")
ASKS_PLACE = _shape(r"(?i)\b{asks_place}\b")

# What a question is about.
STANDS_FOR = _shape(r"(?i)\b{stands_for}\b")
THAT = _shape(r"\b{this_that}\b")
ASIDE = _shape(r"(?i)\b{aside}\b")
IS_IT = _shape(r"(?i)\W*{is_it}\b")
SAID_SO = _shape(r"(?i)\b(?:{asked_for}|{meant})\b")
ECHO = _shape(  # "Rings? You misheard me." asks nothing
    r"(?i)(?!(?:{and_or} )?{asking}\b)(?:[\w'’-]+ ){0,3}[\w'’-]+(?:, {did_you_say})?\?"
)
SOMETHING = _shape(rf"(?i){_not_behind('not_needed')}\b{{something}}\b(?! {{something_of}}\b)")
DEEDS = _shape(  # "how does it ring?" speaks of no ring, "what can help?" of no can
    r"(?i)\b(?:{auxiliary} {it_they} \w+|{it_they} (?:\w+s\b|{can}\b)|{who_can} {can}\b)"
)
USE = _shape(rf"(?i){_not_behind('search_for')} {{for}} (?:{{of_place}} )?\w+")
TURNING_DOWN = _shape(r"(?i)\b(?:{turning_down}|\w+{not_ending})\b")

# Goods in view, and of a kind.
_THE_ONE = r"\b({pointing}\s+((?:[\w'’-]+\s+){0,3})){one}\b"
THE_ONE = _shape(rf"(?i){_THE_ONE}")
THATS_THE_ONE = _shape(r"(?i)\b{that_is} {the} {one}\b")
THAT_ONE = _shape(r"(?i)\b{that_one} (?:\w+ ){0,2}{one}\b")
OF_THOSE = _shape(rf"\b{{which_of}}\b|{_THE_ONE}")
WHICH = _shape(r"(?<!\S){which}(?!\S)")
WAS_ASKING = _shape(
    rf"(?i){_not_behind('denied_before')}\b{{was_asking}}\b|(?:^|[,;:]\s*|\b{{only}}\s+){{tell_of}}\b"
)
SUPPOSING = _shape(r"(?i)\b{supposing}\b")
# "and the other one?", "the boots, please?" right behind goods that were told of
BRIEFLY = _shape(
    r"(?i)(?:^|[,;:!]\s+|\b{before_asking}\s+){the} (?:[\w'’-]+ ){0,3}[\w'’-]+(?:, \w+)?\s*\?"
)
LONG_AGO, WANTING_NOW = _shape(r"(?i)\b{long_ago}\b"), _shape(r"(?i)\b{wanting_now}\b")
OTHERS_HAD = _shape(r"(?i)(?<![\w'’])(?!{not_others}\b|they\b)[a-z]+ {others_had}\b")
FOR_FREE = _shape(r"(?i)\b{for_free}\b")
WHICH_KIND = _shape(r"\b{which_kind}(?: {the_two})? ([a-z]{3,})\b")
ALL_KINDS = _shape(r"(?i)\b(?:{which_kinds} {have_you}|{all_of_kind})\b")
ELSE = _shape(rf"{_not_behind('not_else')}\b{{what_else}}\b")  # "what else have you got?"
PLURAL = _shape(r"(?i){plural_ending}$")
EACH = _shape(r"\b{each_of_them}\b")
PRONOUN = _shape(r"\b{pronouns}\b")
# "what is the cheapest thing you've got?", "the cheapest paper?"
EXTREME = _shape(rf"(?i){_not_behind('not_first')}\b(?:({{cheapest}})|{{dearest}})\b")
OF_THEM = _shape(r"(?i)^\W*(?:\w+ )?{of_them}\b")
OF_ALL = _shape(r"(?i)\b{of_all}\b")
OF_CHEAP = _shape(r"(?i)\b(\w+)(?: {more_of})? {of} (?:\w+ )?$")  # "six of the cheapest"
NOT_GOODS = _shape(r"(?i)^\W*(?:\w+ )?{not_goods}\b")
LATER_ON = _shape(r"(?i)\b{later_on}\b")
FOR_A_NEED = _shape(r"(?i)^(?: \w+){0,4} {for_a_need}\b")
ASKS_WHICH = _shape(r"(?i)\b(?:{asks_which})\b")
OTHER = _shape(rf"{_not_behind('not_other')}\b{{the_other}}\b(?!.*\b{{other_talk}}\b)[^.!]*\?")

# Goods by a name that nothing here may have.
_HAS = r"{has}|^{got}"
ASKED = (  # what is had may be no goods, so the second is heard with goods on show alone
    _shape(r"\b(?:{sells}|{you_have}(?= {maybe})) (?:{maybe_also} )?(?:{any} )?(?P<name>.+)"),
    _shape(rf"\b(?:{_HAS}) {{only_any}} (?P<name>.+)"),
)
# A sentence of its own, so heard beside an order as well.
ASKED_BRIEFLY = _shape(r"^{got} (?:{any} )?(?P<name>\S+(?: \S+)?)\?$")
HAVING = _shape(rf"(?i)\b(?:{{sells}}|{_HAS})\b")

# Prices.
LET_FOR = _shape(r"\b{letting} (?:\S+ ){1,3}{for}\s*$")
OF_GOODS = _shape(r"\s*{of_or_o}\b")  # "ten of the dark one"
COINS_OF, FOR_GOODS = filled("(?:{coins_of} (?:{of} )?)?"), filled("{for} (?:{for_goods} )?")
SUCH_ONES = _shape(r"(?:\w+ ){1,2}{one}\b")
SWAPS = _shape(r"\b(?:{exchanging}|{trading}|{turning})\b")
STOPS = _shape(r"\s*(?:$|[.,;:!?)]|{and}\b)")
BID_FOR = filled(r"{bid_for}\b")
_BEFORE = r"\s+(?:{before_bid}\s+)?$"
PAYS, HAS_MONEY = _shape(rf"\b{{paying}}{_BEFORE}"), _shape(rf"\b{{purse}}{_BEFORE}")
BIDS = _shape(rf"\b(?:{{bidding}}|{_not_behind('can_you')}{{do}}){_BEFORE}")
AND_A_DEAL = _shape(r"(?i)\s*{a_deal}\b")  # "20 and we have a deal"
BARE_PRICE = _shape(
    r"(?i)\b{before_price}\s+{digits}\s*(?:{each}|[.,;!?]|$)"
    r"|(?:[$€£¥]|%)\s*\d|\d\s*(?:[$€£¥]|%)|\d[.,]\d\d(?!\d)(?!\s*\w)"
)
_SPELLED = [*_LISTS["spelled"], *_LISTS["large_numbers"]]
BEHIND_SPELLED = "|".join(rf"(?<=\b{word})" for word in _SPELLED)
CLOCK = _shape(r"(?i)\b\d{1,2}(?::\d\d(?!\d)|(?:[:.]\d\d)?\s?(?:{clock}|[ap]\.?m)\b)")
SURELY = _shape(r"\b[1-9]\d{2,}\s*(?:%|{percent}\b)")  # "100% yes"
PERCENT = _shape(r"(\d{1,2})\s*(?:%|{percent})")
MEASURE = _shape(r"(?i)^(?:{a} )?{measured}s? {of} ")

# How many, and answers to the merchant's own question.
A_GOOD = _shape(r"(?i)\b(?:{a}|{another}|{single})\s+(?:[\w'’-]+\s+){0,3}$")
A_PIECE_OF = _shape(r"(?i)\b{one_piece}\s+(?:[\w'’-]+\s+)?$")
TAKES = _shape(  # "take four out", "lose one", "put two of them back", "two of the six can go"
    r"\b(?:{taking}(?= (?:\S+ ){1,4}{away}\b)|{dropping}"
    r"|(?:{exchanging}|{trading})(?= \S+ {of} {of_these}\b)) (?:{before_taken} )?(\d+|[a-z]+)\b"
    r"|\b(?P<passive>\d+|[a-z]+) {of} {of_these} (?:(?:\S+ ){0,3}{let_go}\b|{gone}\s*$)"
    r"|\b(?P<fewer>\d+|{units}) (?:\S+ ){0,2}{fewer}\b(?! {than})"
)
_COUNT = r"(?:\d+|{spelled}|{rough_numbers})"
MORE = _shape(rf"\b{_COUNT} {{more}}\b(?! {{than}}\b)|\b{{another}} {_COUNT} ")
ALL_TOLD = _shape(rf"\b({_COUNT}) (?:\w+ )?{{all_told}}\b")  # "eight in total", not eight more
HOW_MANY = _shape(r"(?i)\b{how_many}\b")
ONE_FOR = _shape(r"(?i)\b{one_for}\b")  # "one for me and one for her"
NOT_BETWEEN = _shape(r"(?i)[^\w.!?]*(?:\w+[^\w.!?]+){0,2}{not}\W+")  # "two, not three"
NOT_BEFORE = _shape(r"(?i)\b{not}\W+$")
BUT_BETWEEN = _shape(r"(?i)\W*(?:{but_only}\W+)?")  # "not three, but two"
SETS = _shape(rf"\b{{sets_number}}\b|\b(?:{{settling}}|{{not}}) {_COUNT}\b")
ONE_PAIR, PAIR_OF = _shape(r"(?i)\b{one_pair}\b"), _shape("{pair_of}")
A_FEW = _shape("{a_few}")
DENIED = _shape(r"\b{no}\b(?!\W+(?:\d|{spelled}\b))|\b{denied}\b|{not_ending}\b")
UNIT = _shape(r"(?<![a-z])(?<!{tens_ending}[ -])(?:{units}|{single})(?![a-z])")
YES = _shape(r"\W*{yes}\b")
NO = _shape(r"\W*(?:{exclaiming}\W+){0,2}{refusing}\b(?!\s+{no_matter})")

# Orders: what only is wanted, what goes or comes back, what is ordered.
ONLY_THESE = _shape(r"(?i)^\W*{only}\b")  # "just the wax and the vest"
ONLY = _shape(r"(?i)\b{only}\s+(?:(?:{beside_only}|\d+|{units})\s+){0,4}$")
ALONE = _shape(
    r"(?i)(?:,?\s+{only_these}|\s+{alone}|{by_itself})(?=\W*$|\W*[.,;:!?]|\s+{clause_ends}\b)"
)
YES_AND = _shape(r"(?:\W*{yes_and}\b)*\W*{and} {and_that}\b")
BACK = _shape(r"\b{putting} (?:{them}|{the} (?:\S+ ){1,3})(?: {one})? ?{back}\b(?! {on_shelf})")
# "put the rope back in", not "put it back on the shelf"
_BACK_IN = r"\b{back_in}\b(?! (?:{of_place} )?{shelf_begins})"
BACK_IN = _shape(f"(?i){_BACK_IN}")
# "where are my jars?", "put it all back"
MISSES = _shape(
    rf"(?i)^(?!.*\b{{nothing}}\b).*(?:\b(?:{{misses}}|{{missed}})\b(?! to\b)|{_BACK_IN})"
)
CHANGES, WHERE_IS = _shape(r"\b{changes}\b"), _shape(r"(?i)\b{where_is}\b")
BRINGS_BACK = _shape(
    r"(?i)\b{brings_back}\b"
    r"(?!(?: \w+){0,2} {into} (?:{of_place}|\w+s)\b)(?! {on_shelf})"
)
EVERY = _shape(r"(?i)\b{every}\b")
NO_MORE = _shape(r"(?i)\b{no_more}\b")
NONE_OF = _shape(r"(?i)^\W*{none_of}(?: (?!{no_goods_of})\S+){1,4}\W*$")
A_PART = _shape(r"(?i)\b{a_part}\b")
SENDS_BACK = _shape(r"(?i)^\W*(?:\w+\W+){0,2}{sending_back}\b")
NOT_SO = _shape(r"(?i)\b{denying}\b|{not_ending}\b")
INSTEAD = _shape(r"(?i)\b{instead}\b(?! {of_or_o})")
# "the lamp instead", and no more
IN_PLACE = _shape(r"(?i)^(?!{no_swap}\b)(?:[\w'’-]+ ){1,5}{instead}(?:,? {thanks_then})?[\s.!]*$")
# "the rope as well" without a verb takes it; "he has the rope too" does not
TAKING = _shape(r"(?i)\b(?:{ordering}|{i_need} \w+)\b|^(?!.*\b{no_order}\b).*\b{as_well}\W*$")
# goods in view: "two of those", "I'll have one", "take it"
POINTED = _shape(
    rf"\b(?:(\w+) {{of_those}}|({_COUNT}) (?:\w+ )?{{of}} {{this}}\b"
    r"|{take_that}(?=\W*$|,| {and_so}\b))"
)
# orders told by another: "the same again", "double it all", "two of everything"
WHOLE_ORDER, POINTS = _shape(r"\b{whole_order}\b"), _shape(r"\b{points}\b")
AGAIN_SO = _shape(r"\b(?:{again_so}|{once_more})\b")
ONCE_AGAIN = _shape(r"\b{once_again}\b")  # "another lot of that"
BEGS = _shape(r"\b{begs}\b")
SAYS_SO = _shape(r"\b{says_so}\b")  # "say that again"
LOTS = _shape(rf"\b({_COUNT}) {{lots_of}}\b")  # "two more lots of that"
TWOFOLD, THREEFOLD = _shape(r"\b{twofold}\b"), _shape(r"\b{threefold}\b")
TIMES = _shape(
    rf"(?<!\d )\bx ?(\d+)\b|\b(\d+) ?x\b(?! ?\d)|\b{{times_by}} ({_COUNT})\b"
    rf"|\b({_COUNT}) {{times}}\b|\b{{times}} ({_COUNT})\b"
)
# what a sentence multiplies: "double the lot", "x4 on the lot"; of one good "double it"
_TIMES = rf"(?:{{twofold}}|{{threefold}}|x ?\d+|\d+ ?x|{_COUNT} {{times}})"
MULTIPLIES = _shape(
    rf"\b{_TIMES} (?:\w+ ){{0,2}}{{whole_order}}\b|\b{{times_by}} "
    rf"|\b{{whole_order}}\b.*\b(?:{{times}} {_COUNT}|{{but}} (?:{{twofold}}|{{threefold}}))\b"
)
MULTIPLIES_ONE = _shape(
    rf"(?:\b(?:{{twofold}}|{{threefold}})|\bx ?\d+|\b\d+ ?x) {{points}}\b|\b{{times}} {_COUNT}\b"
    r"|^\W*(?:{twofold}|{threefold})\W*$"
)
OF_EVERYTHING = _shape(rf"\b(?P<number>{_COUNT}) (?P<more>{{more_of}} )?{{of_everything}}\b")
OTHERWISE = _shape(
    r"\b{not_again}\b|\b{but}\b(?! (?:{twofold}|{threefold})\b)|{not_ending}(?![a-z])"
)
OTHERS_BOUGHT = _shape(r"(?<![\w'’])(?!{not_others}\b)[a-z]+ {had_bought}\b")
TAKES_IT = _shape(r"(?i)\b{ordering}\s+{this}\b")  # "I'll take it home to my boots"
TELLS = _shape(r"(?i)\b{tells}\b")  # "he bought two ropes", "a rope or a chain"
JOINS_ON = _shape(r"(?i)^\W*(?:{exclaiming}\W+)*{and_plus}\s|\s{too}(?=\s*[,;.!]|\s*$)")
NEEDS = _shape(r"(?i)\b{need}\b")
I_NEED = _shape(r"(?i)\b{i_need}\b")
NO_NEED = _shape(r"(?i)\b{no_need}\b")  # "no need to shout"
GOOD_DAY = _shape(r"(?i)^\W*(?:{and}\s+)?{good_day}\b")  # a greeting, or a farewell
_SWAP = r"(?i)\b(?:{exchanging}|{trading}|{replacing}) (?:{over} )?"
_OLD = r"(?P<old>(?:{exchanged}|{units}|\d+)(?: [\w'’-]+){0,4}?)"
_NEW = r"(?P<new>[^.,;:!?]+?)(?=\s+{clause_words}\b|[.,;:!?]|$)"
EXCHANGES = (
    _shape(rf"{_SWAP}{_OLD} {{into}} {_NEW}"),
    _shape(rf"{_SWAP}{{into}} {_NEW}"),  # "can I change to the gilt card?"
    _shape(  # "swap the rope 4 a chain"
        rf"{_SWAP}(?P<old>(?:{{exchanged}}|{{units}}|\d+)(?: [\w'’-]+){{1,4}}?)"
        rf" {{texted_for}} {_NEW}"
    ),
    _shape(  # "put the brass one in its place"
        r"(?i)(?:^|[,;:]\s*|\.\.\.\s*|\b{clause_words} )(?:{please} )?{setting}"
        r" (?P<new>[^.,;:!?]+?)"
        r" (?:{instead}\b(?! {of_or_o})|{in_its_place}\b)"
    ),
)
INSTEAD_OF = _shape(  # "feather instead of metal"
    r"(?i)^(?:{clause_words} )?(?:{setting} )?(?P<new>(?:[\w'’-]+ ){1,4}){instead_of}"
    r" (?P<old>(?:[\w'’-]+ ?){1,4})"
)
WHAT_FOR = _shape(  # "rope for my boat", "rope to tie it up"
    r"(?i)\b(?:{for}|{into} \w+) {what_for}\b[^.,;:!?]*"
)
IN_THE_PLACE = _shape(r"(?i){instead_of}\b")
SEVERAL_OF = _shape(r"(?i)\b{several_of}\b")
ANOTHER_SWAP = _shape(r"(?i)\b{and} (?:[\w'’-]+ ){1,4}{into}\b")  # "... and the hat for a cap"
SAME_NUMBER = _shape(r"(?i)\b{same_number}\b")
_NOBODY = _not_behind("askers", r"\b")
# before a swap: "never would I", "my husband would"
NOT_ASKED = _shape(rf"(?i)\b{{not_asked}}\b|{{not_ending}}\b|{_NOBODY} {{would}}\s*$")
REFUSED = (  # "Ink? Nay, ...", "coffee no.", "I said moth but I meant ..." rule these out
    _shape(r"(?:^|(?<=[.,;:!?]))\s*((?:[\w'’-]+\s+){0,3}[\w'’-]+)\?\s*(?={refusing}\b)"),
    _shape(r"(?:^|(?<=[.,;:!?]))\s*(?:{i_said} )?([\w'’-]+) {no}(?=[.,;!]|$)"),
    _shape(r"\b{asked_for} ((?:[\w'’-]+ ){0,3}[\w'’-]+),? {but} (?=.*\b{meant}\b)"),
    _shape(
        r"(?:^|(?<=[.;:!?]))\s*((?:[\w'’-]+\s+){1,7}[\w'’-]+),"
        r"\s+{sending_back} {them} {taken_away}(?=\s*(?:[.,;!]|$))"
    ),
)
NEVER_ORDERED = (  # "I never asked for strings", "cloths not needed"
    _shape(r"(?i)\b{i_we} {never_ordered} ((?:[\w'’-]+ ){0,3}[\w'’-]+)(?=\s*(?:[.,;!]|$))"),
    _shape(
        r"(?i)(?:^|(?<=[.,;:!?]))\s*((?:[\w'’-]+\s+){0,3}[\w'’-]+)"
        r" {is_not_needed}(?=\s*(?:[.,;!]|$))"
    ),
)
NOT_THAT = _shape(  # "no, not that one!", "that is the coat again"
    r"(?i)\b(?:{turned_down}|{told_again} [^.,;!?]{0,40}?\b{again})(?=[^\w?]*(?:[.,;!]|$))"
)
OTHER_ONE = _shape(r"(?i)\b{the_other_one}\b")  # "take the other one off again"
SOME_OTHER = _shape(r"(?i)\b{the_other} \w+")
NOT_ORDERING = _shape(
    r"(?i)\b(?:{nobody}|\w+{not_ending}) (?:\w+ )?{order} {anything_yet}(?=\W*(?:[.,;!]|$))"
    r"|\b{order} {nothing}\b"
)
COMPLAINT = _shape(r"\b{complaint}\b")  # "the snips are too small" wants no snips
OF_TIME = _shape(r"(?i)\b(\d+|{spelled})(?: |-)?{time_units}(?![\w'’])")
# what counts in "the small one, of that two"
COUNT = _shape(r"\b(?:{the}|{this_that}|{them}) [\w'’-]+ ones?\b|\b(\d+|{spelled})\b")
CLAUSE_OF_SHARES = _shape(r"(?<=[?])\s|[.;!]|,(?!\d)|\b{clause_words}\b")
# "one each for us both, so two"; "just the one"
IN_SUM = _shape(rf"(?i)\b{{therefore}} ({_COUNT})(?: {{so_many_end}}){{0,2}}\W*(?:[.!?]|$)")
GLUED = re.compile(r"\b[a-wyz]{1,2}\d\w*")  # "thanks m8" counts nothing, "x8" does
JUST_ONE = _shape(r"(?i)\b{only} (?:{the} {one}\b|{one}(?= {so_many_end}\b|\s*(?:[.,;!?]|$)))")
TOO_MANY = _shape(r"(?i)\b{too_many}\b")
OF_THAT = _shape(r"(?i)\b{of_that}\b")
OF_THOSE_TOLD = _shape(rf"(?i)\b({_COUNT})(?: \w+)? {{of_that}}\b")  # "one jar of those"
IS_SO = _shape(r"(?i)\b{is_so}\b")
EACH_OF_KIND = _shape(rf"(?i)\b({_COUNT}|{{a}}) {{of_from}} {{each}}\b")  # "one from each"
AT_HOME = _shape(r"(?i)\b{having}\b[^.,;!?]*\b{at_home}\b|\b{sold_by}\b")
# what stands right before goods that are ordered: "I'll have one of the lemon ices"
ORDERS_IT = _shape(
    rf"(?i)\b{{ordering}}(?: (?:{{a}}|{{the}}|{{another}}|{_COUNT}|{{of_or_o}}))*(?: [a-z]+)?\s*$"
)
# "same again on the crispbread"
SAME_ON = _shape(
    r"(?:^|(?<=[.!]\s))\W*(?:{the} )?{same_again} {on_for} (?!.*(?:\?|\b{supposed}\b))"
)
SAID_NUMBER = _shape(
    rf"(?i)(?:\b(?:{{and}}|{{but_only}}) )?\b{{i_said}} ({_COUNT})(?=\s*(?:[.,;!?]|$))"
)  # "I did say two"
WITH_THE = _shape(r"(?i),\s*{with_the}\b[^.,;:!?]*")
A_PIECE = _shape(r"\b{a_piece}\b")  # "drop a rope" leaves the others

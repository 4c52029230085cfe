"""Words that mark what a line does: agreeing, refusing, changing an order, haggling, leaving.

A rephrased line has to keep the marks its act needs, and may not gain those of another act.
"""

from __future__ import annotations

import re

from data_gen.acts import Act, Kind
from data_gen.teachers.asking import Rejected
from haggle.trade.procedure import Procedure


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)", re.IGNORECASE)


# No refusal and no "all", whatever their words look like.
IDIOMS = _words(
    r"all right|alright|after all|at all|that[’']?s all|that is all|all set|all good|no problem|"
    r"no worries|no doubt|why not|not bad|can[’']?t wait|no hurry|no rush|no more questions"
)
NOT = re.compile(
    r"(?<!\w)(?:no|not|nope|nah|never|none|nothing|neither|nor|without|cannot|cant|dont|wont|isnt|"
    r"didnt|doesnt|wouldnt|refuse|decline|reject|disagree)(?!\w)|n[’']t(?!\w)",
    re.IGNORECASE,
)
YES = _words(
    r"yes|yeah|yea|yep|yup|ya|ye|aye|yay|ok|okay|sure|deal|agree[ds]?|agreeable|agreement|done|sold|"
    r"confirm\w*|accept\w*|go ahead|do it|perfect|works|settled?|certainly|absolutely|of course|"
    r"gladly|fine|good|let[’']?s|take|buy|wrap|pack|proceed|shake|fair|suits?|ring|seal|approved?|"
    r"definitely|indeed|exactly|correct|affirmative|sealed|consent\w*|bargain|finish|"
    r"close|please do|right|all right|alright|happy|great|pay|sale|ready|go on|on with it|yours"
)
STRONG_YES = _words(
    r"deal|agreed|confirmed?|accept(?:ed)?|sold|i[’']?ll take (?:it|them)|go ahead|it[’']?s settled"
)
CLASSES: dict[str, re.Pattern[str]] = {
    "all": _words(r"all|every|everything|whole|entire|entirety|rest"),
    "half": _words(r"half|halve[ds]?|halves"),
    "double": _words(r"double[ds]?|twice|twofold"),
    "both": _words(r"both|two of them|pair of them"),
    "each": _words(r"each|apiece|a piece|per|one of every"),
    "percent": re.compile(r"%|(?<!\w)per ?cent", re.IGNORECASE),
    "off": _words(
        r"off|less|discount\w*|knock\w*|shave|deduct\w*|reduc\w*|minus|cheaper|lower\w*|drop|cut"
    ),
    "cheap": _words(r"cheap(?:er|est)?|less (?:expensive|costly)|lower[- ]priced"),
    "dear": _words(r"dear(?:er|est)?|pric(?:ier|iest)|(?:more|most) (?:expensive|costly)|costlier"),
    "first": _words(r"first|1st"),
    "second": _words(r"second|2nd"),
    "third": _words(r"third|3rd"),
    "last": _words(r"last|final"),
    "same": _words(r"same|again|repeat|identical|once more"),
    "only": _words(r"only|solely|nothing (?:but|else)|just the|alone|keep"),
    "swap": _words(
        r"swap\w*|instead|replac\w*|exchang\w*|rather than|in place of|switch\w*|trade\w*|for it"
    ),
    "set": _words(r"make (?:it|that|them|the)|chang\w*|set|total of|adjust\w*|in total|altogether"),
    "add": _words(
        r"add\w*|also|plus|too|as well|more|another|extra|throw in|on top|additional\w*|along|and|"
        r"include|with|further"
    ),
    "remove": _words(
        r"remov\w*|drop|without|tak(?:e|ing) (?:\w+ ){0,6}?(?:out|off|away|back)|put(?:ting)? "
        r"(?:\w+ ){0,8}?(?:back|away)|leav(?:e|ing) (?:\w+ ){0,6}?(?:out|off|here)|cancel\w*|skip|"
        r"los(?:e|ing)|scratch|minus|forget|not|no|less|fewer|return\w*|strike|ditch|back|don[’']?t|"
        r"changed my mind|never mind|nevermind|nix|delete"
    ),
    "hello": _words(
        r"hello|hi|hey|hiya|howdy|greet\w*|good (?:morning|day|evening|afternoon)|morning|evening|"
        r"salutations|hail|welcome|yo|sup|how (?:are|do) you|pleased|nice to (?:meet|see)"
    ),
    "wares": _words(
        r"sell\w*|have|got|goods|wares|stock\w*|show|look\w*|see|brows\w*|offer\w*|shop|carry|"
        r"display|shel(?:f|ves)|items?|things|merchandise|selection|available|for sale|stuff|buy"
    ),
    "sum": _words(
        r"total\w*|sum|owe|order|price|come to|cost\w*|altogether|so far|amount|pay|bill|tally|"
        r"cart|basket|adds? up|how much|stock|where (?:are|were|do|did) we|bag|pile|list|repeat|"
        r"again|summar\w*|recap"
    ),
    "waiting": _words(
        r"wait|think\w*|thought|moment|minute|sec|second|sure|hm+|maybe|perhaps|let me|hold|yet|"
        r"later|decid\w*|consider\w*|doubt\w*|unsure|hesitat\w*|ponder|time|mull|reflect\w*|not|no|"
        r"check|uncertain|undecided|rush|pause|rather"
    ),
    "dealing": _words(
        r"prices?|pricey|cheap\w*|less|lower\w*|discount\w*|deal|off|reduc\w*|better|expensive|dear|"
        r"steep|bargain\w*|coins?|purse|poor|budget|afford\w*|pay|money|drop|mercy|haggl\w*|cost\w*|"
        r"sum|offer|generous|kind|come down|knock|rebate|much|robbery|high|fair|number|figure|broke"
    ),
    "thanks": _words(
        r"thanks?|thank\w*|thx|cheers|appreciat\w*|grateful|gratitude|obliged|pleasure|ta|bless|kind"
    ),
    "farewell": _words(
        r"bye|goodbye|farewell|good ?night|good ?day|later|leav(?:e|ing)|going|go|off|so long|"
        r"see you|cheers|take care|head(?:ing)?|until|nothing|another time|some other|elsewhere|"
        r"adieu|away|out|on my way|run|depart\w*|done|home"
    ),
    "calling off": _words(
        r"cancel\w*|empt(?:y|ied)|clear|remove|put|back|forget|drop|out|off|nothing|scrap|scratch|"
        r"start over|anew|again|call|none|no|not|don[’']?t|away|wipe|reset"
    ),
}
CLASSES["pointing"] = _words(
    r"ones?|it|that|this|them|those|these|some|lot|tak(?:e|ing)|buy\w*|want|need|get|have|order|mine"
)
_FOREIGN: dict[str, re.Pattern[str]] = {
    "asks for goods": _words(
        r"(?:do|have|would|might) you (?:\w+ )?(?:have|sell(?! me)|stock|carry|got)|show me|"
        r"what (?:do|have|would) you|which (?:one|of|is|would)|recommend\w*|suggest\w*|"
        r"how much (?:is|are|for)|what[’']?s the price|how many"
    ),
    "calls off": _words(
        r"cancel\w*|empty|(?:everything|all|it|them) (?:\w+ )?(?:back|out)|forget (?:it|the|all|"
        r"everything)|call (?:it|the whole \w+) off|changed my mind|start over"
    ),
    "leaves": _words(
        r"goodbye|farewell|bye|see you|i[’']?m leaving|i[’']?m off(?! to)|good ?night|"
        r"must (?:be )?(?:go|going)"
    ),
    "haggles": _words(
        r"discount\w*|cheaper|lower (?:the |your |that )?price|come down|knock|better price|haggle|"
        r"bargain|too (?:much|expensive|dear|steep|high)|any less"
    ),
    "buys": _words(
        r"i(?:[’']?ll| will|[’']?d like to| would like to| want to) (?:take|buy|order|purchase|get|"
        r"have)|give me|pack (?:me|up)|add|sell me|i[’']?m (?:buying|taking)"
    ),
}
# Marks that a line of a kind keeps where it has them, and marks of other acts that it may gain.
_KEPT: dict[Kind, tuple[str, ...]] = {
    "greet": ("hello",), "browse": ("wares",), "restate": ("sum",), "hesitate": ("waiting",),
    "haggle": ("dealing", "percent", "off", "each", "half", "double"), "thanks": ("thanks",),
    "leave": ("farewell",), "clear": ("calling off",),
    "order": ("all", "half", "double", "both", "each", "cheap", "dear", "first", "second", "third",
              "last", "same"),
}  # fmt: skip
_MAY_GAIN: dict[Kind, tuple[str, ...]] = {
    "agree": ("buys",), "order": ("buys",), "clear": ("calls off",), "leave": ("leaves",),
    "haggle": ("haggles", "buys"), "browse": ("asks for goods",), "ask_item": ("asks for goods",),
    "ask_price": ("asks for goods",), "ask_stock": ("asks for goods",),
    "compare": ("asks for goods",), "recommend": ("asks for goods",), "unclear": ("buys",),
    "ask_unsold": ("asks for goods", "buys"), "restate": ("asks for goods",),
}  # fmt: skip
_EXACT = {  # classes that change what a line asks for when it gains them
    "order": ("all", "half", "double", "both", "each", "cheap", "dear", "first", "second", "third",
              "last", "same", "only", "swap", "remove"),
    "haggle": ("percent", "off", "each", "half", "double"),
}  # fmt: skip
# What a line of these kinds does is all in such words: a new one needs them, whatever the old has.
_NEEDED: dict[Kind, str] = {
    "haggle": "dealing", "leave": "farewell", "clear": "calling off", "hesitate": "waiting",
    "restate": "sum", "thanks": "thanks", "greet": "hello",
}  # fmt: skip
_CHANGED = ("only", "swap", "set", "add", "remove")
_MAY_AGREE = frozenset(("agree", "order", "clear", "greet", "smalltalk", "thanks"))


def check_marks(old: str, new: str, act: Act, named: bool) -> None:
    """Raise Rejected when a player's line has lost a mark of its act, or gained another's.

    `named` is whether it names items, and so need not point at any.
    """
    if act.kind == "agree" and not YES.search(new):
        raise Rejected("act", "it has to stay an agreement")
    old, new = IDIOMS.sub(" ", old), IDIOMS.sub(" ", new)
    _check_yes_and_no(old, new, act.kind)
    kept = _KEPT.get(act.kind, ())
    if act.kind == "order":
        kept += (() if named else ("pointing",)) + (_CHANGED if act.changed else ())
    for name in kept:
        word = CLASSES[name].search(old)
        if word and not CLASSES[name].search(new):
            raise Rejected("act", f"{word[0]!r}, or a word like it, has to stay in it")
    needed = _NEEDED.get(act.kind) if act.bid is None else None
    if needed and not CLASSES[needed].search(new):
        raise Rejected("act", "what it does can no longer be told from it")
    exact = _EXACT.get(act.kind, ()) if act.kind != "haggle" or act.bid is not None else ()
    for name in exact:
        word = CLASSES[name].search(new)
        if word and not CLASSES[name].search(old):
            raise Rejected("act", f"{word[0]!r} changes what it asks for")
    for name, pattern in _FOREIGN.items():
        if name in _MAY_GAIN.get(act.kind, ()) or pattern.search(old):
            continue
        if word := pattern.search(new):
            raise Rejected("act", f"with {word[0]!r} it does something else")


def _check_yes_and_no(old: str, new: str, kind: Kind) -> None:
    refused, refuses = bool(NOT.search(old)), bool(NOT.search(new))
    if kind == "agree":
        if refuses and not refused:
            raise Rejected("negation", "an agreement must not turn into a refusal")
        if "?" in new and "?" not in old:
            raise Rejected("question", "an agreement must not turn into a question")
    if kind in {"hesitate", "order", "clear", "leave"} and refused and not refuses:
        raise Rejected("negation", "the refusal in it has to stay")
    if kind in {"order", "clear"} and refuses and not refused:
        raise Rejected("negation", "it must not refuse anything more than the line does")
    if kind not in _MAY_AGREE and found(STRONG_YES, new) - found(STRONG_YES, old):
        raise Rejected("act", "it must not agree to anything")


def reviews(procedure: Procedure) -> set[str]:
    """States whose line ends with a question that asks to confirm."""
    return {name for critical in procedure.critical for name in critical.only_after}


def sales(procedure: Procedure) -> set[str]:
    """States whose line asks nothing any more: what was reviewed is done."""
    return {critical.state for critical in procedure.critical}


def found(pattern: re.Pattern[str], text: str) -> set[str]:
    """What a pattern finds in a text."""
    return {match[0].casefold() for match in pattern.finditer(text)}

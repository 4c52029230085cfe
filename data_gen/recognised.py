"""How many of the bank's nicknames linking finds by itself, without a model.

python -m data_gen.recognised [train|test]      # 300 shops of the genres of a split
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter

from data_gen.language.phrasebook import SPLITS
from data_gen.worlds import sample_shop
from haggle.language.english.linker import English
from haggle.rates import rate, rate_text
from haggle.trade.prompting import linked_line

SHOPS = 300
WAYS = (
    "can I get the {}",
    "2 {} please",
    "{}, and that's all",
    "i want a {}",
    "how about that {}?",
)
_MARK = re.compile(r"\{([^}]*)\}")


def recognised(split: str, shops: int = SHOPS, seed: int = 5) -> Counter[str]:
    """Counts of nicknames by what becomes of them: `right` where the last mark names the item
    alone, `among` where a mark names it beside others, `wrong`, and `bare`."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    linker = English()
    for _ in range(shops):
        shop = sample_shop(rng, split, (4, 12), 0.2)  # type: ignore[arg-type]
        view = shop.world.view()
        for item in shop.world.inventory:
            for nickname in shop.nicknames.get(item.item_name, ()):
                line = rng.choice(WAYS).format(nickname)
                marks = _MARK.findall(linked_line(linker.read(line, view)))
                found[_outcome(item.item_name, marks)] += 1
    return found


def _outcome(name: str, marks: list[str]) -> str:
    told = [re.sub(r" x\d+$", "", mark).split(" / ") for mark in marks]
    if not told:
        return "bare"
    if told[-1] == [name]:
        return "right"
    return "among" if any(name in names for names in told) else "wrong"


def main() -> None:
    """Print shares with their 95% Wilson intervals."""
    split = sys.argv[1] if len(sys.argv) > 1 else "train"
    if split not in SPLITS:
        sys.exit(f"{split!r} is no split; known: {', '.join(SPLITS)}")
    found = recognised(split)
    for outcome in ("right", "among", "wrong", "bare"):
        print(f"{outcome}: {rate_text(rate(found[outcome], found.total()))} of {found.total()}")


if __name__ == "__main__":
    main()

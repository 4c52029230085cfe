"""The same answer of the model comes to the same turn in every process: conversations are kept as
answers and played again, so nothing may hang on the order of a set."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from haggle.core.config import ROOT

EVERY = 4  # of the turns of talk

PLAY = """
import json, sys
from eval.cases import _session, load_cases
from eval.talk.conversation import _Silent
from haggle.core.engine import Generation
from haggle.language.english.linker import load_english
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.world_io import load_worlds

folder, every = sys.argv[1], int(sys.argv[2])
worlds, linker = load_worlds(folder + "/worlds"), load_english(False)
merchant = Merchant(_Silent(), "state")

def say(session, line, **decided):
    answer = Generation(json.dumps({"last": session.last} | decided), 0, 0, 0, 0.0, "stop", 1.0)
    turn = merchant.complete(session, line, answer)
    print(json.dumps([line, turn.state, list(session.cart.items()), turn.says]))

for world in worlds.values():  # goods that are missed come back in their order
    session = Session(world, linker=linker, method=get_method("astp-stepwise"))
    cart = [[item.item_name, 2] for item in world.inventory[:5]]
    wish = ", ".join(f"two {name}" for name, _ in cart)
    say(session, wish, state="OFFER_SELL", cart=cart)
    say(session, f"just the {cart[0][0]}, take the rest off", state="OFFER_SELL", cart=cart[:1])
    say(session, "bring the others back", state="OFFER_SELL", cart=cart[:1])
    assert len(session.cart) > 3, session.cart

for case in load_cases(folder + "/cases.jsonl", worlds, "astp-stepwise")[::every]:
    session = _session(case, worlds, "astp-stepwise", case.id, linker)
    names = {i.item_id: i.item_name for i in worlds[case.world].items}
    state = case.gold.states[0]
    decided = {"state": state}
    if state == "OFFER_SELL":
        decided["cart"] = [[names[i], n] for i, n in (case.gold.left or {}).items()]
    if state == "SHOW_ITEMS":
        decided["show"] = [names[i] for i in case.gold.shown or ()]
    say(session, case.player, **decided)
"""


def played(seed: int) -> list[list[object]]:
    """The turns as a process with this hash seed plays them."""
    folder = str(ROOT / "eval" / "benchmarks" / "talked-2")
    done = subprocess.run(
        [sys.executable, "-c", PLAY, folder, str(EVERY)],
        env=os.environ | {"PYTHONHASHSEED": str(seed)}, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_turn_does_not_hang_on_the_hash_seed() -> None:
    first, second = played(1), played(2)
    assert len(first) > 140
    assert [turn for turn in first if turn not in second] == []

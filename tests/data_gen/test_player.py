"""Scripted players and the oracle merchant: every label is exact because the act is known."""

from __future__ import annotations

import random
import statistics
from collections import Counter

import pytest

from data_gen.acts import Act
from data_gen.generate import DataConfig, make_dialogue
from data_gen.language.phrasebook import load_phrasebook
from data_gen.play import play_oracle, start_play
from data_gen.players.scripted import MAX_ROUNDS
from data_gen.teachers.oracle import propose
from data_gen.worlds import sample_shop, shop_of
from haggle.core.agent import complete
from haggle.core.engine import Generation
from haggle.trade.merchant import TRADE
from haggle.trade.methods import get_method
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCENARIOS, Dialogue
from haggle.trade.session import Session
from haggle.trade.wire import decode_compact
from haggle.trade.world_io import named_world

METHOD = get_method("astp-compact")
PROCEDURE = load_procedure()


@pytest.fixture(scope="module")
def dialogues() -> list[Dialogue]:
    """Three hundred dialogues of both splits."""
    config = DataConfig(noise=0.3)
    splits = ["train"] * 200 + ["test"] * 100
    return [make_dialogue(config, split, i)[1] for i, split in enumerate(splits)]  # type: ignore[arg-type]


def test_every_answer_of_the_oracle_passes_every_check(dialogues):
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    assert len(turns) > 1000
    for turn in turns:
        assert turn.failed == turn.proposed_failed == turn.interventions == [], turn
        assert turn.truth and turn.valid_json
        assert (turn.state, turn.cart) == (turn.truth.state, turn.truth.cart)
        assert "__" not in turn.response.npc_dialogue


def test_every_act_and_every_state_is_met(dialogues):
    acts = Counter(turn.act for dialogue in dialogues for turn in dialogue.turns)
    states = Counter(turn.state for dialogue in dialogues for turn in dialogue.turns)
    assert set(states) == set(PROCEDURE.states)
    missing = set(load_phrasebook().player) - set(acts)
    config = DataConfig(slips=0.2, questions=0.3)
    for index in range(300, 4000):
        if not missing:
            break
        missing -= {turn.act for turn in make_dialogue(config, "train", index)[1].turns}
    assert not missing


def test_every_legal_transition_that_people_make_is_met(dialogues):
    seen = {pair for dialogue in dialogues for pair in dialogue.transitions()}
    for pair in [
        ("Start", "OFFER_SELL"), ("Start", "SHOW_ITEMS"), ("OFFER_SELL", "OFFER_SELL"),
        ("OFFER_SELL", "NEGOTIATE"), ("NEGOTIATE", "NEGOTIATE"), ("NEGOTIATE", "OFFER_SELL"),
        ("OFFER_SELL", "FINAL_CHECK"), ("NEGOTIATE", "FINAL_CHECK"), ("FINAL_CHECK", "COMMIT_SALE"),
        ("FINAL_CHECK", "CASUAL"), ("CASUAL", "COMMIT_SALE"), ("FINAL_CHECK", "OFFER_SELL"),
        ("COMMIT_SALE", "END"), ("COMMIT_SALE", "OFFER_SELL"),
    ]:  # fmt: skip
        assert pair in seen, pair


def test_dialogues_are_as_long_as_the_papers(dialogues):
    rounds = [len(dialogue.turns) for dialogue in dialogues]
    assert max(rounds) <= MAX_ROUNDS
    for scenario, paper in zip(SCENARIOS, (5.17, 6.05), strict=True):
        mean = statistics.fmean(len(d.turns) for d in dialogues if d.scenario == scenario)
        assert 0.85 * paper < mean < 1.15 * paper, (scenario, mean)


def test_most_dialogues_reach_a_sale_but_not_all(dialogues):
    sold = [any(t.state == "COMMIT_SALE" for t in d.turns) for d in dialogues]
    assert 0.5 < sum(sold) / len(sold) < 0.95


def test_many_players_type_alike_seldom(dialogues):
    lines = Counter(turn.player for dialogue in dialogues for turn in dialogue.turns)
    assert len(lines) / sum(lines.values()) > 0.7


def test_overstock_and_unsold_goods_are_asked_for(dialogues):
    said = " ".join(t.response.npc_dialogue for d in dialogues for t in d.turns)
    assert said.count("I have only") > 20 and said.count("I do not sell") > 20


def open_play(seed: int, split: str = "test", scenario: str = "specific_items"):
    shop = sample_shop(random.Random(seed), split)  # type: ignore[arg-type]
    return start_play(shop, scenario, seed, split, METHOD)  # type: ignore[arg-type]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_seed_fixes_the_whole_player(scenario):
    one, two = (play_oracle(open_play(7, scenario=scenario)) for _ in range(2))
    assert one == two
    assert len({open_play(seed, scenario=scenario).next_line() for seed in range(20)}) > 15


def test_a_player_answers_to_what_the_merchant_did_not_to_a_script():
    def played(answer: str) -> list[str]:
        play, lines = open_play(3), []
        while (line := play.next_line()) is not None:
            lines.append(line)
            turn = complete(TRADE, play.session, line, Generation(answer), "off")
            play.add(turn, play.goal())
        return lines

    silent = played("garbage")
    ended = played('{"last":"","state":"END","say":"Out!"}')
    assert silent[0] == ended[0]
    assert len(ended) == 1 and 1 < len(silent) <= MAX_ROUNDS


def test_a_recommendation_player_names_a_purpose_not_an_item():
    for seed in range(30):
        play = open_play(seed, scenario="recommendation")
        line = (play.next_line() or "").casefold()
        assert not any(item.item_name.casefold() in line for item in play.session.world.items)


def offered(last: str = "OFFER_SELL") -> Session:
    session = Session(named_world("frontier_shop"))
    session.settle("OFFER_SELL", {"tool_03": 2}, None)
    if last != "OFFER_SELL":
        session.settle(last, session.cart, session.sale_price)
    return session


@pytest.mark.parametrize(
    ("session", "act", "state"),
    [
        (Session(named_world("frontier_shop")), Act("accept", "agree"), "CASUAL"),
        (offered(), Act("accept", "agree"), "FINAL_CHECK"),
        (offered(), Act("confirm", "agree"), "FINAL_CHECK"),
        (offered("NEGOTIATE"), Act("accept", "agree"), "FINAL_CHECK"),
        (offered("FINAL_CHECK"), Act("accept", "agree"), "COMMIT_SALE"),
        (offered("FINAL_CHECK"), Act("hesitate", "hesitate"), "CASUAL"),
        (offered("FINAL_CHECK"), Act("attack_forged", "attack"), "CASUAL"),
        (offered("FINAL_CHECK"), Act("haggle_vague", "haggle"), "NEGOTIATE"),
        (offered("FINAL_CHECK"), Act("add", "order", (("Local Map", 1),)), "OFFER_SELL"),
        (Session(named_world("frontier_shop")), Act("haggle_vague", "haggle"), "CASUAL"),
        (Session(named_world("frontier_shop")), Act("create", "order", (("?moon", 1),)), "CASUAL"),
        (offered(), Act("leave", "leave"), "END"),
        (offered(), Act("clear", "clear"), "CASUAL"),
        (offered(), Act("ask_item", "ask_item", items=("Local Map",)), "SHOW_ITEMS"),
    ],
)
def test_the_oracle_follows_the_conditions_of_the_procedure(session, act, state):
    assert propose(session, act, random.Random(0)).state == state


def test_agreement_after_small_talk_counts_from_before_it():
    session = offered("FINAL_CHECK")
    session.settle("CASUAL", session.cart, session.sale_price)
    assert propose(session, Act("back_accept", "agree"), random.Random(0)).state == "COMMIT_SALE"


def test_an_order_names_what_the_player_wants_not_what_there_is():
    play = open_play(0)
    lines = []
    for seed in range(200):
        play = open_play(seed)
        play.next_line()
        proposal = play.oracle
        lines += [(play.session.world, line) for line in proposal.cart or ()]
    unlisted = [name for _, (name, _) in lines if name.startswith("?")]
    listed = [(w, name) for w, (name, _) in lines if not name.startswith("?")]
    assert unlisted and all(name in world.sellable_names for world, name in listed)
    sold = [(w.find(name), n) for w, (name, n) in lines if isinstance(n, int)]
    assert any(number > (item.quantity or 0) for item, number in sold if item is not None)


def test_every_training_text_decodes_to_the_label_beside_it():
    for index in range(20):
        play, dialogue = make_dialogue(DataConfig(), "train", index)
        answers = [m.content for m in play.session.messages(limit=None) if m.role == "assistant"]
        assert len(answers) == len(dialogue.turns)
        for text, turn in zip(answers, dialogue.turns, strict=True):
            proposal = decode_compact(text, PROCEDURE)
            assert (proposal.last, proposal.state) == (turn.last, turn.state)
            assert (
                turn.response.npc_dialogue == proposal.say
                or "__" in proposal.say
                or "I " in proposal.say
            )


def test_a_shop_bought_empty_does_not_stop_the_generator():
    for index in range(300, 330):
        make_dialogue(DataConfig(items=(1, 1)), "train", index)


def test_a_given_world_is_a_shop_too():
    play = start_play(shop_of(named_world("trench_outfitter")), "specific_items", 1, "test", METHOD)
    dialogue = play_oracle(play)
    assert dialogue.world == "trench_outfitter" and all(not t.failed for t in dialogue.turns)


def test_a_drill_is_mostly_changes_of_the_cart_and_without_drills_nothing_differs():
    def turns(drills: float) -> list[str]:
        config = DataConfig(drills=drills)
        made = [make_dialogue(config, "train", index)[1] for index in range(40)]
        return [str(turn.state) for dialogue in made for turn in dialogue.turns]

    plain, drilled = turns(0), turns(1)
    assert (
        drilled.count("OFFER_SELL") / len(drilled) > 0.55 > plain.count("OFFER_SELL") / len(plain)
    )
    assert len(drilled) > 1.3 * len(plain)
    assert set(drilled) >= {"OFFER_SELL", "FINAL_CHECK", "NEGOTIATE"}


def test_who_is_asked_again_by_code_says_yes_plainly():
    play = open_play(4)
    session, player = play.session, play.player
    item = session.world.inventory[0]
    session.settle("OFFER_SELL", {item.item_id: 1}, None)
    session.settle("FINAL_CHECK", dict(session.cart), session.sale_price)
    player.agreed = True
    session.last_line = "Is it a deal?"
    assert player._at_review(session)[1] == "Yes, please."
    session.last_line = ""
    assert player._at_review(session)[1] != "Yes, please."

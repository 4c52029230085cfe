"""The prompt of the papers' JSON format: what each switch adds or removes, and nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from jinja2 import StrictUndefined, UndefinedError

from haggle.core.text import prompts
from haggle.trade import placeholders
from haggle.trade.methods import METHODS, Method, get_method
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.prompting import PROMPTS, system_text
from haggle.trade.world import World
from haggle.trade.world_io import named_world

ASTP = get_method("astp")
LABELS = {"CASUAL", "END", "SHOW_ITEMS", "OFFER_SELL", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE"}
SECTIONS = (
    "SYSTEM_INSTRUCTIONS",
    "GAME_ITEM_LIST",
    "CHARACTER_INFO",
    "CHARACTER_INVENTORY",
    "CONTEXT_GUIDELINES",
    "TRADE_GUIDELINES",
    "RESPONSE_FORMAT",
    "RESPONSE_GUIDELINES",
    "CURRENT_SITUATION",
)
FIELDS = (
    "context_reason (string)",
    "context_type (string)",
    "context_details (object)",
    "npc_thoughts (string)",
    "npc_action (string)",
    "npc_dialogue (string)",
)


@pytest.fixture(scope="module")
def world() -> World:
    return named_world("frontier_shop")


@pytest.fixture(scope="module")
def procedure() -> Procedure:
    return load_procedure()


@pytest.fixture(scope="module")
def render(world: World, procedure: Procedure):
    return lambda method, shop=world, rules=procedure: system_text(shop, rules, method)


def section(text: str, tag: str) -> str:
    """What stands between the two tags of a section."""
    found = re.search(rf"^<{tag}>\n(.*?)^</{tag}>$", text, re.DOTALL | re.MULTILINE)
    assert found, f"no section <{tag}>"
    return found[1]


def difference(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines taken away and lines added, each as often as it happened."""
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    return sorted((old - new).elements()), sorted((new - old).elements())


def without(element: int) -> Method:
    return replace(ASTP, elements=ASTP.elements - {element})


def test_sections_stand_once_and_in_the_papers_order(render):
    tags = re.findall(r"^<(/?[A-Z_]+)>$", render(ASTP), re.MULTILINE)
    assert tags == [t for name in SECTIONS for t in (name, f"/{name}")]


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if m.wire == "full"])
def test_every_label_and_field_is_named_whatever_the_method(render, name):
    text = render(get_method(name))
    for label in LABELS:
        assert re.search(rf"(?<!_){label}(?!_)", section(text, "RESPONSE_FORMAT")), label
        assert re.search(rf"context_(sub)?type: {label}$", text, re.MULTILINE), label
    fields = section(text, "RESPONSE_FORMAT")
    assert [fields.count(field) for field in FIELDS] == [1] * len(FIELDS)
    assert "If context_type is CASUAL or END: leave this field out." in fields
    assert '"CASUAL", "END", "TRADE".' in fields
    numbers = [int(n) for n in re.findall(r"^(\d)\. ", fields, re.MULTILINE)]
    assert numbers == list(range(0 if 4 in get_method(name).elements else 1, 7))
    assert "<DIALOGUE_HISTORY>\n" not in text  # the history is the user message
    assert not re.search(r"[{}]{2}|{%|\n\n\n| $", text, re.MULTILINE)


def test_states_appear_in_the_order_of_the_procedure(render, procedure):
    rules = section(render(ASTP), "TRADE_GUIDELINES")
    assert re.findall(r"context_subtype: (\w+)$", rules, re.MULTILINE) == [
        name for name, state in procedure.states.items() if state.context == "TRADE"
    ]
    assert re.findall(r"^(\d)\. ", rules, re.MULTILINE) == list("12345")


def test_element_1_is_the_meaning_of_each_state(render, procedure):
    removed, added = difference(render(ASTP), render(without(1)))
    meant = [line for s in procedure.states.values() for line in s.meaning[1:]]
    assert meant and sorted(x for x in removed if x[4:] in meant) == sorted(
        f"  - {m}" for m in meant
    )
    others = [line for line in removed if line[4:] not in meant]
    assert {re.sub(r"^\d\. ", "", x) for x in others if x[0].isdigit()} == {
        s.meaning[0] for s in procedure.states.values()
    }
    examples = [line for line in others if not line[0].isdigit()]
    assert len(examples) == 1 and examples[0].startswith('  - e.g., "')  # of SHOW_ITEMS
    assert {re.sub(r"^\d\. ", "", line) for line in added} == {f"{label}:" for label in LABELS}


def test_element_2_is_the_conditions_and_the_second_look_at_the_critical_state(render, procedure):
    removed, added = difference(render(ASTP), render(without(2)))
    assert not added
    conditions = [s.condition for s in procedure.states.values() if s.condition]
    assert len(conditions) == 4
    for condition in conditions:
        removed.remove(f"  - {condition}")
    assert len(removed) == len(procedure.critical) == 1
    assert "COMMIT_SALE is forbidden" in removed[0] and "FINAL_CHECK" in removed[0]


def test_element_2_stands_under_the_heading_of_its_own_state(render, procedure):
    steps = re.split(r"^\d\. ", section(render(ASTP), "TRADE_GUIDELINES"), flags=re.MULTILINE)[1:]
    for step in steps:
        label = re.search(r"context_subtype: (\w+)", step)
        assert label
        condition = procedure.state(label[1]).condition
        if condition:
            assert step.splitlines()[1] == f"  - {condition}"
    assert "COMMIT_SALE is forbidden" in steps[-1]


def test_element_3_is_one_sentence_before_all_other_reasoning(render):
    removed, added = difference(render(ASTP), render(without(3)))
    assert not added
    assert removed == [
        "- Before anything else, find the last trade subcontext in the <DIALOGUE_HISTORY>."
    ]
    rules = section(render(ASTP), "TRADE_GUIDELINES")
    assert rules.index(removed[0]) < rules.index("shopping cart") < rules.index("\n1. ")


def test_element_4_is_field_0_of_the_answer(render):
    removed, added = difference(render(ASTP), render(without(4)))
    assert not added and len(removed) == 1
    assert removed[0].startswith("0. last_trade_context (string): ")
    assert "empty string" in removed[0]
    assert "last_trade_context" not in render(without(4))
    assert section(render(ASTP), "RESPONSE_FORMAT").splitlines()[1] == removed[0]


def test_elements_are_independent_of_each_other(render):
    full = render(ASTP)
    taken = [difference(full, render(without(e)))[0] for e in (2, 3, 4)]
    bare, added = difference(full, render(get_method("baseline1")))
    assert not added and bare == sorted(line for lines in taken for line in lines)


def test_zs_cot_adds_one_line_to_baseline_2(render):
    removed, added = difference(render(get_method("baseline2")), render(get_method("zs-cot")))
    assert not removed and len(added) == 1
    assert "step by step" in added[0] and "npc_thoughts" in added[0]
    guidelines = section(render(get_method("zs-cot")), "RESPONSE_GUIDELINES")
    assert guidelines.splitlines()[0] == added[0]


def test_without_placeholders_the_model_computes_and_no_rule_mentions_them(render, world):
    text = render(get_method("astp-ppp"))
    assert not placeholders.used(text)
    two = sum(item.price or 0 for item in world.inventory[:2])
    assert f"makes {two:g} gold altogether" in text
    removed, added = difference(render(ASTP), text)
    assert len(removed) == 5 and len(added) == 3


def test_the_papers_allow_the_placeholder_in_offers_only(render):
    text = render(ASTP)
    assert placeholders.used(text) == {placeholders.PRICE}
    *head, last = re.split(r"^(?=2\. )", section(text, "TRADE_GUIDELINES"), flags=re.MULTILINE)
    offer, later = re.split(r"^(?=3\. )", last, flags=re.MULTILINE)
    assert placeholders.PRICE in offer
    assert placeholders.PRICE not in "".join(head) + later
    assert f"makes {placeholders.PRICE} gold altogether" in offer
    assert re.search(
        r'but OFFER_SELL, "__PRICE__" is not allowed', section(text, "RESPONSE_FORMAT")
    )


def test_every_priced_state_may_use_the_placeholder_in_our_setting(render, procedure):
    text = render(replace(ASTP, placeholders="every"))
    allowed = [line for line in text.splitlines() if "may stand for a total" in line]
    assert len(allowed) == 1 and "is not allowed" not in text and "No other step" not in text
    for name, state in procedure.states.items():
        assert (name in allowed[0]) == state.priced


def test_all_52_items_are_known_and_only_the_20_for_sale_are_in_the_inventory(render, world):
    text = render(ASTP)
    known = json.loads(section(text, "GAME_ITEM_LIST").splitlines()[-1])
    stock = json.loads(section(text, "CHARACTER_INVENTORY").splitlines()[-1])
    assert len(known) == 52 and len(stock) == 20
    assert known == [{"item_id": i.item_id, "item_name": i.item_name} for i in world.items]
    assert {
        "item_id": "potion_01",
        "item_name": "Healing Potion",
        "quantity": 24,
        "price": 50,
    } in stock
    assert all(list(line) == ["item_id", "item_name", "quantity", "price"] for line in stock)


def test_merchant_and_situation_are_the_worlds(render, world):
    text = render(ASTP)
    assert section(text, "CHARACTER_INFO").strip() == world.merchant.persona
    assert world.situation.time in section(text, "CURRENT_SITUATION")
    other = named_world("trench_outfitter")
    theirs = render(ASTP, other)
    assert "Marisol Vane" in theirs and "Haman" not in theirs
    assert " gold" not in theirs and "__PRICE__ scrip" in theirs


def test_a_shop_with_a_single_item_still_has_its_examples(render, world):
    lone = world.model_copy(update={"items": [world.items[0]]})
    text = render(ASTP, World.model_validate(lone.model_dump()))
    assert 'e.g., "There is the Adventurer\'s Kit, and more besides."' in text


def test_labels_come_from_the_procedure_not_from_the_template(render, procedure):
    def renamed(value):
        if isinstance(value, dict):
            return {renamed(k): renamed(v) for k, v in value.items()}
        if isinstance(value, list):
            return [renamed(v) for v in value]
        return re.sub("|".join(LABELS | {"TRADE"}), lambda m: f"X{m[0][::-1]}", value) if isinstance(value, str) else value  # fmt: skip

    data = procedure.model_dump()
    other = Procedure.model_validate(renamed(data) | {"aliases": {}})
    text = render(ASTP, rules=other)
    leftover = [word for word in LABELS | {"TRADE"} if re.search(rf"\b{word}\b", text)]
    assert not leftover


def test_a_state_without_words_for_the_prompt_falls_back_to_its_brief(render, procedure):
    data = procedure.model_dump()
    data["states"]["NEGOTIATE"] |= {"meaning": [], "condition": ""}
    rules = section(render(ASTP, rules=Procedure.model_validate(data)), "TRADE_GUIDELINES")
    assert f"\n3. {data['states']['NEGOTIATE']['brief']}:\n  - context_type: TRADE" in rules


def test_the_words_of_a_state_name_no_state_that_does_not_exist(procedure):
    for state in procedure.states.values():
        words = re.sub(r"<[A-Z_]+>", "", " ".join([*state.meaning, state.condition]))
        assert set(re.findall(r"[A-Z_]{3,}", words)) <= LABELS


def test_conditions_name_only_states_that_the_procedure_lets_come_before(procedure):
    named = 0
    for name, state in procedure.states.items():
        for last in re.findall(r"[A-Z_]{3,}", state.condition.partition("only if")[2]):
            assert procedure.is_valid(last, name), f"{last} -> {name}"
            named += 1
    assert named == 5


def test_a_missing_variable_is_an_error_not_a_gap():
    assert prompts(PROMPTS).undefined is StrictUndefined
    for template in ("full.jinja", "full_history.jinja"):
        with pytest.raises(UndefinedError):
            prompts(PROMPTS).get_template(template).render()


def test_the_history_ends_with_the_latest_utterance():
    exchanges = [
        SimpleNamespace(player="Any rope?", answer='{"context_type":"TRADE"}'),
        SimpleNamespace(player="Two, please.", answer='{"context_type":"TRADE","n":2}'),
    ]
    template = prompts(PROMPTS).get_template("full_history.jinja")
    assert template.render(exchanges=exchanges, player="Fine.").splitlines() == [
        "<DIALOGUE_HISTORY>",
        "Player: Any rope?",
        'NPC: {"context_type":"TRADE"}',
        "Player: Two, please.",
        'NPC: {"context_type":"TRADE","n":2}',
        "Player: Fine.",
        "</DIALOGUE_HISTORY>",
    ]
    assert template.render(exchanges=[], player="Hello").splitlines()[1] == "Player: Hello"

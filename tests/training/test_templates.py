"""What is learnt of a dialogue, token by token, and that serving reads and writes the same text.

The tokenizers are small ones with each family's special tokens; the models' own templates are those
that TRL keeps copies of. SmolLM2's own tokenizer is used where the base model is at hand.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haggle.core.engine import GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.core.text import neutralise_markup
from haggle.dataset import iter_rows
from haggle.weights.chat_template import (
    CHATML,
    FAMILIES,
    GEMMA,
    LLAMA3,
    Family,
    family_of,
    plain_template,
    render,
    tokenizer_family,
    training_template,
)
from haggle.weights.models import resolve_base
from training.architectures import tiny_tokenizer
from training.data import tokenize
from training.dry_run import sample
from training.templates import (
    PROBE,
    check_template,
    encode,
    marked_template,
    servable_template,
)

OWN = {"chatml": "qwen3.jinja", "gemma": "gemma3.jinja", "llama3": "llama3.jinja"}
DIALOGUE = [
    {"role": "system", "content": "You are Mara.\nFor sale:\nRope 15\nOil Lamp 40"},
    {"role": "user", "content": 'cart [["Rope",2]] price 30\nplayer: 12 ropes, é – ok? 🙂'},
    {"role": "assistant", "content": '{"last":"","state":"CASUAL","say":"Well – 12, é 🙂?"}'},
    {"role": "user", "content": "cart []\nplayer: yes"},
    {"role": "assistant", "content": '{"last":"OFFER_SELL","state":"END","say":"Bye."}'},
]


def trl_template(name: str) -> str:
    pytest.importorskip("trl")
    return files("trl").joinpath(f"chat_templates/{name}").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=[*FAMILIES, "smollm2"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """A tokenizer of each family, and the real one of the default base."""
    if request.param == "smollm2":
        try:
            base = resolve_base(echo=lambda _: None, download=False)
        except HaggleError as error:
            pytest.skip(f"no base model here: {error}")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(base.path)
    texts = [m["content"] for messages in sample() for m in messages]
    made = tiny_tokenizer(FAMILIES[request.param], texts)
    made.chat_template = trl_template(OWN[request.param])
    return made


@pytest.fixture
def family(tokenizer: Any) -> Family:
    found = tokenizer_family(tokenizer)
    assert found is not None
    return found


def ids_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def expected_ids(tokenizer: Any, family: Family, messages: Any) -> tuple[list[int], list[int]]:
    """Ids and mask put together by hand: serving's prompt, the answer, its end, turn by turn."""
    ids: list[int] = []
    mask: list[int] = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = ids_of(tokenizer, render(messages[:index], family=family))
        assert prompt[: len(ids)] == ids, "what was said before is read again as it was"
        mask += [0] * (len(prompt) - len(ids))
        answer = [*ids_of(tokenizer, message["content"]), *ids_of(tokenizer, family.end)]
        ids = prompt + answer
        mask += [1] * len(answer)
    gap = ids_of(tokenizer, family.gap) if family.gap else []
    return ids + gap, mask + [0] * len(gap)


def test_exactly_the_answers_and_their_ends_carry_loss(tokenizer: Any, family: Family) -> None:
    for messages in [DIALOGUE, PROBE, *sample()]:
        got = encode(messages, tokenizer, marked_template(tokenizer))
        assert got == expected_ids(tokenizer, family, messages)


def test_no_token_of_prompt_player_or_markup_carries_loss(tokenizer: Any, family: Family) -> None:
    ids, mask = encode(DIALOGUE, tokenizer, marked_template(tokenizer))
    end = tokenizer.convert_tokens_to_ids(family.end)
    learnt = [token for token, bit in zip(ids, mask, strict=True) if bit]
    ignored = [token for token, bit in zip(ids, mask, strict=True) if not bit]
    answers = [m["content"] for m in DIALOGUE if m["role"] == "assistant"]
    assert tokenizer.decode(learnt) == "".join(answer + family.end for answer in answers)
    assert learnt.count(end) == len(answers)
    # Each other turn's end is not learnt: of the system's and the players'.
    assert ignored.count(end) == (3 if family.system_turn else 2)
    specials = {tokenizer.convert_tokens_to_ids(t) for t in family.tokens} - {end}
    assert not specials & set(learnt)


def test_only_one_beginning_of_text(tokenizer: Any, family: Family) -> None:
    ids, _ = encode(DIALOGUE, tokenizer, marked_template(tokenizer))
    if family.bos:
        bos = tokenizer.convert_tokens_to_ids(family.bos)
        assert ids[0] == bos and ids.count(bos) == 1


def test_the_text_trained_on_is_what_the_engines_send(tokenizer: Any, family: Family) -> None:
    from serving.engines.common import hf_prompt, special_tokens

    template = marked_template(tokenizer)
    text = tokenizer.apply_chat_template(DIALOGUE, chat_template=template, tokenize=False)
    assert text == render(DIALOGUE, add_generation_prompt=False, family=family)
    for index in (2, 4):
        messages = [Message(m["role"], m["content"]) for m in DIALOGUE[:index]]  # type: ignore[arg-type]
        sent = hf_prompt(tokenizer, messages, special_tokens(tokenizer))
        answer = DIALOGUE[index]["content"] + family.end
        assert text.startswith(sent + answer)


def test_answers_of_the_data_are_what_the_grammar_admits() -> None:
    from haggle.core.codec import matches
    from haggle.trade.procedure import load_procedure
    from haggle.trade.wire import StateShape, WireConstraint

    procedure = load_procedure()
    states = {name: procedure.state(name) for name in procedure.states}
    for messages in sample():
        goods = messages[0]["content"].partition("Prices in ")[2].splitlines()[1:]
        constraint = WireConstraint(
            wire="compact",
            last=("", *states),
            states=tuple(
                StateShape(n, s.payload, s.may_clear, s.payload == "cart")
                for n, s in states.items()
            ),
            item_names=tuple(line.rpartition(" ")[0] for line in goods),
            contexts=tuple((n, s.context) for n, s in states.items()),
        )
        for message in messages:
            if message["role"] == "assistant":
                text = message["content"]
                assert matches(constraint, text)
                assert not matches(constraint, " " + text) and not matches(constraint, text + "\n")
                assert text == text.strip()  # nothing for Gemma's and Llama's trimming to take away


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
@pytest.mark.parametrize("length", [2, 4])
def test_our_text_is_that_of_the_models_own_template(family: Family, length: int) -> None:
    tokenizer = tiny_tokenizer(family, ["some text"])
    own = tokenizer.apply_chat_template(
        DIALOGUE[:length],
        chat_template=trl_template(OWN[family.name]),
        tokenize=False,
        add_generation_prompt=True,
    )
    assert own == render(DIALOGUE[:length], family=family)


def test_qwen_is_trained_and_served_without_think_tags() -> None:
    tokenizer = tiny_tokenizer(CHATML, ["some text"])
    tokenizer.chat_template = trl_template("qwen3.jinja")
    text = tokenizer.apply_chat_template(
        DIALOGUE, chat_template=marked_template(tokenizer), tokenize=False
    )
    assert "think" not in text
    own = tokenizer.apply_chat_template(DIALOGUE, tokenize=False)
    assert "<think>" in own  # its own template would have put an empty thought into the last answer


def test_llama_3_2_is_trained_and_served_without_the_date_of_the_day() -> None:
    tokenizer = tiny_tokenizer(LLAMA3, ["some text"])
    tokenizer.chat_template = own = trl_template("llama3_2.jinja")
    dated = tokenizer.apply_chat_template(DIALOGUE, tokenize=False)
    assert "Today Date" in dated
    text = tokenizer.apply_chat_template(
        DIALOGUE, chat_template=marked_template(tokenizer), tokenize=False
    )
    assert "Date" not in text
    kept = servable_template(tokenizer)
    assert kept is not None and kept != own
    # What is saved beside the weights gives any other server the text trained on.
    tokenizer.chat_template = kept
    prompt = tokenizer.apply_chat_template(DIALOGUE[:4], tokenize=False, add_generation_prompt=True)
    assert prompt == render(DIALOGUE[:4], family=LLAMA3) and text.startswith(prompt)


def test_a_template_that_gives_our_prompts_is_left_as_it_is(tokenizer: Any) -> None:
    assert servable_template(tokenizer) == tokenizer.chat_template


def test_gemma_has_no_system_turn() -> None:
    text = render(DIALOGUE[:2], family=GEMMA)
    assert text.startswith("<bos><start_of_turn>user\nYou are Mara.\nFor sale:")
    assert "Oil Lamp 40\n\ncart [[" in text
    assert text.endswith("<end_of_turn>\n<start_of_turn>model\n")
    # Alone, as when an engine reads the shop ahead of the first line.
    assert render(DIALOGUE[:1], False, GEMMA).count("<start_of_turn>user\n") == 1


TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(system=st.none() | TEXTS, turns=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_jinja_and_render_give_the_same_text_for_anything(
    family: Family, system: str | None, turns: list[tuple[str, str]]
) -> None:
    tokenizer = PLAIN.setdefault(family.name, tiny_tokenizer(family, ["some text"]))
    messages = [{"role": "system", "content": system}] if system is not None else []
    for player, answer in turns:
        messages += [{"role": "user", "content": neutralise_markup(player)}]
        messages += [{"role": "assistant", "content": neutralise_markup(answer)}]
    for template in (training_template(family), plain_template(family)):
        for part, prompt in ((messages, False), (messages[:-1], True)):
            text = tokenizer.apply_chat_template(
                part, chat_template=template, tokenize=False, add_generation_prompt=prompt
            )
            assert text == render(part, prompt, family)


PLAIN: dict[str, Any] = {}


def test_a_family_is_told_by_template_or_tokens() -> None:
    for family in FAMILIES.values():
        assert family_of(plain_template(family)) is family
    assert family_of(trl_template("gemma3.jinja")) is GEMMA
    assert family_of(trl_template("llama3_2.jinja")) is LLAMA3
    assert family_of(trl_template("qwen3.jinja")) is CHATML
    assert family_of(trl_template("phi3.jinja")) is None
    bare = tiny_tokenizer(GEMMA, ["some text"])
    bare.chat_template = None
    assert tokenizer_family(bare) is GEMMA
    assert servable_template(bare) == plain_template(GEMMA)
    assert family_of(None) is CHATML


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_a_tokenizer_without_the_templates_tokens_is_refused(family: Family) -> None:
    missing = family.tokens[-1]
    tokenizer = tiny_tokenizer(family, ["some text"])
    data = json.loads(tokenizer.backend_tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if t["content"] != missing]
    data["model"]["vocab"] = {
        token: number for token, number in data["model"]["vocab"].items() if token != missing
    }
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    poorer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(data)))
    poorer.chat_template = plain_template(family)
    with pytest.raises(HaggleError) as caught:
        tokenize([DIALOGUE], poorer, max_length=4096)
    assert repr(missing) in caught.value.message and family.name in caught.value.message
    assert "instruction-tuned" in caught.value.hint


def test_marks_that_cover_too_much_are_refused() -> None:
    tokenizer = tiny_tokenizer(GEMMA, ["some text"])
    # TRL's own variant also teaches the line end behind the end of turn.
    with pytest.raises(HaggleError, match="the marks of the chat template cover"):
        check_template(tokenizer, trl_template("gemma3_training.jinja"), GEMMA)
    tokenizer = tiny_tokenizer(CHATML, ["some text"])
    everything = training_template(CHATML).replace("{% generation %}", "", 1)
    everything = everything.replace(
        "{{ '<|im_start|>assistant\\n' }}", "{% generation %}{{ '<|im_start|>assistant\\n' }}", 1
    )
    with pytest.raises(HaggleError, match="the marks of the chat template cover"):
        check_template(tokenizer, everything, CHATML)


def test_a_template_that_trains_on_other_text_than_is_served_is_refused() -> None:
    tokenizer = tiny_tokenizer(CHATML, ["some text"])
    other = training_template(CHATML).replace(
        "'<|im_start|>assistant\\n'", "'<|im_start|>bot\\n'", 1
    )
    with pytest.raises(HaggleError, match="training and serving would read"):
        check_template(tokenizer, other, CHATML)


def test_an_unknown_family_without_marks_is_refused() -> None:
    tokenizer = tiny_tokenizer(CHATML, ["some text"])
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}"
    )
    with pytest.raises(HaggleError, match="chat template is unknown") as caught:
        marked_template(tokenizer)
    assert "generation" in caught.value.hint


def test_an_unknown_family_with_marks_is_taken_as_it_is() -> None:
    tokenizer = tiny_tokenizer(LLAMA3, ["some text"])
    end = "<|eot_id|>"
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m['role'] }}]\n{% if m['role'] == 'assistant' %}"
        "{% generation %}{{ m['content'] + '" + end + "' }}{% endgeneration %}"
        "{% else %}{{ m['content'] + '" + end + "' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]\n{% endif %}"
    )
    assert tokenizer_family(tokenizer) is None
    _, mask = encode(DIALOGUE, tokenizer, marked_template(tokenizer))
    assert sum(mask) > 0


@pytest.mark.parametrize("adds_bos", [False, True])
def test_llama_cpp_reads_a_llama_3_prompt_as_it_was_trained(adds_bos: bool, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    from gguf import GGUFValueType
    from safetensors.torch import load_file

    from haggle.weights.gguf_file import Field, llama_shape, metadata_from_directory, write_gguf
    from serving.engines import load_engine
    from serving.engines.config import EngineConfig
    from training.architectures import SHAPES, make_tiny_base

    texts = [m["content"] for messages in sample() for m in messages]
    shape = {k: v for k, v in SHAPES["smollm2-360m-instruct"].items() if k != "head_dim"}
    tokenizer = tiny_tokenizer(LLAMA3, texts)
    base = make_tiny_base(tmp_path / "base", shape, tokenizer, texts)
    metadata = metadata_from_directory(base)
    metadata["tokenizer.ggml.add_bos_token"] = Field(adds_bos, GGUFValueType.BOOL)
    tensors = {name: t.float().numpy() for name, t in load_file(base / "model.safetensors").items()}
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    path = tmp_path / "model.gguf"
    write_gguf(path, tensors, llama_shape(config, "test"), metadata, "F16")
    engine: Any = load_engine(EngineConfig(engine="llamacpp", gguf=path, context=1024))
    try:
        messages = tuple(Message(m["role"], m["content"]) for m in DIALOGUE[:2])  # type: ignore[arg-type]
        answer = engine.generate([GenerationRequest(messages, max_tokens=1)])[0]
        assert engine.family is LLAMA3
    finally:
        engine.close()
    assert answer.prompt_tokens == len(ids_of(tokenizer, render(DIALOGUE[:2], family=LLAMA3)))


def test_a_row_with_an_unknown_state_stops_the_run(tmp_path: Path) -> None:
    from training.data import read_dialogues

    path = Path(__file__).parents[2] / "training" / "sample_dialogues.jsonl"
    rows = list(iter_rows(path))
    rows[1]["turns"][0]["state"] = "OFFER_SEL"
    for suffix in ("jsonl", "parquet"):
        bad = tmp_path / f"train.{suffix}"
        if suffix == "jsonl":
            bad.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), bad)
        with pytest.raises(HaggleError, match="unknown state 'OFFER_SEL'") as caught:
            read_dialogues(bad)
        assert "row 2" in caught.value.where and "OFFER_SELL" in caught.value.hint

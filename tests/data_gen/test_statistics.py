"""Statistics of data sets: right counts, honest variety, a card that the hub can read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from data_gen.bank import load_bank
from data_gen.dataset import lengths, statistics
from data_gen.dataset.card import render_card
from data_gen.dataset.counting import Tally, is_invented, price_list, source_of
from data_gen.dataset.lengths import Quantiles, TokenLengths
from data_gen.dataset.records import spread
from data_gen.dataset.statistics import collect, compare
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import write_jsonl
from haggle.grammar.json_text import to_json

pytest.importorskip("datasketch", reason='pip install -e ".[data]"')
pytest.importorskip("sacrebleu", reason='pip install -e ".[data]"')

SYSTEM = "You are Ada.\nPrices in gold:\nSharp Axe 130\nLocal Map (North) 60.5"


def turn(player: str, state: str, **more: Any) -> dict[str, Any]:
    return {"player": player, "act": None, "last": "", "state": state, "cart": "{}", "npc_dialogue": "Well then."} | more  # fmt: skip


def row(
    turns: Sequence[dict[str, Any]], answers: Sequence[Any] = (), **more: Any
) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}]
    for number, one in enumerate(turns):
        answer = (
            answers[number] if number < len(answers) else {"state": one["state"], "say": "Well."}
        )
        messages += [
            {"role": "user", "content": f"cart []\nplayer: {one['player']}"},
            {"role": "assistant", "content": to_json(answer)},
        ]
    return {"schema_version": 1, "id": "train-0-x", "scenario": "specific_items",
            "world": "arctic_00ff00", "method": "astp-compact", "player": "scripted-train-slang",
            "teacher": "oracle", "messages": messages, "turns": list(turns)} | more  # fmt: skip


def tally(*rows: dict[str, Any]) -> Any:
    counted = Tally()
    for number, one in enumerate(rows):
        counted.add(one, f"row {number}")
    return counted.statistics(len(rows), [])


# Counts


def test_states_acts_and_transitions_are_counted_from_the_start_on() -> None:
    figures = tally(
        row([turn("hi", "CASUAL", act="greet"), turn("an axe", "OFFER_SELL", act="create")]),
        row([turn("an axe", "OFFER_SELL", act="create")], scenario="recommendation"),
    )
    assert figures.dialogues == 2 and figures.turns == 3
    assert figures.states["OFFER_SELL"] == 2 and figures.states["NEGOTIATE"] == 0
    assert figures.acts == {"create": {"OFFER_SELL": 2}, "greet": {"CASUAL": 1}}
    assert figures.transitions == {
        "specific_items": {"Start": {"CASUAL": 1}, "CASUAL": {"OFFER_SELL": 1}},
        "recommendation": {"Start": {"OFFER_SELL": 1}},
    }


def test_rounds_have_the_interval_of_their_mean() -> None:
    figures = spread({4: 1, 6: 2, 8: 1})
    assert figures is not None
    assert figures.mean == 6 and figures.sd == pytest.approx((8 / 3) ** 0.5)
    assert figures.high - figures.mean == pytest.approx(1.96 * 1.63299 / 2, abs=1e-4)
    assert (figures.min, figures.max, figures.n) == (4, 8, 4)
    assert spread({}) is None


def test_orders_tell_what_is_not_sold_what_is_over_stock_and_all_of_an_item() -> None:
    def order(asked: list[Any], got: dict[str, int]) -> dict[str, Any]:
        answer = {"last": "", "state": "OFFER_SELL", "cart": asked, "say": "Yes."}
        return row([turn("those", "OFFER_SELL", cart=to_json(got))], [answer])

    figures = tally(
        order([["Sharp Axe", 2]], {"axe": 2}),
        order([["Sharp Axe", 5], ["Local Map (North)", 1]], {"axe": 3, "map": 1}),
        order([["Sharp Axe", 2], ["?elven sword", 9]], {"axe": 2}),
        order([["Sharp Axe", "all"]], {"axe": 12}),
    )
    assert (figures.orders.over_stock.count, figures.orders.over_stock.of) == (1, 4)
    assert figures.orders.unsold.count == 1
    assert figures.orders.all_of.count == 1
    assert figures.cart_items.histogram == {1: 3, 2: 1}
    assert figures.cart_pieces.max == 12


def test_answers_of_another_wire_format_are_counted_but_for_what_they_do_not_tell() -> None:
    figures = tally(row([turn("an axe", "OFFER_SELL", cart='{"axe":1}')], ["no JSON object"]))
    assert figures.states["OFFER_SELL"] == 1 and figures.cart_items.mean == 1
    assert figures.orders.unsold.of == 0 and figures.orders.unsold.share is None


@pytest.mark.parametrize(
    ("more", "source"),
    [
        ({"player": "scripted-test-child"}, ("scripted", "child")),
        ({"player": "scripted-train-second_language"}, ("scripted", "second_language")),
        ({"player": "corpus-terse"}, ("corpus", "terse")),
        ({"player": "llm-some-model-7b"}, ("llm", "some-model-7b")),
        ({"id": "corpus-grumpy-012"}, ("corpus", "grumpy")),
        ({"id": "train-3-x"}, ("not recorded", "not recorded")),
    ],
)
def test_a_row_says_who_plays(more, source) -> None:
    assert source_of(more) == source


def test_items_prices_and_invented_names_are_read_from_the_price_list() -> None:
    assert price_list(SYSTEM) == [("Sharp Axe", 130.0), ("Local Map (North)", 60.5)]
    assert price_list("no list here") == []
    known = next(iter(load_bank().genres.values())).items[0].name
    for made_up in (f"Vorkal {known}", f"Vorkal's {known}", f"{known} of Vorkal", "Vorkal Mer"):
        assert is_invented(made_up)
    assert not is_invented(known) and not is_invented(f"Old {known}")


def test_copies_of_the_corpus_are_told_from_near_duplicates() -> None:
    corpus = row([turn("two axes and the map for me please", "OFFER_SELL")], player="corpus-terse")
    scripted = row([turn("two axes and a map if you will", "OFFER_SELL")])
    figures = tally(corpus, corpus, scripted, scripted)
    assert figures.corpus_copies == 1
    assert (figures.near_dialogues.near.count, figures.near_dialogues.near.of) == (1, 3)
    assert figures.repeated_dialogues.count == 1


# Whole data sets


def test_the_same_data_set_gives_the_same_figures(data) -> None:
    assert collect(data) == collect(data)


def test_a_data_set_is_described_split_by_split(data) -> None:
    described = collect(data)
    train, test = described.splits["train"], described.splits["test"]
    assert (train.dialogues, test.dialogues) == (52, 10)
    assert train.sources == {"scripted": 40, "corpus": 12}
    assert train.teachers == {"oracle": 40, "corpus": 12}
    assert train.corpus_copies == 6
    assert (
        sum(train.states.values())
        == train.turns
        == sum(r.n * r.mean for r in train.rounds.values())
    )
    assert train.shops.genres["hand-written shops"] == 12
    assert 0 < train.shops.invented.count < train.shops.invented.of / 2
    assert described.held_out is not None
    assert described.held_out.shops == described.held_out.dialogues == 0
    assert not described.held_out.genres and set(described.held_out.voices) <= {"plain"}


def test_a_limit_draws_that_many_dialogues_from_all_of_a_split(data) -> None:
    train = collect(data, limit=20).splits["train"]
    assert (train.dialogues, train.of) == (20, 52)
    assert 0 < train.sources["corpus"] < 12  # they are the last rows


def test_data_sets_are_compared_at_equal_size(data) -> None:
    comparison = compare(data, data / "test.jsonl")
    assert comparison.dialogues == comparison.ours.dialogues == comparison.baseline.dialogues == 10
    assert comparison.names == ("small", "test")


def test_a_data_set_beside_itself_is_the_same_and_all_of_it(data) -> None:
    comparison = compare(data, data)
    assert comparison.ours == comparison.baseline and comparison.dialogues == 52


# The card, of rows made by hand


def test_names_from_the_data_cannot_break_a_table() -> None:
    counted = Tally()
    counted.add(row([turn("hi", "CASUAL", act="odd|act\n# heading")], teacher="a|b"), "row")
    figures = counted.statistics(1, [])
    from data_gen.dataset.records import Statistics

    described = Statistics(
        name="x|y", config=None, report=None, splits={"train": figures}, held_out=None
    )
    card = render_card(described)
    assert "odd\\|act # heading" in card and "\n# heading" not in card


def test_models_that_took_part_are_named_with_what_was_kept_of_theirs(tmp_path) -> None:
    rows = [
        row([turn("hi", "CASUAL")], player="llm-tiny", teacher="tiny-7b"),
        row([turn("hey", "CASUAL")], teacher="rewriter:small-2b"),
    ]
    write_jsonl(tmp_path / "d" / "train.jsonl", rows)
    (tmp_path / "d" / "summary.json").write_text('{"report": {"accepted": 3}}', encoding="utf-8")
    card = render_card(collect(tmp_path / "d"))
    assert "partly a language model (tiny-7b)" in card and "a language model (small-2b)" in card
    assert "accepted: 3" in card and "their makers' terms may apply" in card


# Token lengths


class Spaces:
    """A tokenizer of one token a word."""

    chat_template = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"

    def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[str]]]:
        return {"input_ids": [text.split() for text in texts]}


def test_token_lengths_are_of_the_text_a_model_reads(monkeypatch, data) -> None:
    monkeypatch.setattr(statistics, "load_tokenizer", lambda name: Spaces())
    measured = collect(data, tokenizers=["spaces"]).splits["test"].tokens
    assert [type(m) for m in measured] == [TokenLengths]
    assert measured[0].rendering == "ChatML" and measured[0].tokenizer == "spaces"
    assert measured[0].dialogues.n == 10
    assert isinstance(measured[0].answers, Quantiles)
    assert measured[0].dialogues.mean > measured[0].answers.mean


def test_a_template_that_refuses_a_system_message_is_left_out() -> None:
    import jinja2

    class Refusing(Spaces):
        chat_template = "{{ raise_exception('no system') }}"

        def apply_chat_template(self, *_: Any, **__: Any) -> str:
            raise jinja2.TemplateError("no system")

    messages = [{"role": "system", "content": "two words"}]
    measured = lengths.token_lengths("x", Refusing(), [messages])
    assert measured.rendering == "contents only" and measured.dialogues.max == 2
    assert measured.answers is None


# Bad input


def lines_to(path: Path, *texts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def test_a_data_set_that_is_not_there_or_empty_or_torn_says_so(tmp_path) -> None:
    with pytest.raises(HaggleError, match="no such dataset"):
        collect(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(HaggleError, match="no train shards"):
        collect(tmp_path / "bare")
    empty = lines_to(tmp_path / "empty.jsonl")
    with pytest.raises(HaggleError, match="data set is empty"):
        collect(empty)
    with pytest.raises(HaggleError, match="data set is empty"):
        compare(empty, empty)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(HaggleError, match="not a whole Parquet file"):
        collect(torn)
    whole = to_json(row([turn("hi", "CASUAL")]))
    with pytest.raises(HaggleError, match=r"row 2.*not JSON"):
        collect(lines_to(tmp_path / "torn.jsonl", whole, whole[: len(whole) // 2]))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"messages": []}, "'turns' is missing"),
        ({"turns": [], "messages": "hello"}, "'messages' is missing"),
        (
            {"turns": [{"state": "CASUAL", "npc_dialogue": "x"}], "messages": []},
            r"turns\[0\]: 'player'",
        ),
        ({"turns": [{"state": "BARTER"}], "messages": []}, "unknown state 'BARTER'"),
    ],
)
def test_a_row_that_is_no_dialogue_is_named(tmp_path, broken, says) -> None:
    path = lines_to(tmp_path / "d.jsonl", to_json(row([turn("hi", "CASUAL")])), to_json(broken))
    with pytest.raises(HaggleError, match=says) as caught:
        collect(path)
    assert "d.jsonl: row 2" in caught.value.where


def test_an_unknown_split_or_tokenizer_is_told_with_what_there_is(data, tmp_path) -> None:
    with pytest.raises(HaggleError, match=r"no split 'tset'[^?]*did you mean 'test'"):
        collect(data, splits=["tset"])
    with pytest.raises(HaggleError, match="no tokenizer"):
        collect(data, tokenizers=[str(tmp_path)])
    with pytest.raises(HaggleError, match=r"no tokenizer 'nonsense'[^?]*smollm2-135m-instruct"):
        collect(data, tokenizers=["nonsense"])


# The command


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["stats", *map(str, arguments), "--quiet"])
    if result.exception:
        raise result.exception
    return result.output


def test_stats_prints_the_figures_and_writes_the_card(data, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(lengths, "cached_tokenizer", lambda: None)
    shown = run(data)
    assert "player: distinct-2" in shown and "token lengths left out" in shown
    run(data, "--out", tmp_path / "card", "--baseline", data)
    card = (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    assert "5.17 (sd 1.00, n=100; SIBP, Section 4.1)" in card
    assert "ASTP paper, Figure 4 (a), 300 dialogues" in card and "(43.2*)" in card
    assert "### Beside small" in card
    assert (
        yaml.safe_load(card.split("---\n", 2)[1])["configs"][0]["data_files"][0]["path"]
        == "train.jsonl"
    )


def test_stats_beside_a_baseline_prints_both_and_how_many_times(data) -> None:
    shown = run(data, "--baseline", data)
    assert "52 dialogues of each" in shown
    line = next(line for line in shown.splitlines() if "player: distinct-2 " in line)
    assert line.rstrip("│ \n").endswith("1.00")

"""A model card says what the run's files say, names what is missing and makes nothing up."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from haggle.cli import app
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, write_json, write_jsonl
from training.card_measures import plain_name, read_measures
from training.model_card import hub_licence, own_card, read_run, render_card, write_card

HOME = "/home/somebody/models"
CONFIG: dict[str, Any] = {
    "base": "smollm2-135m-instruct",
    "dataset": f"{HOME}/data/mine",
    "output_dir": f"{HOME}/runs/mine",
    "seed": 11,
    "lora": {"r": 16, "alpha": 32.0, "dropout": 0.0, "target_modules": "all-linear"},
    "full_finetuning": False,
    "max_length": 2048,
    "spoken_weight": 0.3,
    "trainer": {"learning_rate": 0.0007, "logging_dir": f"{HOME}/logs"},
    "resolved": {
        "base_source": "home",
        "base_path": f"{HOME}/smollm2-135m-instruct",
        "licence": "Apache-2.0",
        "data_sha256": "86b5",
        "dialogues": 1532,
        "tokens": 1719930,
        "supervised_tokens": 609911,
        "cut": 45,
        "versions": {"torch": "2.13.0", "peft": "0.21.2"},
    },
}
RESULT = {
    "output_dir": f"{HOME}/runs/mine", "weights": f"{HOME}/runs/mine/adapter",
    "base": "smollm2-135m-instruct", "steps": 316, "total_steps": 342, "loss": 0.34519,
    "tokens": 524034, "minutes": 37.906, "stopped": "time limit", "tokens_per_s": 230.4,
}  # fmt: skip
LOG = [
    {"step": 10, "loss": 1.6075, "tokens": 10574, "elapsed_s": 44.6},
    {"step": 300, "loss": 0.4, "tokens": 500000, "elapsed_s": 2160.0},
]


def rate(value: float | None, n: int) -> dict[str, Any]:
    if value is None:
        return {"value": None, "n": 0, "passed": 0, "low": None, "high": None}
    return {"value": value, "n": n, "passed": round(value * n), "low": value - 0.1, "high": 0.99}


TURNS = {
    "n": 150, "engine": "llamacpp", "guard": "off", "model": f"{HOME}/mine-Q8_0",
    "joint": rate(0.5533, 150), "state": rate(0.84, 150), "cart": rate(0.175, 63),
    "bid": rate(None, 0), "last": rate(0.98, 150), "valid_json": rate(0.987, 150),
}  # fmt: skip
CASES = {
    "n": 110, "engine": "llamacpp", "guard": "state", "model": "mine-Q8_0",
    "joint_accuracy": 0.6, "state_accuracy": 0.8, "forbidden_rate": 0.0, "valid_json_rate": 1.0,
    "by_tag": {
        "reference": {"n": 7, "joint_accuracy": 0.0}, "create": {"n": 14, "joint_accuracy": 0.5},
        "rare": {"n": 2, "joint_accuracy": 0.0},
    },
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run's directory with weights of a few bytes."""
    folder = tmp_path / "runs" / "mine"
    (folder / "adapter").mkdir(parents=True)
    (folder / "adapter" / "adapter_model.safetensors").write_bytes(b"weights")
    note = {"base": CONFIG["base"], "hub_id": "HuggingFaceTB/SmolLM2-135M-Instruct"}
    write_json(folder / "adapter" / "haggle_adapter.json", note)
    configure(folder, CONFIG)
    write_json(folder / "result.json", RESULT)
    write_jsonl(folder / "metrics.jsonl", LOG)
    return folder


def configure(run: Path, config: dict[str, Any]) -> None:
    text = yaml.safe_dump(config, sort_keys=False)
    (run / "config.resolved.yaml").write_text(text, encoding="utf-8")


def measured(folder: Path, metrics: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "metrics.json", metrics)
    return folder


def card(run: Path, *measures: Path, name: str | None = None) -> str:
    out = run / "README.md"
    out.unlink(missing_ok=True)
    return write_card(run, out, measures, name).read_text(encoding="utf-8")


def head_of(text: str) -> dict[str, Any]:
    head = yaml.safe_load(text.split("---")[1])
    assert isinstance(head, dict)
    return head


def test_the_head_is_what_the_hub_reads(run: Path) -> None:
    from huggingface_hub import ModelCard

    text = card(run)
    head = ModelCard(text).data.to_dict()
    assert head["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert head["license"] == "apache-2.0" and head["library_name"] == "peft"
    assert head["pipeline_tag"] == "text-generation" and head["language"] == "en"
    assert {"haggle", "lora"} <= set(head["tags"])
    assert "datasets" not in head and "model-index" not in head


def test_the_run_s_figures_are_in_it(run: Path) -> None:
    text = card(run)
    for said in (
        "mine: 1,532 dialogues, 1,719,930 tokens, 609,911 supervised tokens, 45 cut",
        "86b5", hashlib.sha256(b"weights").hexdigest(), "r=16, alpha=32.0, layers: all-linear",
        "316 of 342 steps (time limit), 524,034 tokens, 38 minutes", "230 tokens/s",
        "| loss, last logged | 0.345 |", "1.607 at step 10", "learning_rate 0.0007",
        "torch 2.13.0, peft 0.21.2", "Small (135M)", "Apache-2.0",
    ):  # fmt: skip
        assert said in text, said


def test_the_held_out_accuracy_that_chose_the_weights_is_in_it(run: Path) -> None:
    best = {"step": 200, "joint": 0.61, "low": 0.52, "high": 0.69, "n": 120}
    write_json(run / "result.json", RESULT | {"best": best, "weights_step": 200})
    text = card(run)
    assert "| 61.0% (52 to 69) of 120 held-out turns, step 200 |" in text
    assert "| weights kept | those of step 200 |" in text
    write_json(run / "result.json", RESULT | {"best": {}, "weights_step": 316})
    text = card(run)
    assert "held-out turns, step" not in text and "weights kept" not in text


def test_an_adapter_that_was_gone_on_from_keeps_its_rank(run: Path) -> None:
    write_json(run / "adapter" / "adapter_config.json", {"r": 8, "lora_alpha": 20})
    data = {
        "data_sha256": "77",
        "pairs": 412,
        "tokens": 90000,
        "shortened": 3,
        "adapter_sha256": "c0de",
    }
    own = {"method": "dpo", "start_from": "runs/train/first/adapter", "resolved": data}
    configure(run, CONFIG | own)
    write_json(run / "result.json", RESULT | {"figures": {"rewards/margins": 1.23456}})
    text = card(run)
    assert "r=8, alpha=20," in text and "direct preference optimisation (DPO)" in text
    assert "412 pairs, 90,000 tokens, 3 shortened" in text and "weights c0de)" in text
    assert "| rewards/margins | 1.235 |" in text


def test_no_path_of_the_machine_is_in_it(run: Path, tmp_path: Path) -> None:
    configure(run, CONFIG | {"start_from": f"{HOME}/other/adapter"})
    text = card(run, measured(tmp_path / "turns", TURNS))
    assert HOME not in text and str(tmp_path) not in text
    assert not re.search(r"(?<![\w.:)/])/(home|root|tmp|work|Users)/", text)
    assert "went on from an adapter trained before;" in text
    assert "Measured with: mine-Q8_0, engine llamacpp" in text


def test_what_was_not_measured_is_said(run: Path, tmp_path: Path) -> None:
    text = card(run)
    assert "Not measured: turns of a held-out data set" in text
    assert not re.search(r"\d%", text)  # no rate without a measure
    text = card(run, measured(tmp_path / "turns", TURNS))
    assert "Not measured: hand-written turns" in text and "whole dialogues" in text


def test_measures_have_n_and_interval_and_what_they_were_measured_with(
    run: Path, tmp_path: Path
) -> None:
    text = card(
        run, measured(tmp_path / "turns", TURNS), measured(tmp_path / "cases", CASES), name="Odalys"
    )
    assert "| joint (state and cart) | 150 | 55.3% (45 to 99) |" in text
    assert "bid" not in re.findall(r"^\| (\w+)", text, re.MULTILINE)  # none was observed
    assert "| joint (state, cart and price) | 110 | 60.0% (51 to 69) |" in text  # Wilson
    assert "| forbidden state | 110 | 0.0% (0 to 3) |" in text
    assert "Weakest kinds (joint, n in brackets): reference 0% (7), create 50% (14)." in text
    results = head_of(text)["model-index"][0]
    assert results["name"] == "Odalys" and text.split("---", 2)[2].lstrip().startswith("# Odalys")
    turns, cases = results["results"]
    assert turns["dataset"]["config"] == "guard off" and cases["dataset"]["config"] == "guard state"
    assert turns["metrics"][0]["value"] == 0.5533 and turns["metrics"][0]["args"]["n"] == 150


def test_whole_dialogues_of_two_guards_stay_apart(run: Path, tmp_path: Path) -> None:
    everything = {
        "dialogues": 20, "turns": 97, "stcr": rate(1.0, 14), "sirr": rate(0.9, 70),
        "price_accuracy": {"offer": rate(1.0, 30), "others": rate(None, 0)},
        "valid_json": rate(1.0, 97), "inference_consistency": rate(1.0, 97),
        "accuracy": {"state": rate(0.8, 97), "cart": rate(0.8, 70), "joint": rate(0.7, 97)},
    }  # fmt: skip
    results = [
        {"run": {"name": f"model-{guard}", "guard": guard, "method": "astp-compact"},
         "model": "mine-Q8_0", "all": everything}
        for guard in ("off", "state")
    ]  # fmt: skip
    metrics = {"version": "0", "config": {"split": "test"}, "results": results}
    text = card(run, measured(tmp_path / "eval", metrics))
    assert "### Whole dialogues, guard off" in text and "### Whole dialogues, guard state" in text
    assert "20 dialogues, 97 turns" in text and "| STCR | 14 |" in text
    assert "price accuracy, others" not in text
    configs = [r["dataset"]["config"] for r in head_of(text)["model-index"][0]["results"]]
    assert configs == ["guard off", "guard state"]


def test_a_comparison_and_an_export_become_tables(run: Path, tmp_path: Path) -> None:
    difference = {"value": -0.015, "low": -0.04, "high": 0.01}
    shares = {name: rate(0.9, 200) for name in ("joint", "same_text", "same_decision")}
    runs = [
        {"name": name, "engine": "llamacpp", "differences": {"joint": difference}, **shares}
        for name in ("merged", "Q4_0")
    ]
    write_json(tmp_path / "compare.json", {"reference": "merged", "n": 200, "runs": runs})
    logits = {"ok": True, "top1_agreement": 0.915, "mean_kl": -1e-9, "next_token": None}
    export = {
        "files": {"mine-Q4_0.gguf": {"bytes": 118_000_000}, "adapter/adapter-f16.gguf": {"bytes": 1e7}},
        "checks": {"Q4_0": logits, "adapter-f16.gguf": {"ok": True, "next_token": 0.97}},
    }  # fmt: skip
    write_json(tmp_path / "export.json", export)
    text = card(run, tmp_path / "compare.json", tmp_path / "export.json")
    assert "| merged (llamacpp) | 90.0% (80 to 99) | reference |" in text
    assert "| Q4_0 (llamacpp) | 90.0% (80 to 99) |" in text and "-1.5 (-4.0 to +1.0)" in text
    assert "| Q4_0 | 118.0 | 91.5% | 0 | not measured |" in text
    assert "| adapter-f16.gguf | 10.0 | not measured | not measured | 97% |" in text


def test_what_eval_compare_writes_can_be_read(run: Path, tmp_path: Path) -> None:
    from eval.compare import compare_runs

    answer = '{"last":"","state":"CASUAL","say":"Hm."}'
    record = {"id": "a", "player": "x", "right": answer, "answer": answer, "joint": True,
              "state": True, "cart": None}  # fmt: skip
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "predictions.jsonl", [record])
        write_json(tmp_path / name / "run.json", {"engine": "e", "model": name})
    write_json(tmp_path / "c.json", compare_runs([tmp_path / "one", tmp_path / "two"]))
    (table,) = read_measures(tmp_path / "c.json")
    assert table.kind == "comparison" and [row[0] for row in table.rows] == ["one (e)", "two (e)"]


def test_a_run_without_result_is_told_by_its_log(run: Path) -> None:
    (run / "result.json").unlink()
    text = card(run)
    assert "300 steps, 500,000 tokens, 36 minutes, by the last line logged" in text
    (run / "metrics.jsonl").unlink()
    text = card(run)
    assert "| extent | not recorded |" in text and "loss, last" not in text


def test_the_files_of_a_model_passed_on_are_enough(run: Path) -> None:
    (run / "config.resolved.yaml").rename(run / "train.yaml")
    (run / "result.json").unlink()
    assert "smollm2-135m-instruct" in card(run)


def test_the_adapter_s_directory_names_the_same_run(run: Path) -> None:
    assert read_run(run / "adapter").directory == read_run(run).directory == run.resolve()


CHARACTERS = {
    "n": 60, "engine": "llamacpp", "guard": "state", "model": "mine-Q8_0",
    "goal": rate(0.8, 20), "wrong_goal": rate(0.0, 40), "violations": rate(0.0, 700),
    "user_state": rate(0.6, 700), "action": rate(0.5, 700),
}  # fmt: skip


def test_a_character_s_card_says_nothing_of_merchants(run: Path, tmp_path: Path) -> None:
    note = run / "adapter" / "haggle_adapter.json"
    write_json(note, read_json(note) | {"method": "sop"})
    text = card(run)
    assert "keeps to a procedure" in text and "haggle chat --character gatekeeper" in text
    assert "Not measured: whole dialogues with simulated users (`haggle eval character`)" in text
    for untrue in ("ledger", "shop", "prices", "cart", "haggle eval cases", "A merchant for games"):
        assert untrue not in text, untrue
    text = card(run, measured(tmp_path / "talks", CHARACTERS))
    assert "### Whole dialogues with simulated users, guard state" in text
    assert "mine-Q8_0, engine llamacpp; 60 simulated users, guard state." in text
    assert "| user state understood | 700 | 60.0% (50 to 99) |" in text
    assert "`haggle eval character`" not in text


def test_the_shipped_card_of_characters_says_what_the_command_writes() -> None:
    folder = ROOT / "models" / "character-smollm2-135m"
    written = (folder / "README.md").read_text(encoding="utf-8")
    now = render_card(read_run(folder), [])
    for part in (about, limits_and_use):
        assert part(now) == part(written)


def about(text: str) -> str:
    return text.split("# character-smollm2-135m")[1].partition("| | |")[0].strip()


def limits_and_use(text: str) -> str:
    return text.partition("## Limits")[2].strip()


def test_missing_files_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(HaggleError, match=r"no config\.resolved\.yaml"):
        card(tmp_path)
    with pytest.raises(HaggleError, match=r"neither metrics\.json nor export\.json") as caught:
        card(run, tmp_path / "runs")
    assert caught.value.where == str(tmp_path / "runs")
    with pytest.raises(HaggleError, match="no such file"):
        card(run, tmp_path / "nowhere.json")
    with pytest.raises(HaggleError, match="not what an evaluation writes"):
        card(run, measured(tmp_path / "odd", {"n": 3}))
    (run / "adapter" / "adapter_model.safetensors").unlink()
    with pytest.raises(HaggleError, match="holds no weights"):
        card(run)


def test_a_readme_written_by_hand_is_not_overwritten(run: Path) -> None:
    out = run / "README.md"
    write_card(run, out)
    assert own_card(out)
    write_card(run, out)
    out.write_text("# mine\n", encoding="utf-8")
    with pytest.raises(HaggleError, match="not written by this command"):
        write_card(run, out)
    assert out.read_text(encoding="utf-8") == "# mine\n"


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("Apache-2.0", "apache-2.0"),
        ("MIT", "mit"),
        ("Gemma Terms of Use", "gemma"),
        ("Llama 3.2 Community License", "llama3.2"),
        ("unknown", "other"),
        ("My Own Terms", "other"),
    ],
)
def test_licences_have_the_hub_s_names(run: Path, licence: str, expected: str) -> None:
    assert hub_licence(licence)[0] == expected
    configure(run, CONFIG | {"resolved": CONFIG["resolved"] | {"licence": licence}})
    head = head_of(card(run))
    assert head["license"] == expected
    assert head.get("license_name") == (licence if expected == "other" else None)


def test_every_known_base_s_licence_has_a_name_on_the_hub() -> None:
    from haggle.weights.models import KNOWN

    assert all(hub_licence(known.licence)[0] != "other" for known in KNOWN.values())


def test_a_base_given_as_a_directory_keeps_its_name_alone(run: Path) -> None:
    own = {"base": f"{HOME}/my-base", "resolved": {"base_source": "directory"}}
    (run / "adapter" / "haggle_adapter.json").unlink()
    configure(run, CONFIG | own)
    text = card(run)
    assert head_of(text)["base_model"] == "my-base" and "| licence | unknown |" in text
    assert "Small (" not in text  # the name does not say how large it is


def test_all_weights_trained_are_no_adapter(run: Path) -> None:
    configure(run, CONFIG | {"full_finetuning": True})
    (run / "model").mkdir()
    (run / "model" / "model.safetensors").write_bytes(b"all")
    text = card(run)
    head = head_of(text)
    assert head["library_name"] == "transformers" and "lora" not in head["tags"]
    assert "model: ./merchant/model" in text and "adapter:" not in text


def test_the_code_it_shows_fits_the_package(run: Path) -> None:
    import inspect

    from haggle.trade.merchant import Merchant
    from haggle.trade.records import TurnRecord

    text = card(run)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code.split("\n\n")[0], "card", "exec"), {})  # the imports
    assert "guard" in inspect.signature(Merchant).parameters
    assert {"response", "cart"} <= TurnRecord.model_fields.keys()
    (config,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    from serving.engines import EngineConfig

    assert EngineConfig.model_validate(yaml.safe_load(config)).adapter == Path("merchant/adapter")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HuggingFaceTB/SmolLM2", "HuggingFaceTB/SmolLM2"),
        ("mine-Q8_0", "mine-Q8_0"),
        ("/a/b/mine", "mine"),
        ("./mine", "mine"),
        ("runs/model/mine", "mine"),
        ("C:\\models\\mine", "mine"),
    ],
)
def test_names_lose_the_path_of_the_machine(text: str, expected: str) -> None:
    assert plain_name(text) == expected


def test_the_command_writes_beside_the_run(run: Path, tmp_path: Path) -> None:
    turns = measured(tmp_path / "turns", TURNS)
    line = ["card", str(run / "adapter"), "--measures", str(turns), "--name", "Odalys"]
    ran = CliRunner().invoke(app, line)
    assert ran.exit_code == 0, ran.output
    assert "# Odalys" in (run / "README.md").read_text(encoding="utf-8")
    ran = CliRunner().invoke(app, [*line, "--out", str(tmp_path / "new.md")])
    assert ran.exit_code == 0 and (tmp_path / "new.md").is_file()

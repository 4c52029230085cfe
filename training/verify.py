"""Compare exported files with the model they came from: logits, and llama.cpp's answers."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.chat_template import render
from haggle.models import BaseModel
from training.data import Messages

if TYPE_CHECKING:
    import torch

PROBE_TOKENS = 40
PROBE_TIMEOUT_S = 300
_SHOP = (
    "You are Wenda, who sells tools in a harbour town. Currency: silver.\n"
    "Answer with JSON only: last, state, then show, cart or bid, then say.\n"
    "For sale:\nCopper Kettle 45\nWool Blanket 30\nFishing Net 120\nTin Cup 8"
)
PROBES: tuple[Messages, ...] = (
    [
        {"role": "system", "content": _SHOP},
        {"role": "user", "content": "cart []\nplayer: What have you got today?"},
    ],
    [
        {"role": "system", "content": _SHOP},
        {"role": "user", "content": "cart []\nplayer: Two tin cups and a net, please."},
    ],
    [
        {"role": "system", "content": _SHOP},
        {"role": "user", "content": 'cart [["Wool Blanket",3]] price 90\nplayer: Agreed.'},
    ],
)


@dataclass(frozen=True, slots=True)
class Check:
    """How close a file read back is to the merged original in float32.

    Over all positions of the probes and the original's own greedy answers: largest difference of a
    logit, share of positions with the same most likely token, mean KL divergence in nats.
    `greedy_prefix` is the share of the original's greedy answer that llama.cpp gives before the
    first other token; `load_s` and `tokens_per_s` are llama.cpp's own.
    """

    max_abs_diff: float
    top1_agreement: float
    mean_kl: float
    ok: bool
    greedy_prefix: float | None = None
    load_s: float | None = None
    tokens_per_s: float | None = None


# Largest mean KL that still counts as the same model; 4 and 5 bits lose more by their nature.
_KL_LIMITS = {"adapter": 0.01, "merged": 0.01, "Q8_0": 0.02, "F16": 0.01}
_KL_LIMIT_COARSE = 0.5


def verify_export(
    model: Any,
    base: BaseModel | None,
    adapter: Path | None,
    merged: Path,
    ggufs: dict[str, Path],
    echo: Callable[[str], None] = print,
) -> dict[str, Check]:
    """Read every exported file back and compare it with `model`, the merged original in float32."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(merged)
    prompts = [render(messages) for messages in PROBES]
    rows, answers = _greedy(model, tokenizer, prompts)
    reference = _logits(model, rows)
    checks: dict[str, Check] = {}

    def compare(name: str, other: Any) -> None:
        checks[name] = check = _compare(name, reference, _logits(other, rows))
        echo(
            f"{name}: largest difference {check.max_abs_diff:.3g}, same top token "
            f"{check.top1_agreement:.1%}, KL {check.mean_kl:.2g}"
        )

    if adapter is not None and base is not None:
        plain = AutoModelForCausalLM.from_pretrained(base.path, dtype=torch.float32)
        compare("adapter", PeftModel.from_pretrained(plain, str(adapter)).eval())
        del plain
    compare("merged", AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32).eval())
    for name, path in ggufs.items():
        loaded = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        )
        compare(name, loaded.eval())
        del loaded
        told = probe_llama(path, prompts, PROBE_TOKENS)
        if told is None:
            echo(f"{name}: llama.cpp is not installed, not tried")
            continue
        prefix = _common_prefix(answers, told["ids"])
        checks[name] = replace(
            checks[name],
            greedy_prefix=round(prefix, 4),
            load_s=told["load_s"],
            tokens_per_s=told["tokens_per_s"],
        )
        echo(f"{name}: llama.cpp loads it in {told['load_s']} s, same greedy start {prefix:.0%}")
    return checks


def probe_llama(
    gguf: Path, prompts: Sequence[str], max_tokens: int, lora: Path | None = None
) -> dict[str, Any] | None:
    """Greedy answers of llama.cpp in a process of its own; None when it is not installed.

    Raises HaggleError when llama.cpp cannot load or run the file.
    """
    from importlib.util import find_spec

    from haggle.errors import HaggleError

    if find_spec("xllamacpp") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "requests.json", Path(folder) / "answers.json"
        request = {"prompts": list(prompts), "max_tokens": max_tokens}
        asked.write_text(json.dumps(request), encoding="utf-8")
        command = [sys.executable, "-m", "training.llama_probe", str(gguf), str(asked)]
        command += [str(answered)] + (["--lora", str(lora)] if lora else [])
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=PROBE_TIMEOUT_S,
                cwd=Path(__file__).resolve().parent.parent,
            )
            code, said = done.returncode, done.stderr.strip().splitlines()[-1:]
        except subprocess.TimeoutExpired:
            code, said = -1, [f"no answer within {PROBE_TIMEOUT_S} s"]
        if code != 0 or not answered.is_file():
            raise HaggleError(
                "llama.cpp cannot run it: " + (said[0] if said else f"exit code {code}"),
                where=str(gguf),
                hint="export with another quantisation, and report this one",
            )
        result: dict[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
        return result


def _greedy(
    model: Any, tokenizer: Any, prompts: Sequence[str]
) -> tuple[list[torch.Tensor], list[list[int]]]:
    """Each prompt with the model's greedy answer behind it, and the answers alone (token ids)."""
    import torch

    rows, answers = [], []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            row = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=PROBE_TOKENS,
                do_sample=False,
                pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id,
            )[0]
        rows.append(row)
        ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
        answers.append([token for token in row[ids.shape[1] :].tolist() if token not in ends])
    return rows, answers


def _logits(model: Any, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Logits of every position of every row, (positions, vocabulary), float32."""
    import torch

    with torch.inference_mode():
        return torch.cat([model(row[None], use_cache=False).logits[0].float() for row in rows])


def _compare(name: str, reference: torch.Tensor, other: torch.Tensor) -> Check:
    import torch

    other = other[:, : reference.shape[1]]
    expected, got = reference.log_softmax(-1), other.log_softmax(-1)
    kl = torch.nn.functional.kl_div(got, expected, log_target=True, reduction="none").sum(-1)
    mean = float(kl.mean())
    return Check(
        max_abs_diff=float((reference - other).abs().max()),
        top1_agreement=float((reference.argmax(-1) == other.argmax(-1)).float().mean()),
        mean_kl=mean,
        ok=mean <= _KL_LIMITS.get(name, _KL_LIMIT_COARSE),
    )


def _common_prefix(answers: Sequence[Sequence[int]], told: Sequence[Sequence[int]]) -> float:
    """Share of the reference answers' tokens that come before the first difference."""
    same = 0
    for answer, other in zip(answers, told, strict=True):
        for mine, theirs in zip(answer, other, strict=False):
            if mine != theirs:
                break
            same += 1
    return same / max(1, sum(len(answer) for answer in answers))

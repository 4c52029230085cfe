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

from haggle.weights.chat_template import render
from haggle.weights.models import BaseModel
from training.templates import Messages

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

    In transformers, over all positions of the probes and the original's own greedy answers: largest
    difference of a logit, share of positions with the same most likely token, mean KL divergence in
    nats. In llama.cpp, over those answers alone: `greedy_prefix` is the share that it gives itself
    before the first other token, `next_token` the share of tokens that it would choose as well,
    given all before them; `load_s` and `tokens_per_s` are its own. None: not looked at.
    """

    ok: bool
    max_abs_diff: float | None = None
    top1_agreement: float | None = None
    mean_kl: float | None = None
    greedy_prefix: float | None = None
    next_token: float | None = None
    load_s: float | None = None
    tokens_per_s: float | None = None


# Largest mean KL that still counts as the same model; 4 and 5 bits lose more by their nature.
_KL_LIMITS = {"adapter": 0.01, "merged": 0.01, "Q8_0": 0.02, "F16": 0.01}
_KL_LIMIT_COARSE = 0.5
# A LoRA in GGUF on its base: 97% for a SmolLM2-135M on Q4_1, 44% for that base without it.
_LORA_LIMIT = 0.85


def verify_export(
    model: Any,
    base: BaseModel | None,
    adapter: Path | None,
    merged: Path,
    ggufs: dict[str, Path],
    echo: Callable[[str], None] = print,
    lora: tuple[Path, Path] | None = None,
) -> dict[str, Check]:
    """Read every exported file back and compare it with `model`, the merged original in float32.

    `lora` are the base and the adapter as GGUF, which llama.cpp runs together. Raises HaggleError
    when llama.cpp cannot load a file.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(merged)
    prompts = [render(messages) for messages in PROBES]
    rows, references = _greedy(model, tokenizer, prompts)
    reference = _logits(model, rows)
    checks: dict[str, Check] = {}

    def compare(name: str, other: Any) -> None:
        checks[name] = check = _compare(name, reference, _logits(other, rows))
        echo(
            f"{name}: largest difference {check.max_abs_diff:.3g}, same top token "
            f"{check.top1_agreement:.1%}, KL {check.mean_kl:.2g}"
        )

    def ask_llama(name: str, gguf: Path, lora: Path | None = None) -> dict[str, Any]:
        told = probe_llama(gguf, prompts, PROBE_TOKENS, lora, references)
        if told is None:
            echo(f"{name}: llama.cpp is not installed, not tried")
            return {}
        answers = [answer for _, answer in references]
        prefix = _common_prefix(answers, told["ids"])
        same = _same_tokens(answers, told["next_tokens"])
        echo(
            f"{name}: llama.cpp loads it in {told['load_s']} s, same greedy start {prefix:.0%}, "
            f"same next token {same:.0%}"
        )
        own = {key: told[key] for key in ("load_s", "tokens_per_s")}
        return {"greedy_prefix": round(prefix, 4), "next_token": round(same, 4), **own}

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
        checks[name] = replace(checks[name], **ask_llama(name, path))
    if lora is not None and (told := ask_llama(lora[1].name, *lora)):
        checks[lora[1].name] = Check(ok=told["next_token"] >= _LORA_LIMIT, **told)
    return checks


def probe_llama(
    gguf: Path,
    prompts: Sequence[str],
    max_tokens: int,
    lora: Path | None = None,
    references: Sequence[tuple[list[int], list[int]]] = (),
) -> dict[str, Any] | None:
    """Greedy answers of llama.cpp in a process of its own; None when it is not installed.

    `references` are ids of a prompt and of an answer (see `training.llama_probe`). Raises
    HaggleError when llama.cpp cannot load or run the file.
    """
    from importlib.util import find_spec

    from haggle.core.errors import HaggleError

    if find_spec("xllamacpp") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "requests.json", Path(folder) / "answers.json"
        request = {"prompts": list(prompts), "max_tokens": max_tokens, "references": references}
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
) -> tuple[list[torch.Tensor], list[tuple[list[int], list[int]]]]:
    """Each prompt with the model's greedy answer behind it; and the ids of both, apart, the
    answer's without its end of turn."""
    import torch

    rows, references = [], []
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
        answer = [token for token in row[ids.shape[1] :].tolist() if token not in ends]
        references.append((ids[0].tolist(), answer))
    return rows, references


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
        ok=mean <= _KL_LIMITS.get(name, _KL_LIMIT_COARSE),
        max_abs_diff=float((reference - other).abs().max()),
        top1_agreement=float((reference.argmax(-1) == other.argmax(-1)).float().mean()),
        mean_kl=mean,
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


def _same_tokens(answers: Sequence[Sequence[int]], told: Sequence[Sequence[int | None]]) -> float:
    """Share of the reference answers' tokens in whose place another engine puts the same."""
    pairs = [
        pair for answer, other in zip(answers, told, strict=True)
        for pair in zip(answer, other, strict=True)
    ]  # fmt: skip
    return sum(mine == theirs for mine, theirs in pairs) / max(1, len(pairs))

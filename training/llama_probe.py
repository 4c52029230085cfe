"""Load a GGUF in llama.cpp and continue some prompts greedily; a process of its own, as llama.cpp
ends the process it runs in when a model breaks it.

    python -m training.llama_probe model.gguf requests.json answers.json [--lora adapter.gguf]
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from pathlib import Path
from typing import Any


def _complete(server: Any, body: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = server.handle_completions(body)
    if "choices" not in result:
        raise SystemExit(f"llama.cpp refused a prompt: {result}")
    return result


def _next_token(server: Any, ids: list[int]) -> int | None:
    """The likeliest token behind `ids`; None where it is one without text, as an end of turn is."""
    body = {"prompt": ids, "max_tokens": 1, "temperature": 0.0, "logprobs": 1}
    told = (_complete(server, body)["choices"][0].get("logprobs") or {}).get("content") or ()
    return int(told[0]["id"]) if told else None


def main() -> None:
    """Read {"prompts": [...], "max_tokens": n}; write {"texts": [...], "ids": [...], ...}.

    With "references" (for each prompt the ids of the prompt and of another engine's answer) also
    "next_tokens": the token that llama.cpp would put in the place of each token of that answer.
    """
    parser = argparse.ArgumentParser(description="Continue prompts greedily in llama.cpp.")
    parser.add_argument("model", type=Path)
    parser.add_argument("requests", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--lora", type=Path, default=None)
    options = parser.parse_args()
    import xllamacpp

    asked = json.loads(options.requests.read_text(encoding="utf-8"))
    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.verbosity = -1
    params.warmup = False
    params.api_keys = [secrets.token_urlsafe(32)]
    params.ui = False
    if options.lora is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(options.lora), 1.0)]
    started = time.perf_counter()
    server = xllamacpp.Server(params)
    loaded = time.perf_counter() - started
    texts, ids, timings = [], [], []
    for prompt in asked["prompts"]:
        body = {
            "prompt": prompt,
            "max_tokens": asked["max_tokens"],
            "temperature": 0.0,
            "logprobs": 1,
        }
        result = _complete(server, body)
        choice = result["choices"][0]
        texts.append(choice["text"])
        ids.append([token["id"] for token in (choice.get("logprobs") or {}).get("content", ())])
        timings.append(result.get("timings", {}))
    next_tokens = [
        [_next_token(server, given + answer[:at]) for at in range(len(answer))]
        for given, answer in asked.get("references", ())
    ]
    prompt_n = sum(t.get("prompt_n", 0) for t in timings)
    prompt_ms = sum(t.get("prompt_ms", 0) for t in timings)
    made_n = sum(t.get("predicted_n", 0) for t in timings)
    made_ms = sum(t.get("predicted_ms", 0) for t in timings)
    answers = {
        "texts": texts,
        "ids": ids,
        "next_tokens": next_tokens,
        "load_s": round(loaded, 3),
        "prompt_tokens_per_s": round(1000 * prompt_n / prompt_ms, 1) if prompt_ms else None,
        "tokens_per_s": round(1000 * made_n / made_ms, 1) if made_ms else None,
    }
    options.answers.write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()

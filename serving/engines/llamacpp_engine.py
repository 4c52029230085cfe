"""llama.cpp in this process, through xllamacpp: the engine for laptops and games."""

from __future__ import annotations

import contextlib
import logging
import math
import mmap
import queue
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from haggle.core.codec import ActionSpec, is_regular, to_gbnf, to_lark, to_schema
from haggle.core.engine import Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.weights.chat_template import FAMILIES, Family, family_of
from haggle.weights.gguf_file import check_gguf
from haggle.weights.models import locate_base
from serving.engines.common import (
    CHATML_MARK,
    check_output,
    keeps_constraint,
    prompt_text,
    safe_messages,
)
from serving.engines.config import EngineConfig

log = logging.getLogger(__name__)

Notation = Literal["llguidance", "gbnf"]
LLGUIDANCE = "%llguidance {}\n"
GGUF_MAGIC = b"GGUF"
BOS_KEY = "tokenizer.ggml.bos_token_id"
TEMPLATE_KEY = "tokenizer.chat_template"
SILENT = -1


class LlamaCppEngine:
    """A GGUF model with `parallel` slots; a slot keeps its last prompt, so prefixes are reused."""

    name = "llamacpp"

    def __init__(self, config: EngineConfig) -> None:
        import xllamacpp

        self.config = config
        self.path = gguf_file(config)
        self.model = self.path.stem
        self.slots = config.parallel
        self.family = _family(config, self.path)
        opens = self.family is not None and self.family.bos
        self.bos = gguf_number(self.path, BOS_KEY) if opens else None
        params = server_params(xllamacpp, config, self.path)
        # xllamacpp always opens an HTTP port on the loopback as well: nobody gets the key to it.
        params.api_keys = [secrets.token_urlsafe(32)]
        self._server = start_server(xllamacpp, params, self.path)
        self._pool = ThreadPoolExecutor(self.slots, thread_name_prefix="llamacpp")
        self.notation: Notation = self._choose_notation(xllamacpp)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer a batch, `parallel` requests at a time.

        Raises HaggleError when a prompt does not fit the context or a grammar was not obeyed.
        """
        self._running()
        return list(self._pool.map(self._complete, requests))

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it is made, then the Generation. Closing the iterator stops it."""
        events: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()
        stopped = threading.Event()

        def receive(event: dict[str, Any]) -> bool:
            events.put(event)
            return stopped.is_set()

        def run() -> None:
            try:
                self._ask(self._body(request, self.notation) | {"stream": True}, receive)
                events.put(None)
            except Exception as error:  # raised again where the stream is read
                events.put(error)

        start = time.perf_counter()
        self._running()
        self._pool.submit(run)
        answer = _Answer()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                if piece := answer.add(self._checked(event)):
                    yield piece
        finally:
            stopped.set()
        generation = answer.generation(time.perf_counter() - start)
        check_output(request, generation.text, generation.finish_reason, self.name)
        yield generation

    def warm(self, messages: Sequence[Message]) -> int:
        """Evaluate a prompt's beginning (the system message) ahead of time; returns its tokens."""
        request = GenerationRequest(tuple(messages), max_tokens=1)
        with ThreadPoolExecutor(self.slots) as pool:
            counts = pool.map(
                lambda slot: self._complete(request, slot=slot).prompt_tokens, range(self.slots)
            )
            return max(counts)

    def close(self) -> None:
        """Stop llama.cpp and free the model."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._server = None

    def _complete(
        self, request: GenerationRequest, *, slot: int = -1, notation: Notation | None = None
    ) -> Generation:
        notation = notation or self.notation
        start = time.perf_counter()
        body = self._body(request, notation)
        if slot >= 0:
            body["id_slot"] = slot
        answer = _Answer()
        answer.add(self._checked(self._ask(body)))
        generation = answer.generation(time.perf_counter() - start)
        if keeps_constraint(request, generation.text, generation.finish_reason):
            return generation
        if notation == "llguidance":
            log.warning("llama.cpp ignored the llguidance grammar; using GBNF from now on")
            self.notation = "gbnf"
            return self._complete(request, slot=slot, notation="gbnf")
        check_output(request, generation.text, generation.finish_reason, self.name)
        return generation

    def _running(self) -> Any:
        if self._server is None:
            raise HaggleError("the engine was closed", where=self.name)
        return self._server

    def _ask(self, body: dict[str, Any], callback: Any = None) -> dict[str, Any]:
        server = self._running()
        ask = server.handle_completions if self.family else server.handle_chat_completions
        result: dict[str, Any] = ask(body, callback) if callback else ask(body)
        return result

    def _body(self, request: GenerationRequest, notation: Notation) -> dict[str, Any]:
        """The request as llama.cpp's server takes it."""
        body: dict[str, Any] = {
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "cache_prompt": True,
        }
        if family := self.family:
            text = prompt_text(request.messages, (CHATML_MARK, *family.tokens), family)
            # As a token: whether llama.cpp puts one before a text depends on the model file.
            first = [self.bos] if family.bos and self.bos is not None else []
            body["prompt"] = [*first, text.removeprefix(family.bos)] if first else text
        else:
            body["messages"] = [
                {"role": m.role, "content": m.content} for m in safe_messages(request.messages)
            ]
        if request.constraint is not None:
            body |= grammar_fields(request.constraint, notation)
        if request.scored:
            body["logprobs"] = 1 if self.family else True
        return body

    def _checked(self, event: dict[str, Any]) -> dict[str, Any]:
        error = event.get("error") or (event if "message" in event and "code" in event else None)
        if not error:
            return event
        message = str(error.get("message", error))
        hint = "see the engine's log with `verbose: true`"
        if "context" in message and "exceed" in message:
            hint = "raise `context` in the serve config, or shorten the dialogue's history"
        raise HaggleError(f"llama.cpp refused the request: {message}", where=self.model, hint=hint)

    def _choose_notation(self, xllamacpp: Any) -> Notation:
        """llguidance where this build of llama.cpp has it and obeys it."""
        wanted = self.config.llamacpp.grammar
        if wanted == "gbnf":
            return "gbnf"
        # A build without llguidance ends the whole process when it meets such a grammar, so ask
        # first what it makes of a schema.
        made = str(xllamacpp.json_schema_to_grammar({"type": "boolean"}))
        if made.startswith("%llguidance"):
            probe = self._server.handle_completions(
                {"prompt": "x", "max_tokens": 1, "grammar": LLGUIDANCE + "start: /haggle/\n"}
            )
            text = self._checked(probe)["choices"][0]["text"]
            if text and "haggle".startswith(text):
                return "llguidance"
        if wanted == "llguidance":
            raise HaggleError(
                "this build of llama.cpp has no working llguidance",
                where="llamacpp.grammar",
                hint="set it to auto or gbnf",
            )
        return "gbnf"


class _Answer:
    """Collects what llama.cpp sends of one answer, whole or in pieces."""

    def __init__(self) -> None:
        self.text = ""
        self.finish: str | None = None
        self.usage: dict[str, Any] = {}
        self.timings: dict[str, Any] = {}
        self.scores: list[float] = []

    def add(self, event: dict[str, Any]) -> str:
        """Take in one event and return the text it brought."""
        self.usage = event.get("usage") or self.usage
        self.timings = event.get("timings") or self.timings
        piece = ""
        for choice in event.get("choices", ()):
            message = choice.get("message") or choice.get("delta") or {}
            piece += choice.get("text") or message.get("content") or ""
            self.finish = choice.get("finish_reason") or self.finish
            told = (choice.get("logprobs") or {}).get("content") or ()
            self.scores += [token["logprob"] for token in told if token["token"]]
        self.text += piece
        return piece

    def generation(self, latency_s: float) -> Generation:
        prompt = self.timings.get("cache_n", 0) + self.timings.get("prompt_n", 0)
        return Generation(
            text=self.text,
            prompt_tokens=self.usage.get("prompt_tokens", prompt),
            completion_tokens=self.usage.get(
                "completion_tokens", self.timings.get("predicted_n", 0)
            ),
            latency_s=latency_s,
            finish_reason="length" if self.finish == "length" else "stop",
            probability=math.exp(sum(self.scores)) if self.scores else None,
        )


def grammar_fields(constraint: ActionSpec, notation: Notation) -> dict[str, Any]:
    """The fields of a request that make llama.cpp keep to a constraint."""
    if notation == "llguidance":
        return {"grammar": LLGUIDANCE + to_lark(constraint)}
    if not is_regular(constraint):
        return {"json_schema": to_schema(constraint)}
    return {"grammar": to_gbnf(constraint)}


def _family(config: EngineConfig, gguf: Path) -> Family | None:
    """Whose markup to write; None to leave it to the template in the GGUF."""
    wanted = config.llamacpp.template
    if wanted in FAMILIES:
        return FAMILIES[wanted]
    if wanted == "model":
        return None
    with _mapped(gguf) as data:
        return family_of(gguf_text(gguf, TEMPLATE_KEY), lambda token: _has_text(data, token))


@contextlib.contextmanager
def _mapped(gguf: Path) -> Iterator[mmap.mmap]:
    with gguf.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _has_text(data: mmap.mmap, text: str) -> bool:
    """Whether a string stands in a GGUF as an entry of its own."""
    encoded = text.encode("utf-8")
    return data.find(len(encoded).to_bytes(8, "little") + encoded) >= 0


def gguf_number(gguf: Path, key: str) -> int | None:
    """An entry of type uint32 of a GGUF, found without reading its whole vocabulary."""
    encoded = key.encode("utf-8")
    with _mapped(gguf) as data:
        at = data.find(len(encoded).to_bytes(8, "little") + encoded)
        if at < 0:
            return None
        at += 8 + len(encoded) + 4
        return int.from_bytes(data[at : at + 4], "little")


def gguf_text(gguf: Path, key: str) -> str | None:
    """An entry of type string of a GGUF, found without reading its whole vocabulary."""
    encoded = key.encode("utf-8")
    with _mapped(gguf) as data:
        at = data.find(len(encoded).to_bytes(8, "little") + encoded)
        if at < 0:
            return None
        at += 8 + len(encoded) + 4
        length = int.from_bytes(data[at : at + 8], "little")
        return data[at + 8 : at + 8 + length].decode("utf-8", errors="replace")


def gguf_file(config: EngineConfig) -> Path:
    """The model file a config names. Raises HaggleError when there is none."""
    path = config.gguf
    if path is None and config.model.endswith(".gguf"):
        path = Path(config.model)
    if path is None:
        base = locate_base(config.model, gguf_first=True)
        if base.gguf_path is None:
            raise HaggleError(
                f"model {config.model!r} has no GGUF",
                where=str(base.path),
                hint="export one with `haggle export` and give it as `gguf`",
            )
        path = base.gguf_path
    path = Path(path).expanduser()
    if not path.is_file():
        raise HaggleError("no such model file", where=str(path), hint="check `gguf`")
    with path.open("rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise HaggleError("not a GGUF file", where=str(path), hint="give a .gguf file")
    return path


def server_params(xllamacpp: Any, config: EngineConfig, path: Path) -> Any:
    """llama.cpp's parameters for a config and its model file."""
    options = config.llamacpp
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = config.context * config.parallel
    params.n_parallel = config.parallel
    params.n_gpu_layers = options.gpu_layers
    params.cpuparams.n_threads = config.thread_count
    params.cpuparams_batch.n_threads = config.thread_count
    params.cache_ram_mib = options.cache_mib
    params.sampling.seed = config.seed
    params.verbosity = 3 if config.verbose else SILENT
    params.endpoint_slots = False
    params.ui = False
    if config.adapter is not None:
        adapter = _lora_file(config.adapter)
        params.lora_adapters = [
            xllamacpp.CommonAdapterLoraInfo(str(adapter), options.adapter_scale)
        ]
    return params


def start_server(xllamacpp: Any, params: Any, path: Path) -> Any:
    """llama.cpp, running. Raises HaggleError when it cannot load the model."""
    with _own_signals():
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            with contextlib.suppress(ImportError):
                check_gguf(path)  # says more precisely what is wrong with a file cut off
            raise HaggleError(
                f"llama.cpp cannot load the model: {error}",
                where=str(path),
                hint="see the reason with `verbose: true`; is there memory for this `context`?",
            ) from error


def _lora_file(adapter: Path) -> Path:
    """The LoRA GGUF: the file itself, or the only one in an adapter directory."""
    adapter = adapter.expanduser()
    files = sorted(adapter.glob("*.gguf")) if adapter.is_dir() else [adapter]
    if len(files) != 1 or not files[0].is_file():
        raise HaggleError(
            f"found {len(files) if adapter.is_dir() else 'no'} LoRA GGUF there",
            where=str(adapter),
            hint="give the .gguf file that `haggle export` wrote",
        )
    return files[0]


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Put Python's signal handlers back: llama.cpp's server takes Ctrl-C for itself."""
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if (handler := signal.getsignal(number)) is not None:
                    signal.signal(number, handler)

"""llama.cpp in this process, through xllamacpp: the engine for laptops and games."""

from __future__ import annotations

import contextlib
import copy
import logging
import queue
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from haggle.core.codec import (
    ActionSpec,
    is_regular,
    node_gbnf,
    node_lark,
    to_gbnf,
    to_lark,
    to_node,
    to_schema,
)
from haggle.core.engine import Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.grammar.forced import DONE, after, forced, is_free
from haggle.grammar.nodes import Node
from haggle.weights.chat_template import FAMILIES, Family, behind_system, family_of
from haggle.weights.gguf_file import check_gguf
from haggle.weights.models import locate_base
from serving.engines.common import (
    CHATML_MARK,
    adapter_name,
    check_output,
    keeps_constraint,
    prompt_text,
    safe_messages,
)
from serving.engines.config import EngineConfig
from serving.engines.forcing import next_open
from serving.engines.gguf import gguf_number, gguf_text, has_text, lora_file, mapped, vocabulary
from serving.engines.llamacpp_answer import Answer, Emit
from serving.engines.slots import Slots, answers_at_once

log = logging.getLogger(__name__)

Notation = Literal["llguidance", "gbnf"]
LLGUIDANCE = "%llguidance {}\n"
GGUF_MAGIC = b"GGUF"
BOS_KEY = "tokenizer.ggml.bos_token_id"
TEMPLATE_KEY = "tokenizer.chat_template"
SILENT = -1
QUOTE, LAST_QUOTE = '"', '"}'


class LlamaCppEngine:
    """A GGUF model with `parallel` slots; a slot keeps its last prompt, so prefixes are reused.

    Of several `adapters` the first one answers; `with_adapter` lets another one answer.
    """

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
        self.vocabulary = vocabulary(self.path) if self.family else None
        self.adapter = next(iter(config.adapters), "")
        self._slots = Slots(self.slots)
        kinds = [device["type"].name for device in xllamacpp.get_device_info()]
        on_gpu = config.llamacpp.gpu_layers != 0 and any("GPU" in kind for kind in kinds)
        together = answers_at_once(self.slots, config.thread_count, on_gpu)
        self._pool = ThreadPoolExecutor(together, thread_name_prefix="llamacpp")
        self.notation: Notation = self._choose_notation(xllamacpp)

    def with_adapter(self, name: str) -> LlamaCppEngine:
        """The same model, loaded once, where the adapter `name` answers; closed with this one.

        Slots hold prompts as an adapter reads them, so each dialogue keeps to its own slot.
        """
        other = copy.copy(self)
        other.adapter = adapter_name(self.config, name)
        return other

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer a batch: two requests a thread at a time, on a GPU `parallel`.

        Raises HaggleError when a prompt does not fit the context or a grammar was not obeyed.
        """
        self._running()
        return list(self._pool.map(self._answer, requests))

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it is made, then the Generation. Closing the iterator stops it."""
        pieces: queue.Queue[str | Generation | Exception] = queue.Queue()
        stopped = threading.Event()

        def emit(piece: str) -> bool:
            pieces.put(piece)
            return stopped.is_set()

        def run() -> None:
            try:
                pieces.put(self._answer(request, emit))
            except Exception as error:  # raised again where the stream is read
                pieces.put(error)

        self._running()
        self._pool.submit(run)
        try:
            while isinstance(piece := pieces.get(), str):
                yield piece
        finally:
            stopped.set()
        if isinstance(piece, Exception):
            raise piece
        yield piece

    def warm(self, messages: Sequence[Message]) -> int:
        """Evaluate a prompt's beginning (the system message) ahead of time, in one idle slot, for
        who speaks first after it; returns its tokens, 0 where all slots are busy."""
        body, answer = self._body(GenerationRequest(tuple(messages), max_tokens=1)), Answer()
        beginning = self._said(body)
        if self.family:
            beginning = beginning.removesuffix(behind_system(self.family))
        with self._slots.taken(beginning) as slot:
            if slot is not None:
                self._ask(body | {"id_slot": slot}, answer)
        return answer.prompt_tokens

    def _said(self, body: dict[str, Any]) -> str:
        """A request as a text that the next one of its conversation begins with."""
        prompt = body.get("prompt", str(body.get("messages"))[:-1])
        text: str = prompt if isinstance(prompt, str) else prompt[-1]
        return f"{self.adapter}\n{text}"

    def close(self) -> None:
        """Stop llama.cpp and free the model."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._server = None

    def _answer(self, request: GenerationRequest, emit: Emit | None = None) -> Generation:
        """Answer one request; each piece of text goes to `emit`, which says whether to stop."""
        start, answer = time.perf_counter(), Answer(emit)
        notation, constraint = self.notation, request.constraint
        body = self._body(request)
        with self._slots.held(self._said(body)) as slot:
            body["id_slot"] = slot
            if constraint is None:
                self._ask(body, answer)
            elif self.vocabulary is not None and is_regular(constraint):
                self._fill(request, body, to_node(constraint), answer)
            else:
                self._ask(body | grammar_fields(constraint, notation), answer)
        generation = answer.generation(time.perf_counter() - start)
        if answer.stopped or keeps_constraint(request, answer.text, generation.finish_reason):
            return generation
        if notation == "llguidance" and emit is None:
            log.warning("llama.cpp ignored the llguidance grammar; using GBNF from now on")
            self.notation = "gbnf"
            return self._answer(request)
        check_output(request, answer.text, generation.finish_reason, self.name)
        return generation

    def _fill(
        self, request: GenerationRequest, body: dict[str, Any], grammar: Node, answer: Answer
    ) -> None:
        """Let the model choose in the open spans alone; forced text is handed to it as it is."""
        vocabulary = self.vocabulary
        assert vocabulary is not None
        write = node_lark if self.notation == "llguidance" else node_gbnf
        asked, at_once = 0, False
        while (span := next_open(vocabulary, grammar)).grammar != DONE:
            answer.force(span.text, vocabulary)
            room = request.max_tokens - answer.tokens
            if room < 1 or answer.stopped:
                answer.finish = "length"
                return
            ahead, beyond = forced(span.grammar)
            free, said = is_free(beyond), len(answer.text)
            stop = LAST_QUOTE if ahead else QUOTE
            fields = {
                "prompt": _joined(body["prompt"], answer.text),
                "grammar": LLGUIDANCE * (write is node_lark) + write(span.grammar),
                "max_tokens": room if free or at_once else 1,
                "seed": request.seed + asked,
            }
            self._ask(body | fields | ({"stop": [stop]} if free else {}), answer)
            asked += 1
            if free and answer.finish == "length":
                return
            if free and after(span.grammar, answer.text[said:] + stop) is not None:
                answer.force(stop, vocabulary)  # llama.cpp keeps it to itself
            if (rest := after(span.grammar, answer.text[said:])) is None:
                return  # outside the grammar
            at_once = len(answer.text) == said  # a piece of a character alone: ask for more
            grammar = rest
        answer.force(span.text, vocabulary)
        answer.finish = "stop"

    def _running(self) -> Any:
        if self._server is None:
            raise HaggleError("the engine was closed", where=self.name)
        return self._server

    def _ask(self, body: dict[str, Any], answer: Answer) -> None:
        server = self._running()
        ask = server.handle_completions if self.family else server.handle_chat_completions
        if answer.emit is None:
            answer.add(self._checked(ask(body)))
            return
        failures: list[HaggleError] = []

        def receive(event: dict[str, Any]) -> bool:
            try:
                answer.add(self._checked(event))
            except HaggleError as error:  # nothing may be raised through llama.cpp
                failures.append(error)
            return answer.stopped or bool(failures)

        ask(body | {"stream": True}, receive)
        if failures:
            raise failures[0]

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """The request as llama.cpp's server takes it, but for its grammar."""
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
        if self.adapter:
            scale = self.config.llamacpp.adapter_scale
            body["lora"] = [
                {"id": number, "scale": scale if name == self.adapter else 0.0}
                for number, name in enumerate(self.config.adapters)
            ]
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


def _joined(prompt: str | list[Any], text: str) -> str | list[Any]:
    """A prompt, which may begin with a token, and the answer so far."""
    return prompt + text if isinstance(prompt, str) else [*prompt[:-1], prompt[-1] + text]


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
    with mapped(gguf) as data:
        return family_of(gguf_text(gguf, TEMPLATE_KEY), lambda token: has_text(data, token))


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
    adapters = list(config.adapters.values()) or ([config.adapter] if config.adapter else [])
    params.lora_adapters = [
        xllamacpp.CommonAdapterLoraInfo(str(lora_file(adapter)), options.adapter_scale)
        for adapter in adapters
    ]
    return params


def start_server(xllamacpp: Any, params: Any, path: Path) -> Any:
    """llama.cpp, running. Raises HaggleError when it cannot load the model."""
    with _own_signals():
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            with contextlib.suppress(ImportError):
                for file in (path, *(Path(lora.path) for lora in params.lora_adapters)):
                    check_gguf(file)  # says more precisely what is wrong with a file cut off
            raise HaggleError(
                f"llama.cpp cannot load the model: {error}",
                where=str(path),
                hint="see the reason with `verbose: true`; is there memory for this `context`?",
            ) from error


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

"""Any endpoint that speaks the OpenAI chat protocol: vLLM, llama.cpp's server, hosted services."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import openai

from haggle.core.codec import to_schema
from haggle.core.engine import GenerationRequest
from haggle.core.errors import HaggleError
from serving.engines.accounting import Reply
from serving.engines.common import safe_messages
from serving.engines.config import EngineConfig
from serving.engines.remote import (
    Pieces,
    RemoteEngine,
    Transient,
    ended_early,
    retry_after,
    transport_errors,
)

SCHEMA_NAME = "answer"
NO_KEY = "none"  # servers without keys still get a header; the client insists on one


class OpenAIEngine(RemoteEngine):
    """Chat completions of `model` at `openai.base_url`."""

    name = "openai"

    def __init__(self, config: EngineConfig) -> None:
        self.service = config.openai
        if not self.service.base_url:
            raise HaggleError(
                "base_url is missing",
                where="openai",
                hint="set the endpoint, e.g. base_url: http://127.0.0.1:8080/v1",
            )
        super().__init__(config, self.service)
        self._client = openai.OpenAI(
            base_url=self.service.base_url,
            api_key=self._key or NO_KEY,
            timeout=self.service.timeout_s,
            max_retries=0,
        )
        # The client takes these from the environment, whatever service it speaks to.
        self._client.organization = self._client.project = None
        self._lost_errors = transport_errors()

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        service = self.service
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": m.role, "content": m.content} for m in safe_messages(request.messages)
            ],
            service.limit_field: request.max_tokens + service.thought_room,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if request.constraint is not None and service.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        if request.constraint is not None and service.structured == "json_schema":
            schema = {
                "name": SCHEMA_NAME,
                "strict": service.strict,
                "schema": to_schema(request.constraint),
            }
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body = {field: value for field, value in body.items() if field not in service.omit}
        return body | {"extra_body": service.extra_body} if service.extra_body else body

    def _ask(self, body: dict[str, Any]) -> Reply:
        try:
            raw = self._client.chat.completions.with_raw_response.create(**body)
            text = raw.http_response.text
        except (openai.OpenAIError, *self._lost_errors) as error:
            raise self._fault(error) from None
        try:
            data = json.loads(text)
        except ValueError:
            raise self._no_json(text) from None
        choice = self._choice(data)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise self._incomplete("message")
        return _reply(message.get("content") or "", choice.get("finish_reason"), data)

    def _pieces(self, body: dict[str, Any]) -> Pieces:
        streamed = body | {"stream": True}
        if "stream_options" not in self.service.omit:
            streamed["stream_options"] = {"include_usage": True}
        text, finish = "", None
        last: dict[str, Any] = {}
        try:
            with closing(self._client.chat.completions.create(**streamed)) as chunks:
                for chunk in chunks:
                    event = chunk.model_dump() if hasattr(chunk, "model_dump") else {}
                    last |= {k: v for k in ("model", "usage") if (v := event.get(k))}
                    for choice in event.get("choices") or ():
                        finish = choice.get("finish_reason") or finish
                        piece = (choice.get("delta") or {}).get("content") or ""
                        text += piece
                        if piece:
                            yield piece
        except (openai.OpenAIError, *self._lost_errors) as error:
            raise self._fault(error) from None
        except ValueError as error:
            raise self._no_json(str(error)) from None
        if finish is None:
            raise ended_early()
        yield _reply(text, finish, last)

    def _close_client(self) -> None:
        self._client.close()

    def _choice(self, data: Any) -> dict[str, Any]:
        choices = data.get("choices") if isinstance(data, dict) else None
        if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
            raise self._incomplete("choices")
        return choices[0]

    def _fault(self, error: Exception) -> Transient | HaggleError:
        if isinstance(error, openai.APIStatusError):
            message = _message(error)
            if error.code == "insufficient_quota":
                return self._broken(message, "the account has no credit left")
            return self._refused(error.status_code, message, retry_after(error.response.headers))
        if isinstance(error, (openai.APIConnectionError, *self._lost_errors)):
            return self._lost(error)
        # What a server says in the middle of a stream has no status.
        return Transient(self._hidden(str(error)), hint="see the server's own log")


def _reply(text: str, finish: str | None, data: dict[str, Any]) -> Reply:
    """A reply; reasoning tokens are taken out of the completion's, where they are among them."""
    usage = data.get("usage") or {}
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    thoughts = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    # Gemini's endpoint tells its thoughts only by a total that is larger than the sum.
    unsaid = _count(usage, "total_tokens") - prompt - completion
    return Reply(
        text=text,
        finish=str(finish or "stop"),
        truncated=finish == "length",
        version=str(data.get("model") or ""),
        prompt_tokens=prompt,
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
        completion_tokens=completion if unsaid > 0 else max(0, completion - thoughts),
        thought_tokens=max(unsaid, 0) or thoughts,
        counted=bool(usage),
    )


def _count(record: Any, field: str) -> int:
    value = record.get(field) if isinstance(record, dict) else None
    return value if isinstance(value, int) and value > 0 else 0


def _message(error: openai.APIStatusError) -> str:
    """The service's own words, from the forms of error bodies in use."""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return " ".join(str(body or error.message).split())

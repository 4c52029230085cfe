"""Google's Gemini through google-genai, with thoughts counted apart from the answer."""

from __future__ import annotations

import re
from typing import Any

from google import genai
from google.genai import errors, types

from haggle.core.codec import to_schema
from haggle.core.engine import GenerationRequest
from serving.engines.accounting import Reply
from serving.engines.config import EngineConfig
from serving.engines.remote import (
    Pieces,
    RemoteEngine,
    ended_early,
    retry_after,
    transport_errors,
)

BAD_KEY = "API_KEY_INVALID"
TRUNCATED = "MAX_TOKENS"
BLOCKED = "BLOCKED"


class GeminiEngine(RemoteEngine):
    """`model` of Google's service, or of whatever speaks its REST form at `gemini.base_url`."""

    name = "gemini"

    def __init__(self, config: EngineConfig) -> None:
        self.service = config.gemini
        super().__init__(config, self.service)
        self._client = genai.Client(
            api_key=self._key or "none",
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=self.service.base_url,
                api_version=self.service.api_version,
                timeout=round(self.service.timeout_s * 1000),
            ),
        )
        self._lost_errors = transport_errors()

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        service = self.service
        system = [m.content for m in request.messages if m.role == "system"]
        contents = [
            {
                "role": "model" if m.role == "assistant" else "user",
                "parts": [{"text": m.content}],
            }
            for m in request.messages
            if m.role != "system"
        ]
        config: dict[str, Any] = {
            "max_output_tokens": request.max_tokens + service.thought_room,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if system:
            config["system_instruction"] = "\n\n".join(system)
        if service.thinking_budget is not None:
            config["thinking_config"] = {"thinking_budget": service.thinking_budget}
        if service.thinking_level is not None:
            config["thinking_config"] = {"thinking_level": service.thinking_level.upper()}
        if request.constraint is not None and service.structured != "none":
            config["response_mime_type"] = "application/json"
            if service.structured == "json_schema":
                config["response_json_schema"] = to_schema(request.constraint)
        return {"model": self.model, "contents": contents, "config": config}

    def _ask(self, body: dict[str, Any]) -> Reply:
        collected = _Collected()
        try:
            collected.add(self._client.models.generate_content(**body))
        except Exception as error:
            raise self._fault(error) from None
        if not collected.finish:
            raise self._incomplete("candidates")
        return collected.reply()

    def _pieces(self, body: dict[str, Any]) -> Pieces:
        collected = _Collected()
        try:
            for response in self._client.models.generate_content_stream(**body):
                if piece := collected.add(response):
                    yield piece
        except Exception as error:
            raise self._fault(error) from None
        if not collected.finish:
            raise ended_early()
        yield collected.reply()

    def _close_client(self) -> None:
        self._client.close()

    def _fault(self, error: Exception) -> Exception:
        """What the client's error means; anything unknown is handed back as it is."""
        if isinstance(error, errors.APIError):
            message = str(error.message or error.details)
            if BAD_KEY in str(error.details):
                return self._broken(
                    f"HTTP {error.code}: {message}",
                    f"the key was not accepted: check {self.service.api_key_env}",
                )
            return self._refused(int(error.code), message, _asked_wait(error))
        if isinstance(error, self._lost_errors):
            return self._lost(error)
        if isinstance(error, ValueError):  # also what the client raises for a body it cannot read
            return self._no_json(str(error))
        return error


class _Collected:
    """Adds up what came of one answer, whole or in pieces; thoughts are left out of the text."""

    def __init__(self) -> None:
        self.text = ""
        self.finish = ""
        self.version = ""
        self.usage: Any = None

    def add(self, response: types.GenerateContentResponse) -> str:
        """Take in one response and return the text it brought."""
        self.version = response.model_version or self.version
        self.usage = response.usage_metadata or self.usage
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.finish = f"{BLOCKED}: {_name(feedback.block_reason)}"
        piece = ""
        for candidate in (response.candidates or [])[:1]:
            if candidate.finish_reason is not None:
                self.finish = _name(candidate.finish_reason)
            parts = (candidate.content.parts if candidate.content else None) or []
            piece += "".join(part.text for part in parts if part.text and not part.thought)
        self.text += piece
        return piece

    def reply(self) -> Reply:
        usage = self.usage or types.GenerateContentResponseUsageMetadata()
        return Reply(
            text=self.text,
            finish=self.finish,
            truncated=self.finish == TRUNCATED,
            version=self.version,
            prompt_tokens=usage.prompt_token_count or 0,
            cached_tokens=usage.cached_content_token_count or 0,
            completion_tokens=usage.candidates_token_count or 0,
            thought_tokens=usage.thoughts_token_count or 0,
            counted=self.usage is not None,
        )


def _name(value: Any) -> str:
    return str(getattr(value, "name", value))


def _asked_wait(error: errors.APIError) -> float | None:
    """Seconds the service asks to wait: by its header, or by RetryInfo in the body."""
    headers = getattr(error.response, "headers", None) or {}
    if (seconds := retry_after(headers)) is not None:
        return seconds
    found = re.search(r"'retryDelay': '([\d.]+)s'", str(error.details))
    return float(found[1]) if found else None

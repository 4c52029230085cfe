"""Errors over HTTP: what was wrong, where, what to do."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from haggle.core.config import Record
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import writable
from serving.store.database import StoreBusy, StoreError
from serving.store.repository import Conflict

_LOG = logging.getLogger(__name__)
BUSY_S = 1.0  # when to try again after a database that was busy


class Refused(HaggleError):
    """A request that cannot be carried out; `code` is the HTTP status.

    `retry_after` is after how many seconds it may succeed, `position` the place in the queue that
    was asked for and not given.
    """

    def __init__(
        self,
        code: int,
        message: str,
        where: str = "",
        hint: str = "",
        *,
        retry_after: float | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = int(code)
        self.retry_after = None if retry_after is None else max(1, round(retry_after))
        self.position = position

    @property
    def headers(self) -> dict[str, str]:
        """The headers of its answer."""
        if self.code == HTTPStatus.UNAUTHORIZED:
            return {"WWW-Authenticate": "Bearer"}
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class Told(Record):
    """What was wrong, where, what to do."""

    message: str
    where: str = ""
    hint: str = ""


class Problem(Record):
    """An error as JSON. `position` is the place in a queue that is full."""

    error: Told
    position: int | None = None


def problem_of(error: HaggleError) -> dict[str, str]:
    """An error in words: what was wrong, where, what to do."""
    told = {"message": error.message, "where": error.where, "hint": error.hint}
    return {key: writable(value) for key, value in told.items() if value}


def _body(error: HaggleError) -> dict[str, Any]:
    position = error.position if isinstance(error, Refused) else None
    place = {} if position is None else {"position": position}
    return {"error": problem_of(error), **place}


def refusal(error: HaggleError, otherwise: int = HTTPStatus.BAD_REQUEST) -> Refused:
    """An error as the Refused that answers it; `otherwise` is the status of one that has none."""
    if isinstance(error, Refused):
        return error
    code, seconds = otherwise, None
    if isinstance(error, Conflict):
        code = HTTPStatus.CONFLICT
    elif isinstance(error, StoreError):
        code = HTTPStatus.SERVICE_UNAVAILABLE
        seconds = BUSY_S if isinstance(error, StoreBusy) else None
    return Refused(code, error.message, error.where, error.hint, retry_after=seconds)


def event_of(error: HaggleError) -> dict[str, Any]:
    """An error as the last event of a stream tells it, with its status. `retry_after` is what the
    header of that name would say."""
    told = refusal(error)
    body = _body(told)
    seconds = {} if told.retry_after is None else {"retry_after": told.retry_after}
    return {**body.pop("error"), **body, **seconds, "status": told.code}


@contextmanager
def turn_errors() -> Iterator[None]:
    """Tell what breaks a turn off as a Refused: what engine or database cannot do is a 503."""
    try:
        yield
    except Refused:
        raise
    except HaggleError as error:
        raise refusal(error, HTTPStatus.SERVICE_UNAVAILABLE) from error
    except Exception as error:
        _LOG.exception("a turn broke off")
        raise Refused(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "the server failed",
            hint="its log says why; the session is as it was",
        ) from error


def _told(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HaggleError)
    told = refusal(error)
    return JSONResponse(_body(told), status_code=told.code, headers=told.headers)


def _told_by_the_framework(request: Request, error: Exception) -> JSONResponse:
    """An unknown route or method, in the same form, with the methods that a route knows."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    hint = f"use {allowed}; see /docs" if allowed else "see /docs"
    problem = HaggleError(str(error.detail), where=request.url.path, hint=hint)
    return JSONResponse(_body(problem), error.status_code, headers=error.headers)


def _told_unreadable(request: Request, error: Exception) -> JSONResponse:
    """A body that is not what it should be, in the same form."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    unknown = first["type"] == "extra_forbidden"
    known = [key for key in _keys_of_body(request) if key != where] if unknown else []
    problem = HaggleError(first["msg"], where=where, hint=nearest(where, known) or "see /docs")
    return JSONResponse(_body(problem), HTTPStatus.UNPROCESSABLE_ENTITY)


def _keys_of_body(request: Request) -> Iterable[str]:
    """The keys that the body of a request may have."""
    params = request.scope["route"].dependant.body_params
    return getattr(params[0].field_info.annotation, "model_fields", ()) if params else ()


def tell_errors(app: FastAPI) -> None:
    """Give all errors of an application one form."""
    app.add_exception_handler(HaggleError, _told)
    app.add_exception_handler(RequestValidationError, _told_unreadable)
    app.add_exception_handler(HTTPException, _told_by_the_framework)


def answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with, for the documentation."""
    return {code: {"model": Problem} for code in codes}

"""Errors over HTTP: what was wrong, where, what to do."""

from __future__ import annotations

from fastapi import Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from haggle.core.errors import HaggleError
from serving.http_sessions import Refused
from serving.store.database import StoreError


def problem_of(error: HaggleError) -> dict[str, str]:
    """An error as JSON has it."""
    said = {"message": error.message, "where": error.where, "hint": error.hint}
    return {key: value for key, value in said.items() if value}


def told(request: Request, error: Exception) -> JSONResponse:
    """A HaggleError as JSON: what was wrong, where, what to do."""
    assert isinstance(error, HaggleError)
    code = error.code if isinstance(error, Refused) else status.HTTP_400_BAD_REQUEST
    if isinstance(error, StoreError):
        code = status.HTTP_503_SERVICE_UNAVAILABLE
    return JSONResponse({"error": problem_of(error)}, status_code=code)


def told_by_the_framework(request: Request, error: Exception) -> JSONResponse:
    """An unknown route or method, in the same form."""
    assert isinstance(error, HTTPException)
    problem = {"message": error.detail, "where": request.url.path, "hint": "see /docs"}
    return JSONResponse({"error": problem}, status_code=error.status_code)


def told_unreadable(request: Request, error: Exception) -> JSONResponse:
    """A body that is not what it should be, in the same form."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    problem = {"message": first["msg"], "where": where, "hint": "see /docs"}
    return JSONResponse({"error": problem}, status_code=status.HTTP_422_UNPROCESSABLE_CONTENT)

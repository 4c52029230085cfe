"""The playground: a page to talk to the characters of a server (`haggle serve --ui`).

Plain HTML, CSS and ES modules over the HTTP contract. There is no build step and no CDN.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

HERE = Path(__file__).parent
# Browsers ask each time whether a file changed, so a new version shows at once.
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}


class _Assets(StaticFiles):
    """The page's files, with its headers."""

    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type]
        response.headers.update(HEADERS)
        return response


def mount(app: FastAPI) -> None:
    """Serve the page at `/` and its files at `/assets`."""

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(HERE / "index.html", headers=HEADERS)

    app.mount("/assets", _Assets(directory=HERE / "assets"), name="assets")

"""Shops: listed, created, edited, restocked, exported, and their ledgers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from haggle.core.errors import HaggleError
from haggle.trade.lines import listed
from haggle.trade.world import World
from haggle.trade.world_io import parse_world, with_confirmation, world_text
from serving.http.errors import Refused, answers
from serving.http.records import LedgerEntry, ShopEntry, ShopView, ledger_entry, shelf_of
from serving.http.server import Server
from serving.http.sessions import shop_id
from serving.store.shelves import Change, NameTaken, NoShop

Format = Literal["yaml", "json", "csv"]
MEDIA = {"yaml": "application/yaml", "json": "application/json", "csv": "text/csv"}
Heading = Annotated[str | None, Query(max_length=600)]
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/World"}},
            "application/yaml": {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}


def shop_routes(server: Server) -> APIRouter:
    """Routes of shops."""
    routes = APIRouter(prefix="/shops", tags=["shops"], responses=answers(404, 422, 503))
    episodes = server.episodes

    @routes.get("")
    def shops() -> list[ShopEntry]:
        """The shops that are served, oldest first."""
        worlds = (episodes.shop(number) for number in episodes.store.shops().values())
        return [
            ShopEntry(
                name=w.name, merchant=w.merchant.name, currency=w.currency, items=len(w.inventory)
            )
            for w in worlds
        ]

    @routes.post(
        "", status_code=HTTPStatus.CREATED, openapi_extra=BODY, responses=answers(400, 409, 415)
    )
    async def create(
        request: Request, name: Heading = None, merchant: Heading = None, currency: Heading = None
    ) -> ShopView:
        """Make a shop from JSON, YAML, or a CSV with one item a row. `name`, `merchant` and
        `currency` stand for the CSV's own headings."""
        headings = {"name": name, "merchant": merchant, "currency": currency}
        world = _read(await request.body(), _kind(request), headings)
        return await run_in_threadpool(put, world, "new")

    def put(world: World, change: Change) -> ShopView:
        world = with_confirmation(check_name(world), server.confirmation)
        try:
            episodes.put_shop(world, shared=True, change=change)
        except NameTaken as error:
            raise Refused(409, error.message, error.where, error.hint) from None
        except NoShop as error:
            raise Refused(404, error.message, error.where, error.hint) from None
        return look(world.name)

    @routes.get("/{name}")
    def look(name: str) -> ShopView:
        """A shop, with what it has left."""
        number = shop_id(server, name)
        definition, revision = episodes.definition(number)
        return ShopView(
            name=definition.name,
            merchant=definition.merchant,
            currency=definition.currency,
            shelf=shelf_of(episodes.shop(number)),
            revision=revision,
            definition=definition,
        )

    @routes.put("/{name}", responses=answers(400))
    def edit(name: str, world: World) -> ShopView:
        """Give a shop a new definition. Open sessions keep theirs; items whose number is the same
        as before keep what is left of them."""
        if world.name != name:
            raise Refused(
                400, f"the definition is of {world.name!r}", where="name",
                hint="a shop keeps its name; make another one with POST",
            )  # fmt: skip
        return put(world, "edit")

    @routes.post("/{name}/restock")
    def restock(name: str) -> ShopView:
        """Fill the shelves as the definition says."""
        episodes.store.restock(shop_id(server, name))
        return look(name)

    @routes.get("/{name}/export", responses=answers(400), response_class=Response)
    def export(name: str, format: Format = "yaml") -> Response:
        """The definition as a file that `haggle` and `POST /v1/shops` read."""
        definition, _ = episodes.definition(shop_id(server, name))
        return Response(world_text(definition, format), media_type=MEDIA[format])

    @routes.get("/{name}/sales")
    def sales(name: str) -> list[LedgerEntry]:
        """The ledger: all sales of the shop, first one first."""
        number = shop_id(server, name)
        definition, _ = episodes.definition(number)
        return [ledger_entry(sale, definition) for sale in episodes.store.sales(number)]

    return routes


def check_name(world: World) -> World:
    """A shop whose name can stand in a path. Raises HaggleError for another name."""
    name = world.name
    if not name.isprintable() or "/" in name or name.strip(" .") == "" or name != name.strip():
        raise HaggleError(
            f"a shop cannot be called {name!r}", where="name",
            hint="take printable characters without a slash, and no spaces around them",
        )  # fmt: skip
    return world


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _read(body: bytes, kind: str, headings: dict[str, str | None]) -> World:
    """The shop in a request's body. Raises HaggleError for none."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(400, f"not UTF-8 text (byte {error.start})", where="body") from None
    for form, media in MEDIA.items():
        if kind == media:
            given = {key: value for key, value in headings.items() if value}
            return parse_world(text, form, "body", given)
    raise Refused(
        415, f"cannot read a shop from {kind or 'no content type'!r}", where="Content-Type",
        hint=f"send {listed(list(MEDIA.values()), 'or')}",
    )  # fmt: skip

"""The server as an application of Ray Serve, for those who run Ray already.

    HAGGLE_KEY=... HAGGLE_DATABASE=postgresql://... serve run deploy.ray_serve:app

Each replica is a server with a model of its own; the database is what they share. Make its tables
first: `haggle serve --database ... --migrate`. `HAGGLE_ENGINE` names another serve config.
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from ray import serve

from haggle.trade.world_io import named_world
from serving.engines import ask_below_of, method_of, open_engine
from serving.http.app import Limits, make_app
from serving.store.repository import Store

AT_ONCE = 1  # turns a replica runs; as `parallel` in the serve config
REPLICAS = 2


def build() -> FastAPI:
    """The server of one replica. It is built there, since a model cannot be sent to it."""
    shop = named_world("frontier_shop")
    engine = os.environ.get("HAGGLE_ENGINE", "llamacpp")
    return make_app(
        open_engine(engine, None),
        {shop.name: shop},
        "state",
        method=method_of(engine),
        ask_below=ask_below_of(engine),
        limits=Limits(at_once=AT_ONCE),
        store=Store(os.environ["HAGGLE_DATABASE"]),
        api_key=os.environ["HAGGLE_KEY"],
    )


# Ray must not hold turns back: the server's own queue tells callers their place.
@serve.deployment(num_replicas=REPLICAS, max_ongoing_requests=100)
@serve.ingress(build)
class Shop:
    """A replica of the server."""


app = Shop.bind()

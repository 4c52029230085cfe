"""The server as an application of Ray Serve, for those who run Ray already.

    HAGGLE_KEY=... HAGGLE_DATABASE=postgresql://... serve run deploy.ray_serve:app

Each replica is a server with a model of its own; the database is what they share. Make its tables
first: `haggle serve --database ... --migrate`. `HAGGLE_ENGINE` names another serve config, whose
`parallel` is also the number of turns that a replica runs at once.
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from ray import serve

from haggle.trade.world_io import named_world
from serving.engines import load_engine, method_for, serve_config
from serving.http.app import Limits, make_app
from serving.store.repository import Store

REPLICAS = 2


def build() -> FastAPI:
    """The server of one replica. It is built there, since a model cannot be sent to it."""
    shop = named_world("frontier_shop")
    config = serve_config(os.environ.get("HAGGLE_ENGINE", "llamacpp"), "HAGGLE_ENGINE")
    return make_app(
        load_engine(config),
        {shop.name: shop},
        "state",
        method=method_for(config),
        ask_below=config.ask_below,
        limits=Limits(at_once=config.parallel),
        store=Store(os.environ["HAGGLE_DATABASE"]),
        api_key=os.environ["HAGGLE_KEY"],
    )


# Ray must not hold turns back: the server's own queue tells callers their place.
@serve.deployment(num_replicas=REPLICAS, max_ongoing_requests=100)
@serve.ingress(build)
class Shop:
    """A replica of the server."""


app = Shop.bind()

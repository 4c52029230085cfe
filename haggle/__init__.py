"""The trade itself: worlds, procedure, cart, prices, response, prompts, records and checks."""

__version__ = "0.1.0"

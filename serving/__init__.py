"""Running models and shops: engines, grammar, sessions, HTTP app."""

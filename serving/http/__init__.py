"""Characters over HTTP (`haggle serve`): sessions, turns, shops, an OpenAI-compatible endpoint.

`app` puts all together, `server` says what a server has, `records` what its answers look like; the
other modules have one concern each.
"""

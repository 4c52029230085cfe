"""Data sets on disk: shards, runners, statistics, card, preference pairs."""

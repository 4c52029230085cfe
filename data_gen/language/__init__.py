"""How players speak: phrases, voices, mentions of items, typing noise."""

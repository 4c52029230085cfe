"""What a player's words say: code that reads, without a model."""

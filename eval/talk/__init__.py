"""Free conversations between a player with a goal and a merchant, judged turn by turn."""

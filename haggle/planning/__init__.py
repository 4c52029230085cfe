"""Planners: methods that choose a character's next action before its words are written (PCA)."""

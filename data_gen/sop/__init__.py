"""Scripted people before characters that keep to a procedure."""

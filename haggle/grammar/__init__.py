"""Regular languages as trees: written in engines' notations, and what a tree forces next."""

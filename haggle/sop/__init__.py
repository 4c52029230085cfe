"""Characters that work through a standard operating procedure (PCA)."""

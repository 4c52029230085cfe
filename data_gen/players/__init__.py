"""Who talks to the merchant: scripted players with hidden acts, and models."""

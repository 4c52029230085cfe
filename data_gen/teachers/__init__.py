"""Who answers as the merchant: the oracle, a model, a model that rephrases the oracle."""

"""The contract between the composer and the providers, which speak through the API server alone."""

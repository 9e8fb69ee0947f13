"""Template workers: confined processes that render and validate."""

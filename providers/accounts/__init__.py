"""ProviderConfigs: connections, limits, rates, lists of an account."""

"""Whether a Composition may be used at all, tried on claims that nobody made yet. Pure."""

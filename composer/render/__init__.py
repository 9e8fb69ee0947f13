"""The template language: from a claim and a Composition to children. Pure."""

"""Claims into composed resources: loads Compositions, renders them in a sandbox, keeps what they say true.

Knows no cloud and holds no cloud credential; its only channel to a provider is the API server.
"""

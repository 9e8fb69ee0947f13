"""The API: paths, actions, answers."""

"""One process per cloud: each managed resource becomes one managed database, and stays as it was asked for."""

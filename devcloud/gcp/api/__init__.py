"""The methods of the API."""

"""The messages of the protocol: one module an API, named as the API in snake_case, imported when first used."""

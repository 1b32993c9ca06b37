"""What is wrong with a configuration, in one line."""

from __future__ import annotations


class ConfigError(Exception):
    """A value that is not valid, or a combination that is not. The message is one line that names the key.

    As the answer to an admin's request it is INVALID_CONFIG.
    """


class InvalidRequest(ConfigError):
    """A change of configs that Apache Kafka answers with INVALID_REQUEST, whatever is wrong with it."""

"""What is wrong with a configuration, in one line."""

from __future__ import annotations


class ConfigError(Exception):
    """A value that is not valid, or a combination that is not. The message is one line that names the key."""

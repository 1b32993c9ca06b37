"""SaslHandshake (API key 17): chooses a SASL mechanism."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, STRING, Array


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    """The request, versions 0 to 1."""

    mechanism: str = field(STRING, "0+")


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    """The response, versions 0 to 1."""

    error_code: int = field(INT16, "0+")
    mechanisms: list[str] = field(Array(STRING), "0+")

"""The generated code and construct agree, for every message in every version."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.protocol import codec
from kwire.protocol.codec import reference
from kwire.protocol.schema import Message
from tests.protocol.any_message import any_message


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_generated_code_agrees_with_construct(message: type[Message], version: int, data: st.DataObject) -> None:
    sent = data.draw(any_message(message, version))
    encoded = codec.encode(sent, version)
    assert encoded == reference.encode(sent, version)
    assert codec.decode(message, version, encoded) == sent
    assert codec.decode(message, version, memoryview(b"header" + encoded), len(b"header")) == sent
    assert reference.decode(message, version, encoded) == sent

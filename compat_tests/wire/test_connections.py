"""How long and how many connections may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.wire.raw import API_VERSIONS, TIMEOUT, RawConnection, connected, frame, request


def test_idle_connections_are_closed_and_busy_ones_are_not(broker_with: Callable[..., Any]) -> None:
    broker = broker_with({"connections.max.idle.ms": 5000})
    with connected(broker) as busy, connected(broker) as idle, connected(broker) as silent, connected(broker) as stuck:
        idle.api_versions()
        stuck.send(frame(request(API_VERSIONS, 0, b""))[:-3])
        watched = [idle, silent, stuck]
        for connection in watched:
            connection.socket.settimeout(0.1)
        for _ in range(int(TIMEOUT / 0.3)):
            assert busy.api_versions().error == 0
            watched = [connection for connection in watched if not connection.is_closed()]
            if not watched:
                break
        assert not watched
        assert busy.api_versions().error == 0


def test_a_client_that_stops_sending_is_let_go(kwire_broker: Any) -> None:
    with connected(kwire_broker) as connection:
        connection.api_versions()
        connection.socket.shutdown(1)

        assert connection.is_closed()


def test_too_many_connections_wait_for_a_place(broker_with: Callable[..., Any]) -> None:
    """max.connections: the connection over the limit is served when another one ends."""
    broker = broker_with({"max.connections": 3})
    first, second, third = (RawConnection(broker.host, broker.port) for _ in range(3))
    for connection in (first, second, third):
        assert connection.api_versions().error == 0
    with connected(broker) as fourth:
        fourth.send(frame(request(API_VERSIONS, 0, b"", 4)))
        assert first.api_versions().error == 0
        assert not fourth.has_answer()
        second.close()

        assert fourth.receive().correlation_id == 4
    first.close()
    third.close()


def test_too_many_connections_of_one_address(broker_with: Callable[..., Any]) -> None:
    """max.connections.per.ip: the connection over the limit is closed at once."""
    broker = broker_with({"max.connections.per.ip": 2})
    with connected(broker) as first, connected(broker) as second:
        assert first.api_versions().error == 0
        assert second.api_versions().error == 0
        with connected(broker) as third:
            assert third.is_closed()
        assert first.api_versions().error == 0

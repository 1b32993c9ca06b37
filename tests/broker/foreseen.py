"""Requests that find their template there, the first time they come."""

from __future__ import annotations

from struct import unpack_from
from typing import Any

import pytest

from kwire.broker.connection import Connection
from kwire.broker.dispatch import understand
from kwire.broker.exchange import Exchange
from kwire.broker.templates import Shape, Template, Templates


def note_known(monkeypatch: pytest.MonkeyPatch, api_key: int) -> list[bool]:
    """Of each request of an API that may have been known: whether a template answered it, or began to."""
    noted: list[bool] = []
    find = Templates.find

    class Noting:
        def __init__(self, template: Template) -> None:
            self._template = template
            self.settles = template.settles

        def answer(self, *arguments: Any) -> Any:
            answered = self._template.answer(*arguments)
            noted.append(answered is not None)
            return answered

    def noting(templates: Templates, shapes: tuple[Shape, ...], frame: memoryview) -> tuple[Template, int] | None:
        found = find(templates, shapes, frame)
        if frame[1] != api_key:
            return found
        if found is None:
            noted.append(False)
            return None
        return Noting(found[0]), found[1]

    monkeypatch.setattr(Templates, "find", noting)
    return noted


def use_templates_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each request that comes answered by its template, as far as that goes."""

    class Foreseen:
        """Finds its template when it is asked for the answer."""

        settles = True

        def answer(self, broker: Any, session: Any, frame: memoryview, correlation_id: int) -> Any:
            call = understand(broker, session, frame)
            maker = call.api.templates
            if maker is None or not maker.beginning(call, frame):
                return None
            template = maker.template(call, frame)
            return template and template.answer(broker, session, frame, call.correlation_id)

    for owner, name, value in ((Connection, "_at_once", True), (Exchange, "_shapes", (Shape(8),))):
        constant = property(lambda self, value=value: value, lambda self, new: None)
        monkeypatch.setattr(owner, name, constant, raising=False)
    monkeypatch.setattr(
        Templates, "find", lambda templates, shapes, frame: (Foreseen(), unpack_from(">i", frame, 4)[0])
    )
    monkeypatch.setattr(Templates, "learn", lambda templates, shapes, call, frame: shapes)

"""`python -m kwire.broker.table`: the README's table of APIs, written from the registry."""

from __future__ import annotations

from kwire.broker.registry import APIS, Api
from kwire.protocol.api_keys import APIS as KNOWN


def markdown() -> str:
    """One row an API, in the order of their keys."""
    lines = ["| key | API | versions | needs |", "|---:|---|---|---|"]
    lines += [_row(api) for api in APIS]
    return "\n".join(lines)


def _row(api: Api) -> str:
    versions = str(api.least) if api.least == api.greatest else f"{api.least} to {api.greatest}"
    needs = "nothing"
    if api.needs.operation is not None:
        needs = f"{api.needs.operation.name} on {api.needs.resource.name}"
    return f"| {int(api.key)} | {KNOWN[api.key].name} | {versions} | {needs} |"


if __name__ == "__main__":
    print(markdown())

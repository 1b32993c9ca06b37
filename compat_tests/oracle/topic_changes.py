"""AlterConfigs and IncrementalAlterConfigs in few words."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.protocol.messages import alter_configs, incremental_alter_configs
from kwire.protocol.messages.alter_configs import AlterConfigsRequest
from kwire.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

SET, DELETE, APPEND, SUBTRACT = range(4)

Changes = Sequence[tuple[int, str, str | None]]


def change(*resources: tuple[int, str, Changes], validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    """Of resources: (type, name, [(operation, key, value)])."""
    return IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                    for operation, key, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )


def replace(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate_only: bool = False
) -> AlterConfigsRequest:
    """Of resources: (type, name, [(key, value)])."""
    return AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )

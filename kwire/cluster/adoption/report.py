"""What came over and what did not, for people and as values for JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.cluster.adoption.plan import Plan

_SHOWN = 10
_DEFAULT_NODE_ID = 1


def serve_command(plan: Plan) -> str:
    """The command line that serves what was imported."""
    words = ["kwire serve", *(f"--data-dir {target}" for target in plan.targets)]
    if plan.node_id != _DEFAULT_NODE_ID:
        words.append(f"--set node.id={plan.node_id}")
    return " ".join(words)


def report_values(plan: Plan) -> dict[str, Any]:
    """As JSON has it."""
    image = plan.image
    return {
        "cluster_id": image.cluster_id,
        "node_id": plan.node_id,
        "sources": [source.path for source in plan.sources],
        "targets": plan.targets,
        "stopped_cleanly": plan.clean,
        "topics": [topic._asdict() for topic in plan.topics],
        "bytes": plan.bytes,
        "empty_partitions": plan.empty,
        "configs": {
            f"{kind} {name}".strip(): dict(values) for (kind, name), values in image.configs.items() if kind == "topic"
        },
        "other_configs": [f"{kind} {name}".strip() for kind, name in image.configs if kind != "topic"],
        "next_producer_id": image.next_producer_id,
        "features": dict(image.features),
        "left_out": plan.left_out,
        "serve": serve_command(plan),
    }


def report_lines(plan: Plan, human_bytes: Callable[[float], str]) -> list[str]:
    """As a terminal has it."""
    image = plan.image
    partitions = sum(topic.partitions for topic in plan.topics)
    lines = [
        f"node {plan.node_id} of cluster {image.cluster_id}, "
        + ("stopped cleanly" if plan.clean else "not stopped cleanly: the first start recovers its logs"),
        f"{len(plan.topics)} topics, {partitions} partitions, {human_bytes(plan.bytes)}",
    ]
    for topic in sorted(plan.topics, key=lambda topic: (-topic.bytes, topic.name))[:_SHOWN]:
        lines.append(f"  {topic.name}: {topic.partitions} partitions, {human_bytes(topic.bytes)}")
    if len(plan.topics) > _SHOWN:
        lines.append(f"  and {len(plan.topics) - _SHOWN} more")
    kinds = [kind for kind, _ in image.configs]
    for kind in sorted(set(kinds)):
        count = kinds.count(kind)
        lines.append(f"configs of {count} {kind}{'s' * (count > 1)}")
    lines.append(f"producer ids go on from {image.next_producer_id}")
    lines.append("features: " + ", ".join(f"{name} {level}" for name, level in image.features.items()))
    if plan.empty:
        lines.append(f"made anew, since nothing was ever written to them: {', '.join(plan.empty)}")
    if plan.left_out:
        lines.append("not taken over:")
        lines += [f"  {line}" for line in plan.left_out]
    lines.append("not in these dirs, and so not taken over: server.properties (kwire serve reads it as it is)")
    return lines

"""Apache Kafka with tiered storage: its LocalTieredStorage keeps remote segments in a folder.

That class stands among Kafka's tests, in a jar of its own that only the broker's class loader for it sees.
"""

from __future__ import annotations

from pathlib import Path

from jvm import maven

POM = Path(__file__).with_name("kafka-tiered.xml")


def settings(folder: Path) -> dict[str, object]:
    """Settings of a broker that keeps its remote segments in that folder."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": f"{maven.jars(POM)}/*",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rsm.config.dir": folder,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
    }

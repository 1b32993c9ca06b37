"""The two brokers, and where they keep their objects."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from jvm.apache_kafka import ApacheKafka
from kwire.testing.process import BrokerProcess


class TieredBoth(Both):
    def __init__(self, kafka: ApacheKafka, kwire: BrokerProcess, kafkas_objects: Path, kwires_objects: Path) -> None:
        super().__init__(kafka, kwire)
        self._objects = {str(kafka): kafkas_objects, str(kwire): kwires_objects}

    def lose_objects(self, side: Side, topic: str) -> None:
        """Removes all objects of a topic from the side's remote storage, behind its back."""
        folder = self._objects[side.address]
        folders = [Path(above, name) for above, names, _ in os.walk(folder) for name in names]
        (found,) = (path for path in folders if path.name.startswith(topic))
        shutil.rmtree(found)

"""The pytest plugin, as a user's test run sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]


def test_the_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        import socket

        import pytest

        seen = []

        @pytest.fixture(scope="session")
        def kwire_broker_config():
            return {"num.partitions": 2}

        def connect(broker):
            socket.create_connection((broker.host, broker.port)).close()

        @pytest.mark.parametrize("turn", [1, 2])
        def test_broker_and_topic(kwire_broker, kwire_topic, turn):
            connect(kwire_broker)
            assert kwire_broker.config == {"num.partitions": 2}
            assert os.listdir(kwire_broker.data_dir)
            seen.append((kwire_broker.pid, kwire_topic))

        def test_one_broker_and_fresh_topics(kwire_topic_factory):
            (pid, first), (again, second) = seen
            assert pid == again
            assert first != second
            assert kwire_topic_factory(partitions=3, configs={"cleanup.policy": "compact"}) not in (first, second)

        def test_topic_that_is_refused(kwire_topic_factory):
            from kwire.protocol.errors import KafkaError

            with pytest.raises(KafkaError, match="INVALID_CONFIG"):
                kwire_topic_factory(configs={"cleanup.policy": "compost"})

        def test_brokers_of_its_own(kwire_broker, kwire_broker_factory, kwire_topic_factory):
            own = kwire_broker_factory({"num.partitions": 5})
            assert own.bootstrap != kwire_broker.bootstrap
            kwire_topic_factory(broker=own)
            own.kill()
            own.restart()
            connect(own)
        """
    )
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=5)


def test_a_failure_shows_the_log_of_its_brokers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_that_fails(kwire_broker, kwire_broker_factory):
            own = kwire_broker_factory()
            for broker in (kwire_broker, own):
                with broker.log.open("a") as log:
                    log.write(f"the log of {broker.port}\\n")
            own.kill()
            assert False

        def test_that_passes(kwire_broker):
            pass
        """
    )
    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*log of the kwire broker 127.0.0.1:*", "the log of *", "*log of the kwire broker*ended with exit code -9*"]
    )


def test_loading_the_plugin_imports_nothing_else() -> None:
    """It is loaded in every pytest run of an environment that has kwire."""
    program = (
        "import sys, pytest; before = set(sys.modules); import kwire.testing.plugin;"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('kwire')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

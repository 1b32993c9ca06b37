"""Testing against kwire: a broker in its own process, and the pytest fixtures around it.

Installing kwire registers the pytest plugin `kwire.testing.plugin`; its fixtures need no import. Outside of pytest, or
for a fixture with a scope of your own, use `BrokerProcess` of `kwire.testing.process`:

    with BrokerProcess({"auto.create.topics.enable": "false"}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

This package is loaded in every pytest run of an environment that has kwire, so it imports nothing by itself.
"""

"""The transaction coordinator: a pure state machine over the records of __transaction_state (KIP-98, KIP-360, KIP-890).

A transactional id's transaction begins when a partition is added to it, and ends in two steps: the decision is written
(PrepareCommit, PrepareAbort), from then on it is certain; markers go to all its partitions, and when all are there the
end is written (CompleteCommit, CompleteAbort). Who writes the markers is told by `effects.py`.

    states.py            the states, and from which to which
    transaction.py       what is known of one transactional id
    records.py           the same as a record
    machine.py           the state of one partition of __transaction_state
    effects.py           what the machine wants done outside
    init_producer_id.py  InitProducerId
    partitions.py        AddPartitionsToTxn, AddOffsetsToTxn, and the check of brokers
    ending.py            how each operation ends a transaction: the epochs and ids it continues with
    end_txn.py           EndTxn
    completion.py        the markers are written
    timeouts.py          transactions that are open for too long
    expiration.py        transactional ids that nobody uses
    listing.py           ListTransactions, DescribeTransactions
"""

"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

v1 filters by how long they are open (KIP-994), v2 by a regular expression of RE2 (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.coordinator.patterns import Pattern, PatternError
from kwire.coordinator.transactions.listing import Filter
from kwire.coordinator.transactions.states import BY_TITLE
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    names = list(dict.fromkeys(request.state_filters))
    wanted = Filter(
        states={BY_TITLE[name] for name in names if name in BY_TITLE} if names else None,
        producer_ids=set(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        matches=_matches(request.transactional_id_pattern),
    )
    response, turn = ListTransactionsResponse(), Turn(broker.clock)
    response.unknown_state_filters = [name for name in names if name not in BY_TITLE]
    for shard in list(broker.coordinators.transactions.coordinator.shards.values()):
        try:
            now, found = shard.read(lambda machine, now: (now, machine.transactions.committed_items()))
        except KafkaError as error:
            if error.code is ErrorCode.NOT_COORDINATOR:
                continue  # it could not be loaded, which the log says
            raise
        for transactional_id, transaction in found:
            if wanted.takes(transactional_id, transaction, now) and context.session.allows(
                Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id
            ):
                response.transaction_states.append(
                    TransactionState(
                        transactional_id=transactional_id,
                        producer_id=transaction.producer_id,
                        transaction_state=transaction.state.title,
                    )
                )
            await turn.share()
    return response


def failed(request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


def _matches(pattern: str | None) -> Callable[[str], object] | None:
    if not pattern:
        return None
    try:
        return Pattern(pattern).matches
    except PatternError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None

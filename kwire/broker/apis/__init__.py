"""The handlers, one file an API, named as its message module.

Each has `async def handle(broker, context, request)`, which returns the response message, something `Parked`, or None
where no answer is due; and `def failed(request, error)`, the response that says of everything asked that it failed.
"""

"""The server: listeners, connections, the registry of APIs and their handlers, and what waits."""

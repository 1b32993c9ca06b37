"""The settings of S3 as obstore takes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.config.remote_storage import RemoteStorageConfig

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

LONGEST_BACKOFF = timedelta(seconds=5)
LONGEST_CONNECT = timedelta(seconds=5)
MOST_RETRIES = 1000
"""The time-out is what ends them."""


class Patience(NamedTuple):
    """How long to wait, in milliseconds."""

    call_ms: int
    """For a call with all its retries."""
    attempt_ms: int

    @classmethod
    def of(cls, config: RemoteStorageConfig) -> Patience:
        return cls(config["storage.s3.api.call.timeout"], config["storage.s3.api.call.attempt.timeout"])

    def at_most(self, call_ms: int, attempt_ms: int) -> Patience:
        return Patience(min(self.call_ms, call_ms), min(self.attempt_ms, attempt_ms))


def s3_config(config: RemoteStorageConfig) -> S3Config:
    """What is not set is left to obstore, which looks into AWS's environment variables."""
    endpoint, path_style = config["storage.s3.endpoint.url"], config["storage.s3.path.style.access.enabled"]
    chosen: dict[str, Any] = {"region": config["storage.s3.region"]}
    if path_style is False and endpoint is not None:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{config['storage.s3.bucket.name']}.{host}"
    chosen["endpoint"] = endpoint.rstrip("/") if endpoint is not None else None
    if path_style is not None or endpoint is not None:
        chosen["virtual_hosted_style_request"] = path_style is False
    return {name: value for name, value in chosen.items() if value is not None}  # type: ignore[return-value]


def credentials(config: RemoteStorageConfig) -> Callable[[], S3Credential] | None:
    """Those of the configuration, as one: no session token of the environment may mix with them."""
    key_id, secret, token = (
        config[f"storage.aws.{name}"] for name in ("access.key.id", "secret.access.key", "session.token")
    )
    if key_id is None:
        return None
    credential: S3Credential = {
        "access_key_id": key_id.value,
        "secret_access_key": secret.value,
        "token": token.value if token is not None else None,
        "expires_at": None,
    }
    return lambda: credential


def client_options(config: RemoteStorageConfig, patience: Patience) -> ClientConfig:
    attempt = timedelta(milliseconds=patience.attempt_ms)
    options: ClientConfig = {"timeout": attempt, "connect_timeout": min(attempt, LONGEST_CONNECT)}
    if (config["storage.s3.endpoint.url"] or "").startswith("http://"):
        options["allow_http"] = True
    if not config["storage.aws.certificate.check.enabled"]:
        options["allow_invalid_certificates"] = True
    return options


def retry_config(patience: Patience) -> RetryConfig:
    """No attempt begins that could not end in time, so that its own error is told and not that time is over."""
    return {
        "max_retries": MOST_RETRIES,
        "retry_timeout": timedelta(milliseconds=patience.call_ms - patience.attempt_ms),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": LONGEST_BACKOFF, "base": 2},
    }

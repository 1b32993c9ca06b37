"""A server that speaks S3, for tests of remote storage: S3Proxy, which keeps objects in a folder.

with S3Proxy() as server:
    server.make_bucket("logs")
    store = ... server.endpoint, server.access_key_id, server.secret_access_key
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from jvm import apache_kafka, maven

POM = Path(__file__).with_name("s3proxy.xml")
VERSION = maven.version(POM)
START_TIMEOUT = 120.0
"""Seconds; a start takes less than one, more where the machine is busy."""
POLL = 0.02
KEYS_PASSWORD = "of-the-keys"
LOGGING = """<configuration>
  <appender name="file" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger %msg%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="file"/></root>
</configuration>
"""


class S3Proxy:
    """One server with one access key. What it keeps goes to a temporary folder, which `close` removes.

    It keeps its port and its objects over a `stop` and a new `start`.
    """

    access_key_id = "kwire-test"
    secret_access_key = "not/a+secret="
    host = "127.0.0.1"

    def __init__(self, *, tls: bool = False) -> None:
        """With `tls` it speaks HTTPS only, with a certificate for 127.0.0.1 that it signed itself (`certificate`)."""
        self._tls = tls
        self._folder = Path(tempfile.mkdtemp(prefix="s3proxy-"))
        self.objects = self._folder / "objects"
        """A folder for each bucket; a file for each object, and some of the server's own."""
        self.objects.mkdir()
        self.log = self._folder / "server.log"
        self.certificate = self._folder / "certificate.pem"
        (self.port,) = apache_kafka.free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    def make_bucket(self, name: str) -> None:
        (self.objects / name).mkdir()

    def start(self, timeout: float = START_TIMEOUT) -> S3Proxy:
        """Returns when the server accepts connections; raises JavaError when it ends first or after `timeout`
        seconds."""
        settings = {
            "s3proxy.authorization": "aws-v4",
            **(self._keys() if self._tls else {"s3proxy.endpoint": self.endpoint}),
            "s3proxy.identity": self.access_key_id,
            "s3proxy.credential": self.secret_access_key,
            "jclouds.provider": "filesystem",
            "jclouds.filesystem.basedir": self.objects,
        }
        properties = self._folder / "s3proxy.conf"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        logging = self._folder / "logback.xml"
        logging.write_text(LOGGING)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    maven.java_program("java"),
                    *("-Xmx256m", *apache_kafka.SHORT_LIVED, maven.scratch_option(self._folder)),
                    *(f"-Dlogback.configurationFile={logging}", "-cp", f"{maven.jars(POM)}/*"),
                    *("org.gaul.s3proxy.Main", "--properties", str(properties)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        deadline = time.monotonic() + timeout
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise maven.JavaError(f"S3Proxy did not start:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(POLL)
        return self

    def stop(self) -> None:
        """Ends the server with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keys(self) -> dict[str, object]:
        """The settings of a server with TLS; its key and certificate are made where there are none."""
        store = self._folder / "keys.p12"
        if not store.exists():
            keytool = [
                maven.java_program("keytool"),
                "-keystore",
                str(store),
                "-storepass",
                KEYS_PASSWORD,
                "-alias",
                "s3",
            ]
            names = ("-dname", "CN=localhost", "-ext", f"san=ip:{self.host}")
            for command in (
                ("-genkeypair", "-keyalg", "EC", "-storetype", "PKCS12", *names),
                ("-exportcert", "-rfc", "-file", str(self.certificate)),
            ):
                subprocess.run([*keytool, *command], check=True, capture_output=True)
        return {
            "s3proxy.secure-endpoint": self.endpoint,
            "s3proxy.keystore-path": store,
            "s3proxy.keystore-password": KEYS_PASSWORD,
        }

    def _accepts(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> S3Proxy:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

"""A broker with config/rabbitmq.conf and config/definitions.json, with credentials of its own, over TLS."""

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path

import pika
import pytest
from overtime import Installation

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "scripts/broker")


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("OVERTIME_BIN") or ROOT / ".build/release/overtime")
    if not path.exists():
        pytest.exit(f"{path} is missing: swift build -c release --product overtime, or set OVERTIME_BIN", 2)
    return str(path)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """The broker as its users see it: over TLS, each with a password of its own."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.tls_port = free_port()
        self.credentials = self.directory / "credentials"
        subprocess.run(
            [
                str(ROOT / "scripts/credentials"),
                str(self.credentials),
                *("--host", "localhost", "--port", str(self.tls_port), "--owner", str(os.getuid())),
            ],
            check=True,
            timeout=120,
            capture_output=True,
        )
        self.certificate = str(self.credentials / "broker/ca.pem")
        settings = self.directory / "settings.conf"
        settings.write_text(self._settings())
        self._node = str(self.directory / "node")
        subprocess.run([SCRIPT, "start", self._node, str(settings)], check=True, timeout=150)

    def _settings(self):
        """config/rabbitmq.conf with this broker's paths and port; its log goes to a file, which the script reads."""
        text = (ROOT / "config/rabbitmq.conf").read_text()
        for old, new in [
            ("/etc/rabbitmq/tls/", f"{self.credentials}/broker/"),
            ("/etc/rabbitmq/definitions.json", f"{self.credentials}/broker/definitions.json"),
            # What the script asks for, a free port on the same address, would otherwise not count.
            ("listeners.tcp.local = 127.0.0.1:5672\n", ""),
            ("listeners.ssl.default = 5671", f"listeners.ssl.local = 127.0.0.1:{self.tls_port}"),
            ("log.file = false", "log.file.level = info"),
        ]:
            assert old in text, f"config/rabbitmq.conf does not say {old}"
            text = text.replace(old, new)
        return text

    def stop(self):
        subprocess.run([SCRIPT, "stop", self._node], check=True, timeout=90)

    def ctl(self, *arguments):
        done = subprocess.run(
            [SCRIPT, "ctl", self._node, "--silent", *arguments],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, f"rabbitmqctl {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    @property
    def plain_url(self):
        return subprocess.run(
            [SCRIPT, "url", self._node], check=True, capture_output=True, text=True
        ).stdout.strip()

    def password(self, user):
        return (self.credentials / f"secrets/{user}-password").read_text()

    def url_file(self, user):
        return str(self.credentials / f"secrets/{user}-url")

    def url(self, user):
        return Path(self.url_file(user)).read_text().strip()

    def connect(self, user):
        parameters = pika.URLParameters(self.url(user))
        context = ssl.create_default_context(cafile=self.certificate)
        parameters.ssl_options = pika.SSLOptions(context, "localhost")
        parameters.heartbeat = 0
        return pika.BlockingConnection(parameters)


@pytest.fixture(scope="session")
def broker():
    directory = tempfile.mkdtemp(prefix="overtime-deployment.")
    broker = None
    try:
        broker = Broker(directory)
        yield broker
    finally:
        subprocess.run([SCRIPT, "stop", f"{directory}/node"], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture
def installation(binary, broker, tmp_path):
    """Processes that know their broker from a file with a secret only, as in config/systemd and docker/compose.yaml."""
    installation = Installation(binary, "", "overtime", str(tmp_path), {})
    del installation.environment["OVERTIME_AMQP_URL"]
    installation.environment |= {
        "OVERTIME_AMQP_CA": broker.certificate,
        "OVERTIME_AMQP_DECLARE": "false",
        "OVERTIME_AMQP_REPLIES": "exchange",
        "OVERTIME_AMQP_OPERATORS": "operator",
    }
    yield installation
    installation.end()
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def as_user(broker):
    """The setting that makes a process a certain user."""
    return lambda user: {"OVERTIME_AMQP_URL_FILE": broker.url_file(user)}

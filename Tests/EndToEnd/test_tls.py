"""amqps: chain and name are verified, a client certificate can be the login, and files are read anew."""

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import ROOT, Broker
from overtime import Installation
from waiting import poll

USER = "overtime-client"


def openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


class Authority:
    """A certificate authority in a directory of its own."""

    def __init__(self, directory, name):
        self.directory = Path(directory)
        self.file = str(self.directory / f"{name}.pem")
        self._key = str(self.directory / f"{name}.key")
        openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", self._key, "-out", self.file,
        )  # fmt: skip

    def issue(self, name, subject, days=2):
        """A certificate with its key, both with the extensions of the name `localhost`."""
        certificate, key = (str(self.directory / f"{name}.{ending}") for ending in ("pem", "key"))
        request, extensions = (str(self.directory / f"{name}.{ending}") for ending in ("csr", "ext"))
        Path(extensions).write_text("subjectAltName=DNS:localhost\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", key, "-out", request)
        openssl(
            "x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key, "-CAcreateserial",
            "-days", str(days), "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        return certificate, key


class Secure:
    """A broker whose TLS port takes nobody without a certificate of its authority."""

    def __init__(self, directory, broker, port, authority):
        self.directory = directory
        self.broker = broker
        self.port = port
        self.authority = authority
        self.url = f"amqps://localhost:{port}"

    def subjects(self):
        """Whose certificates the connections of now have shown."""
        return {
            row["peer_cert_subject"]
            for row in self.broker.listing("list_connections", "peer_cert_subject", "ssl")
            if row["ssl"]
        }


@pytest.fixture(scope="module")
def secure():
    script = str(ROOT / "scripts/broker")
    directory = Path(tempfile.mkdtemp(prefix="overtime-tls-broker."))
    try:
        authority = Authority(directory, "authority")
        certificate, key = authority.issue("server", "/CN=localhost")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        (directory / "extra.plugins").write_text("rabbitmq_auth_mechanism_ssl\n")
        (directory / "extra.conf").write_text(
            f"""
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {authority.file}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
ssl_cert_login_from = common_name
"""
        )
        subprocess.run([script, "start", directory], check=True, timeout=150, capture_output=True)
        url = subprocess.run([script, "url", directory], check=True, capture_output=True, text=True)
        broker = Broker(url.stdout.strip(), [script, "ctl", str(directory)], script, str(directory))
        broker.ctl("add_user", USER, "no-password-is-ever-given")
        broker.ctl("set_permissions", "-p", "/", USER, ".*", ".*", ".*")
        yield Secure(directory, broker, port, authority)
        broker.close()
    finally:
        subprocess.run([script, "stop", directory], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture
def client(secure, tmp_path):
    """The files of a client, where they may be exchanged."""
    for source, name in zip(secure.authority.issue("client", f"/CN={USER}/OU=first"), ("c.pem", "c.key"), strict=True):
        shutil.copyfile(source, tmp_path / name)
    return tmp_path


@pytest.fixture
def installation(binary, secure, client, tmp_path):
    installation = Installation(binary, secure.url, "tls", str(tmp_path), {})
    installation.environment |= {
        "OVERTIME_AMQP_CA": secure.authority.file,
        "OVERTIME_AMQP_CERTIFICATE": str(client / "c.pem"),
        "OVERTIME_AMQP_KEY": str(client / "c.key"),
        "OVERTIME_AMQP_LOGIN": "certificate",
    }
    yield installation
    installation.end()


def test_a_certificate_is_the_login_and_its_rotation_is_taken_up(installation, secure, client):
    worker = installation.worker()
    assert installation.run("send", "open", "--room", "r").returncode == 0
    assert installation.run("check").returncode == 0
    assert secure.subjects() == {f"OU=first,CN={USER}"}
    users = secure.broker.listing("list_connections", "user", "auth_mechanism", "ssl")
    assert {(row["user"], row["auth_mechanism"]) for row in users if row["ssl"]} == {(USER, "EXTERNAL")}

    def exchange(name, subject, days=2):
        for source, target in zip(secure.authority.issue(name, subject, days), ("c.pem", "c.key"), strict=True):
            shutil.copyfile(source, client / target)
        mark = len(worker.lines)
        secure.broker.ctl("close_all_connections", "a test")
        return mark

    # One that has expired is refused, said, and tried again; the next one is taken up without a restart.
    mark = exchange("expired", f"/CN={USER}/OU=expired", days=-1)
    poll(
        lambda: any("refuses our certificate" in line.get("error", "") for line in worker.lines[mark:]),
        20, lambda: f"the refusal to be said; there was {worker.tail()}",
    )  # fmt: skip
    mark = exchange("second", f"/CN={USER}/OU=second")
    installation.ready(worker, after=mark, limit=30)
    assert secure.subjects() == {f"OU=second,CN={USER}"}
    assert installation.run("send", "status", "--room", "r").returncode == 0


def test_a_password_over_tls(installation, secure):
    installation.environment |= {
        "OVERTIME_AMQP_LOGIN": "password",
        "OVERTIME_AMQP_URL": f"amqps://guest:guest@localhost:{secure.port}/%2f",
    }
    installation.worker()
    assert installation.run("send", "open", "--room", "p").returncode == 0


def test_whatever_is_wrong_is_named_and_nothing_connects(installation, secure, client, tmp_path):
    stranger = Authority(tmp_path, "stranger")
    other, other_key = stranger.issue("other", f"/CN={USER}")
    nobody, nobody_key = secure.authority.issue("nobody", "/CN=nobody")
    encrypted = str(tmp_path / "encrypted.key")
    openssl("pkey", "-in", str(client / "c.key"), "-aes256", "-passout", "pass:x", "-out", encrypted)
    pair = {"OVERTIME_AMQP_CERTIFICATE": other, "OVERTIME_AMQP_KEY": other_key}
    none = {"OVERTIME_AMQP_CERTIFICATE": "", "OVERTIME_AMQP_KEY": "", "OVERTIME_AMQP_LOGIN": "password"}
    cases = [
        ({"OVERTIME_AMQP_CA": stranger.file}, "is not trusted: self-signed certificate in certificate chain"),
        ({"OVERTIME_AMQP_URL": f"amqps://127.0.0.1:{secure.port}"}, "is for another name"),
        ({"OVERTIME_AMQP_CA": "/nowhere/ca.pem"}, "/nowhere/ca.pem cannot be used"),
        ({"OVERTIME_AMQP_KEY": encrypted}, "has a passphrase"),
        ({"OVERTIME_AMQP_KEY": other_key}, "cannot be used (key values mismatch)"),
        (pair, "refuses our certificate"),
        (none, "wants a client certificate"),
        ({"OVERTIME_AMQP_CERTIFICATE": nobody, "OVERTIME_AMQP_KEY": nobody_key}, "refused"),
        ({"OVERTIME_AMQP_KEY": ""}, "go together"),
        ({"OVERTIME_AMQP_URL": "amqp://localhost"}, "has no effect on amqp://"),
        (none | {"OVERTIME_AMQP_LOGIN": "certificate"}, "needs amqp.certificate"),
    ]
    for environment, words in cases:
        done = installation.run("send", "status", "--room", "r", "--timeout", "20s", environment=environment)
        assert done.returncode == 78 and words in done.stderr, (environment, done)
    poll(lambda: secure.subjects() == set(), 10, "every connection to be gone")

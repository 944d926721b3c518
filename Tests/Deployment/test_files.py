"""The files of config that other programs read: each is checked by its own program, where that is installed."""

import functools
import json
import re
import shutil
import subprocess

import pytest
import yaml
from conftest import ROOT

CONFIG = ROOT / "config"
# The most exposed that a unit may be by systemd's own count, of 10.
EXPOSURE = 1.5


def needs(program):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_alerts_fire_on_what_they_are_for():
    run(needs("promtool"), "test", "rules", str(CONFIG / "alerts.test.yml"))


def test_every_alert_has_a_test():
    alerts = re.findall(r"alert: (\w+)", (CONFIG / "alerts.yml").read_text())
    tests = (CONFIG / "alerts.test.yml").read_text()
    assert alerts and len(set(alerts)) == len(alerts)
    for alert in alerts:
        assert f"alertname: {alert}," in tests, f"{alert}: no test says when it is silent"
        assert f'alertname="{alert}"' in tests, f"{alert}: no test says when it fires"


def test_rules_and_dashboard_name_metrics_that_exist():
    table = ROOT / "docs/metrics.md"
    known = set(re.findall(r"\bovertime_[a-z_]+", table.read_text()))
    used = (CONFIG / "alerts.yml").read_text() + (CONFIG / "grafana/dashboards/overtime.json").read_text()
    for name in set(re.findall(r"\bovertime_[a-z_]+", used)):
        assert re.sub(r"_bucket$", "", name) in known, name


def test_the_dashboard_can_be_read():
    board = json.loads((CONFIG / "grafana/dashboards/overtime.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    source = (CONFIG / "grafana/provisioning/datasources/prometheus.yml").read_text()
    assert all(f"uid: {panel['datasource']['uid']}\n" in source for panel in board["panels"])


def compose(name):
    return yaml.safe_load((ROOT / "docker" / name).read_text())


def merged(one, other):
    """As compose reads a second file: values go before, lists are added to."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {key: merged(one[key], value) if key in one else value for key, value in other.items()}
    return one + other if isinstance(one, list) and isinstance(other, list) else other


@pytest.fixture(scope="module")
def secrets_made(tmp_path_factory):
    """The names of the files that scripts/credentials makes."""
    directory = tmp_path_factory.mktemp("made") / "credentials"
    run(str(ROOT / "scripts/credentials"), str(directory))
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("files", [("compose.yaml",), ("compose.yaml", "compose.scale.yaml")], ids=["one", "many"])
def test_every_container_is_hardened_and_has_its_secrets(files, secrets_made):
    stack = functools.reduce(merged, map(compose, files))
    for name, service in stack["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "pids_limit"} <= set(service), name
        assert set(service.get("secrets", ())) <= set(stack["secrets"]), name
        for value in service.get("environment", {}).values():
            assert "://" not in str(value), f"{name} has a secret in its environment"
            if str(value).startswith("/run/secrets/"):
                assert value.removeprefix("/run/secrets/") in service["secrets"], (name, value)
    for secret in stack["secrets"].values():
        assert secret["file"].removeprefix("${OVERTIME_CREDENTIALS:-../.credentials}/") in secrets_made, secret


def test_many_have_one_store_and_as_many_shards():
    services = compose("compose.scale.yaml")["services"]
    for name in ("worker", "scheduler", "cli"):
        assert services[name]["environment"]["OVERTIME_SHARDS"] == "${OVERTIME_SHARDS:-16}", name
    assert services["worker"]["environment"]["OVERTIME_STORE_FILE"] == "/run/secrets/store-url"
    assert "rabbitmq_consistent_hash_exchange" in (CONFIG / "enabled_plugins").read_text()


@pytest.mark.parametrize("component", ["worker", "scheduler"])
def test_units_are_right_and_hardened(component, tmp_path):
    analyze = needs("systemd-analyze")
    unit = CONFIG / f"systemd/overtime-{component}.service"
    # `verify` looks for the executable, which is not installed here.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/usr/local/bin/overtime", "/bin/true"))
    assert run(analyze, "verify", str(copy)) == ""
    verdict = run(analyze, "security", "--offline=true", "--no-pager", str(unit)).splitlines()[-1]
    assert float(re.search(r"(\d+\.\d+)", verdict)[1]) <= EXPOSURE, verdict

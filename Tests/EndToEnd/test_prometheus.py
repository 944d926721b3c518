"""A real Prometheus with the configuration and the rules of config/, scraping a worker and a scheduler."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import ROOT
from metrics import Watched, free_address
from waiting import poll


@pytest.fixture
def prometheus(tmp_path):
    """Starts one on the given targets, and asks it."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus (Debian package prometheus) is not installed")
    address, started = free_address(), []

    def start(**targets):
        text = (ROOT / "config/prometheus.yml").read_text()
        for component, target in targets.items():
            assert f'"{component}:9464"' in text
            text = text.replace(f'"{component}:9464"', f'"{target}"')
        text = text.replace("/etc/prometheus/alerts.yml", str(ROOT / "config/alerts.yml"))
        assert text.count("interval: 15s") == 2
        (tmp_path / "prometheus.yml").write_text(text.replace("interval: 15s", "interval: 1s"))
        log = (tmp_path / "prometheus.log").open("wb")
        started.append(
            subprocess.Popen(
                [
                    program,
                    f"--config.file={tmp_path}/prometheus.yml",
                    f"--storage.tsdb.path={tmp_path}/data",
                    f"--web.listen-address={address}",
                ],
                stdout=log,
                stderr=log,
            )
        )
        return ask

    def ask(path, **parameters):
        try:
            url = f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.URLError:
            assert started[0].poll() is None, (tmp_path / "prometheus.log").read_text()
            return None

    yield start
    for process in started:
        process.terminate()
        process.wait(15)


def test_both_components_are_scraped(installation, wire, prometheus):
    addresses = {}
    for component in ("worker", "scheduler"):
        addresses[component] = free_address()
        process = installation.start(component, environment={"OVERTIME_HTTP": addresses[component]})
        process.wait_said("serving metrics and health", 20)
        Watched(addresses[component]).wait_ready(30)
    wire.ok("open", "r", duration="60m")
    wire.ok("join", "r", "ada")
    ask = prometheus(**addresses)

    def value(query):
        found = ask("query", query=query)
        return float(found["result"][0]["value"][1]) if found and found["result"] else None

    for component in addresses:
        series = f'{{job="overtime",component="{component}"}}'
        poll(lambda series=series: value("up" + series) == 1, 30, f"a scrape of the {component}")
        assert value("overtime_build_info" + series) == 1
    poll(lambda: value("overtime_live_rooms") == 1, 15, "one live room in Prometheus")
    poll(lambda: value("overtime_deadlines_held") == 1, 15, "one deadline in Prometheus")
    assert value('overtime_commands_total{command="join",outcome="applied"}') == 1
    targets = [target for target in ask("targets")["activeTargets"] if target["labels"]["job"] == "overtime"]
    assert len(targets) == 2
    assert [target["lastError"] for target in targets] == ["", ""]
    rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
    assert rules and all(rule["health"] != "err" for rule in rules), rules

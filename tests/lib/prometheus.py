#!/usr/bin/env python3
"""Whether a real Prometheus understands the metrics, the dashboard and the alerts.

    prometheus.py FOLDER METRICS...    FOLDER contains dashboard.json and alerts.yml

Serves the files METRICS, what `rlock status --prometheus` has printed, to a Prometheus of its own, on loopback. Fails if
an expression of the dashboard has no data there or another label than its legend names, or if an alert cannot be
evaluated.
"""
import functools
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import servers


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def config_of(files, port, alerts):
    jobs = [{"job_name": name, "metrics_path": "/" + name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for name in files]
    return {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [os.path.abspath(alerts)],
            "scrape_configs": jobs}


class Prometheus:
    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory()
        self.at = f"127.0.0.1:{servers.free_port()}"
        path = self.folder.name + "/prometheus.yml"
        with open(path, "w") as file:
            json.dump(config, file)  # JSON is YAML
        self.log = open(self.folder.name + "/log", "w+")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=" + path, "--storage.tsdb.path=" + self.folder.name + "/data",
             "--web.listen-address=" + self.at], stdout=self.log, stderr=self.log, cwd=self.folder.name)

    def ask(self, what, **arguments):
        """None if it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{self.at}/api/v1/{what}?{urllib.parse.urlencode(arguments)}") as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is not ready
                return None
            sys.exit(f"{what} {arguments}: {error.read().decode()}")
        except OSError:
            assert self.process.poll() is None, self.said()
            return None

    def series(self, expression):
        return (self.ask("query", query=expression) or {}).get("result", [])

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


def check_panel(prometheus, panel):
    for target in panel["targets"]:
        series = prometheus.series(target["expr"].replace("$name", ".*"))
        labels = set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "{{name}}")))
        assert series, f"{panel['title']}: no data for {target['expr']}"
        for one in series:
            assert set(one["metric"]) == labels, f"{panel['title']}: {one['metric']} instead of {labels}"


def main():
    folder, *files = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=os.getcwd()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    prometheus = Prometheus(config_of(files, server.server_port, folder + "/alerts.yml"))
    try:
        # An increase takes two readings.
        servers.need(lambda: len(prometheus.series("count by (job) (count_over_time(scrape_samples_scraped[1m]) > 2)"))
                   == len(files), "there are two readings of each file")
        for panel in json.load(open(folder + "/dashboard.json"))["panels"]:
            check_panel(prometheus, panel)

        def rules():
            groups = (prometheus.ask("rules") or {}).get("groups", [])
            return [rule for group in groups for rule in group["rules"]]
        servers.need(lambda: rules() and all(rule["health"] != "unknown" for rule in rules()), "all rules were evaluated")
        bad = [rule for rule in rules() if rule["health"] != "ok"]
        assert not bad, bad
    finally:
        prometheus.stop()


main()

#!/usr/bin/env python3
"""github_runner.py ACTION [INPUT=VALUE...] -- STEP: runs an action's folder as GitHub's runner does.

Reads action.yml, gives the inputs and their defaults as INPUT_*, and runs main; then STEP by sh, with the action's outputs
as OUTPUT_*, and with the folders of GITHUB_PATH in front; then post, with the state that main has saved as STATE_*; if main fails,
no STEP. Prints what they add to the job's summary, "summary: " before each line. At the end it kills processes that still have
RUNNER_TRACKING_ID in their environment, and prints "left behind: PID" for each. The status is the first that is not 0.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

import yaml

folder, words = sys.argv[1], sys.argv[2:]
cut = words.index("--")
given, step = dict(word.split("=", 1) for word in words[:cut]), words[cut + 1]
with open(os.path.join(folder, "action.yml")) as file:
    action = yaml.safe_load(file)
assert not set(given) - set(action["inputs"]), "unknown input"

tracking = "github_" + str(uuid.uuid4())
environment = dict(os.environ, RUNNER_TRACKING_ID=tracking, GITHUB_SERVER_URL="https://github.example",
                   GITHUB_REPOSITORY="team/application", GITHUB_RUN_ID="17", RUNNER_TEMP=tempfile.mkdtemp())
for name, about in action["inputs"].items():
    # The runner refuses nothing, because `required` is for readers. A missing input is empty.
    environment["INPUT_" + name.upper().replace(" ", "_")] = given.get(name, str(about.get("default", "")))


def node(script, **more):
    """Runs it as our child, and returns what it has written to the files of state and outputs."""
    files = {}
    with tempfile.TemporaryDirectory() as place:
        for name in "GITHUB_STATE", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY":
            files[name] = os.path.join(place, name)
            open(files[name], "w").close()
        done = subprocess.run(["node", os.path.join(folder, script)], env={**environment, **more, **files}, check=False)
        found = []
        for name in "GITHUB_STATE", "GITHUB_OUTPUT":
            with open(files[name]) as file:
                found.append(dict(line.rstrip("\n").split("=", 1) for line in file))
        with open(files["GITHUB_PATH"]) as file:
            environment["PATH"] = ":".join([*reversed(file.read().split("\n")[:-1]), environment["PATH"]])
        with open(files["GITHUB_STEP_SUMMARY"]) as file:
            print(*("summary: " + line for line in file), sep="", end="", flush=True)
    return done.returncode, *found


def left_behind():
    """Processes that were started with our id in their environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"RUNNER_TRACKING_ID={tracking}".encode() in file.read().split(b"\0"):
                    yield int(pid)
        except OSError:
            continue


status, state, outputs = node(action["runs"]["main"])
assert set(outputs) <= set(action["outputs"]), "unknown output"
if status == 0:
    values = {"OUTPUT_" + name: value for name, value in outputs.items()}
    status = subprocess.run(["sh", "-euc", step], env={**environment, **values}, check=False).returncode
post, _, _ = node(action["runs"]["post"], **{"STATE_" + name: value for name, value in state.items()})
for pid in left_behind():
    print(f"left behind: {pid}", flush=True)
    os.kill(pid, signal.SIGKILL)
shutil.rmtree(environment["RUNNER_TEMP"])
sys.exit(status or post)

#!/usr/bin/env python3
"""gitlab_runner.py COMPONENT [INPUT=VALUE...] <SCRIPT: prints a job that extends the component's .rlock, as GitLab gives it to a shell.

The shell gets the variables, with their inputs filled in and $NAME expanded, and then before_script and SCRIPT in one eval behind
a pipe, as the runner has it.
"""
import os
import re
import shlex
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    head, body = yaml.safe_load_all(file)
known = head["spec"]["inputs"]
given = dict(word.split("=", 1) for word in sys.argv[2:])
assert not set(given) - set(known), "unknown input"
job = body[".rlock"]
# Only the variables have inputs in them: what is text of a script is a way into the shell.
assert "$[[" not in "".join(job["before_script"])


def value(text):
    filled = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: given.get(found[1], known[found[1]]["default"]), text)
    return os.path.expandvars(filled)


print("set -e")
for name, text in job["variables"].items():
    print(f"export {name}={shlex.quote(os.environ.get(name, value(text)))}")  # a variable of the job wins
lines = "\n".join(job["before_script"])
print(": | eval", shlex.quote(lines + "\n" + sys.stdin.read()))

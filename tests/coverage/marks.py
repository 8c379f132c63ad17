#!/usr/bin/env python3
"""Which lines of the script run? Redis has no hook for that, so each statement says so in the server's log.

    marks.py add LUA            puts a mark in front of each statement of the files in that folder
    marks.py count LUA LOG...   prints a line for each file, then the statements that no log names

A mark is a call of redis.log, which changes nothing that a script could notice apart from its SHA1 and its time. `count`
wants the folder without marks.
"""
import collections
import glob
import os
import re
import sys

# A statement may begin with these; a line that goes on with an expression does not get a mark.
BEGINS = re.compile(r"(local|if|for|while|repeat|return|break|[A-Za-z_][\w.\[\]'\"]*\s*(\(|=[^=]|,))")
GOES_ON = re.compile(r"(\b(and|or|not)|[-+*/%=<>~,({\[]|\.\.)$")
LEVEL = "3"  # redis.LOG_WARNING


def statements(lines):
    """The numbers of the lines with which a statement begins."""
    depth, open_end = 0, False
    for number, line in enumerate(lines, 1):
        code = re.sub(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"", "''", line)
        code = re.sub(r"--.*", "", code).strip()
        if not code:
            continue
        function = re.match(r"(local )?function\b", code)
        if depth == 0 and not open_end and not function and BEGINS.match(code):
            yield number
        # The end of a function in an expression closes what its beginning has opened.
        depth = max(depth + len(re.findall(r"[({\[]", code)) - len(re.findall(r"[)}\]]", code)), 0)
        open_end = bool(GOES_ON.search(code))
        # A function in an expression has statements of its own.
        if re.search(r"\bfunction\s*\([^)]*\)$", code):
            depth = 0


def scripts(folder):
    found = glob.glob("**/*.lua", root_dir=folder, recursive=True)
    return sorted(found, key=os.path.basename)


def lines_of(folder, script):
    with open(os.path.join(folder, script)) as file:
        return file.read().split("\n")


def add(folder):
    for script in scripts(folder):
        lines = lines_of(folder, script)
        marked = set(statements(lines))
        with open(os.path.join(folder, script), "w") as file:
            for number, line in enumerate(lines, 1):
                if number in marked:
                    file.write(f"redis.log({LEVEL}, 'mark {script}:{number}')\n")
                file.write(line + ("\n" if number < len(lines) else ""))


def count(folder, logs):
    seen = collections.defaultdict(set)
    for log in logs:
        with open(log, errors="replace") as file:
            for script, number in re.findall(r"mark ([\w/]+\.lua):(\d+)", file.read()):
                seen[script].add(int(number))
    totals, missing = collections.defaultdict(lambda: [0, 0]), []
    for script in scripts(folder):
        lines = lines_of(folder, script)
        for number in statements(lines):
            total = totals[script]
            total[1] += 1
            total[0] += number in seen[script]
            if number not in seen[script]:
                missing.append(f"{script}:{number}: {lines[number - 1].strip()}")
    for script, (ran, all_of_them) in totals.items():
        print(f"lua/{script:24} {ran:6} of {all_of_them:6} statements  {100 * ran / all_of_them:5.1f} %")
    print(*missing, sep="\n")


if __name__ == "__main__":
    add(sys.argv[2]) if sys.argv[1] == "add" else count(sys.argv[2], sys.argv[3:])

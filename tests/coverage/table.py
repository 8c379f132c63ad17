#!/usr/bin/env python3
"""table.py JSON SRC REASONS

Prints the coverage of each folder of SRC from `llvm-cov export`, and the functions that never ran, each with its reason.
A line of REASONS is "file function: reason". Ends with 1 if a function without a reason did not run, or if one with a
reason did.
"""
import collections
import json
import os
import subprocess
import sys

KINDS = "lines", "branches", "functions"


def floors(files, src):
    """Per folder, and in all: covered and count of each kind."""
    table = collections.defaultdict(lambda: {kind: [0, 0] for kind in KINDS})
    for file in files:
        if not file["filename"].startswith(src + "/"):
            continue
        floor = os.path.dirname(os.path.relpath(file["filename"], src)) or "."
        for kind in KINDS:
            for row in floor, "all":
                table[row][kind][0] += file["summary"][kind]["covered"]
                table[row][kind][1] += file["summary"][kind]["count"]
    return table


def demangled(names):
    lines = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, lines.split("\n")))


def never_run(functions, src):
    """The functions of SRC that no instance of ran: "file function". Lambdas are part of the function around them."""
    ran = collections.defaultdict(bool)
    names = demangled([function["name"].split(":")[-1] for function in functions])
    for function in functions:
        file = function["filenames"][0]
        if file.startswith(src + "/"):
            name = names[function["name"].split(":")[-1]]
            if "$_" in name or "lambda" in name:
                continue
            for word in "rlock::", "(anonymous namespace)::", "[abi:cxx11]":
                name = name.replace(word, "")
            place = function["regions"][0][0]
            ran[os.path.relpath(file, src), place, name] |= function["count"] > 0
    # Instances of a template, and the copies in two programs, are one function.
    by_place = collections.defaultdict(lambda: ["", False])
    for (file, place, name), did in ran.items():
        entry = by_place[file, place]
        entry[0], entry[1] = min(entry[0] or name, name), entry[1] or did
    return sorted(f"{file} {name}" for (file, _), (name, did) in by_place.items() if not did)


def main():
    path, src, reasons_path = sys.argv[1:]
    with open(path) as file:
        data = json.load(file)["data"][0]
    table = floors(data["files"], src)
    print(f"{'src/':10}" + "".join(f"{kind:>24}" for kind in KINDS))
    for floor in sorted(table, key=lambda floor: (floor == "all", floor)):
        cells = [f"{covered} of {count}  {100 * covered / max(count, 1):5.1f} %" for covered, count in table[floor].values()]
        print(f"{floor:10}" + "".join(f"{cell:>24}" for cell in cells))
    with open(reasons_path) as file:
        reasons = dict(line.rstrip("\n").rsplit(": ", 1) for line in file if line.strip() and not line.startswith("#"))
    missing = never_run(data["functions"], src)
    print("\nFunctions that never ran:")
    for function in missing:
        print(f"  {function}: {reasons.get(function, 'NO REASON')}")
    stale = sorted(set(reasons) - set(missing))
    for function in stale:
        print(f"  {function}: has a reason, but ran, or does not exist")
    return 1 if stale or set(missing) - set(reasons) else 0


if __name__ == "__main__":
    sys.exit(main())

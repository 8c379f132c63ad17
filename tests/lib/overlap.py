"""Reads a log of begins and ends, and fails if two jobs ran at once.

Lines: "begin ID TIME" and "end ID TIME", each appended in one write. A job that was killed has no end: its
begin may be followed by another job's, but it may write nothing more.
"""
import sys

running, ended, overlaps, jobs = None, set(), 0, 0
for line in open(sys.argv[1]):
    what, job, _ = line.split()
    if what == "begin":
        jobs += 1
        if running is not None:
            ended.add(running)  # it must have been killed, so an end that comes now is an error
        running = job
    elif job in ended or job != running:
        overlaps += 1
        print(f"{job} was still running after another had begun")
    else:
        running = None
print(f"{jobs} jobs, {overlaps} overlaps")
sys.exit(overlaps > 0)

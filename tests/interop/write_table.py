"""Puts the rows of the standard input, made by pairs.py, into the table of pairs: write_table.py FILE"""
import re
import sys

rows = sys.stdin.read()
if not rows:
    sys.exit("no pair has been measured")
head = ("| library | version | key of NAME | value | rlock is woken, p50 / p99 in ms | it is woken by rlock |\n"
        "|---|---|---|---|---|---|\n")
with open(sys.argv[1]) as file:
    text = file.read()
new, count = re.subn(r"(<!-- pairs.*?-->\n).*?(<!-- end of pairs -->)", lambda m: m[1] + head + rows + m[2], text, flags=re.S)
if count != 1:
    sys.exit("no table of pairs in " + sys.argv[1])
with open(sys.argv[1], "w") as file:
    file.write(new)

#!/usr/bin/env python3
"""page.py FILE EXPRESSION: what a page of `rlock status --html` or `history --html` has to show.

Prints the value of a Python expression, in which these are the members of the page's data: about, remarks, reports, totals,
locks, holds; and text is the whole page, table what a browser without scripts shows. Lists are printed a line for each element.
What the page makes of its data, tests/lib/browser.py checks.
"""
import html
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
found = re.search(r'<script type="application/json" id="data">\n(.*?)</script>', text, re.S)[1]
known = json.loads(found)
known |= {"text": text, "table": html.unescape(re.search(r"<noscript>.*<pre>\n(.*?)</pre>", text, re.S)[1])}
value = eval(sys.argv[2], known)  # pylint: disable=eval-used
print("\n".join(map(str, value)) if isinstance(value, list) else value)

"""Lists the messages in the source that no test mentions: messages.py ROOT

A message is what a call below writes or returns as an error. A test mentions it if it contains three words in a row
of a literal, or all of a shorter literal. One line each: file:line, a tab, the literals.
The last line has the count: "N of M messages without a test".
"""
import pathlib
import re
import sys

CALLS = r"\b(?:log::(?:info|warning|error|write)|fail|usage|bad|bad_file|system_error|not_acquired|refuse|Error)\s*[({]"
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments(text, begin):
    """The text between the bracket at `begin` and its partner."""
    depth, at = 0, begin
    while at < len(text):
        if text[at] == '"':
            at = LITERAL.match(text, at).end() if LITERAL.match(text, at) else at + 1
            continue
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return text[begin:at]
        at += 1
    return ""


def messages(root):
    for path in sorted(root.glob("src/**/*.cc")):
        text = re.sub(r"(?m)^\s*//.*$|^\s*#.*$", lambda match: " " * len(match[0]), path.read_text())
        text = re.sub(r"(?s)R\"~\(.*?\)~\"", lambda match: " " * len(match[0]), text)
        for call in re.finditer(CALLS, text):
            inside = arguments(text, call.end() - 1)
            joined = re.sub(r'"\s*\n\s*"', "", inside)
            literals = [literal for literal in LITERAL.findall(joined) if re.search(r"[a-z]{3}", literal)]
            if literals:
                yield f"{path.relative_to(root)}:{text.count(chr(10), 0, call.start()) + 1}", literals


def pieces(literal):
    words = re.findall(r"[^\s\\]+", literal)
    if len(words) < 3:
        return [" ".join(words)] if words and len(words[0]) > 3 else []
    return [" ".join(words[i:i + 3]) for i in range(len(words) - 2)]


def main():
    root = pathlib.Path(sys.argv[1])
    tests = [path for kind in ("bats", "table", "cc", "py", "sh", "bash") for path in root.glob(f"tests/**/*.{kind}")]
    said = re.sub(r"[\\ \n]+", " ", " ".join(path.read_text(errors="replace") for path in tests))
    all_of_them = list(messages(root))
    silent = [(where, literals) for where, literals in all_of_them
              if not any(piece in said for literal in literals for piece in pieces(literal))]
    for where, literals in silent:
        print(where, " … ".join(literals), sep="\t")
    print(f"{len(silent)} of {len(all_of_them)} messages without a test")


main()

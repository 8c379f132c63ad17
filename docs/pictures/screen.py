"""What a terminal shows: Screen(columns).feed(bytes), then rows(), each a list of (character, style).

A style is a set of words: bold, dim, inverse, and the name of a colour. The screen has as many rows as were written to.
"""
import codecs
import re

COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
ESCAPE = re.compile(r"\x1b(\[([?>0-9;]*)([@-~])|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78cM])")


class Screen:
    def __init__(self, columns):
        self.columns, self.cells, self.row, self.column, self.style, self.rest = columns, [[]], 0, 0, frozenset(), ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def rows(self):
        """Without the blanks at the ends."""
        return [line[:max((n + 1 for n, (char, style) in enumerate(line) if char != " " or "inverse" in style), default=0)]
                for line in self.cells]

    def feed(self, data):
        text, self.rest = self.rest + self.decoder.decode(data), ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            found = ESCAPE.match(text, at)
            if not found:  # the rest of it is still to come
                self.rest = text[at:]
                return
            if found[3]:
                self.control(found[3], found[2])
            at = found.end()

    def put(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.go(self.row + 1)
        elif char == "\b":
            self.column = max(0, self.column - 1)
        elif char == "\t":
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
        elif char >= " ":
            if self.column == self.columns:
                self.column = 0
                self.go(self.row + 1)
            line = self.cells[self.row]
            line.extend([(" ", frozenset())] * (self.column + 1 - len(line)))
            line[self.column] = (char, self.style)
            self.column += 1

    def go(self, row):
        self.row = max(0, row)
        self.cells.extend([] for _ in range(self.row + 1 - len(self.cells)))

    def control(self, what, numbers):
        values = [int(number or 0) for number in numbers.split(";")] if re.fullmatch("[0-9;]*", numbers) else []
        first = values[0] if values else 0
        if what == "m" and values:
            self.change_style(values)
        elif what in "ABCD":
            rows, columns = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1)}[what]
            self.go(self.row + rows * max(1, first))
            self.column = min(max(0, self.column + columns * max(1, first)), self.columns - 1)
        elif what == "G":
            self.column = max(1, first) - 1
        elif what in "Hf":
            self.go(max(1, first) - 1)
            self.column = (max(1, values[1]) if len(values) > 1 else 1) - 1
        elif what == "K":
            line = self.cells[self.row]
            self.cells[self.row] = [] if first == 2 else line[:self.column] if first == 0 else \
                [(" ", frozenset())] * (self.column + 1) + line[self.column + 1:]
        elif what == "J":
            if first >= 2:
                self.cells = [[] for _ in range(self.row + 1)]
            elif first == 0:
                self.control("K", "")
                del self.cells[self.row + 1:]
        elif what == "h" and numbers in ("?1049", "?47"):
            self.cells, self.row, self.column = [[]], 0, 0

    def change_style(self, values):
        style = set(self.style)
        colours = {word for word in COLOURS} | {"bright " + word for word in COLOURS}
        for value in values:
            if value == 0:
                style.clear()
            elif value in (1, 2, 7):
                style.add({1: "bold", 2: "dim", 7: "inverse"}[value])
            elif value in (22, 27):
                style -= {"bold", "dim"} if value == 22 else {"inverse"}
            elif 30 <= value <= 37 or value == 39 or 90 <= value <= 97:
                style -= colours
                if value != 39:
                    style.add(COLOURS[value - 30] if value < 90 else "bright " + COLOURS[value - 90])
        self.style = frozenset(style)

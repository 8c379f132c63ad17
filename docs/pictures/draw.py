"""A picture of terminals as an SVG, and the text in one: draw(windows, about, marks), texts(svg).

A window is a title, its number of rows, and a list of (time, rows), the rows as screen.py has them. With several times the
picture moves, and begins again when it has ended. Programs that show no movement, and readers who have asked for none, get the
last state. Its own background stands out on light and dark pages.

A mark numbers an event, because the last state alone does not say in which order the windows are to be read. It is the number
of a window, a row at whose right end it stands, a time from which on it is shown, and a few words.
"""
import xml.etree.ElementTree as tree
from xml.sax.saxutils import escape

COLUMNS = 91  # what a line may have
WIDTH, LINE, TITLE, PAD, LEFT, GAP = 800, 20, 30, 11, 17, 12
CHAR = (WIDTH - 2 * LEFT) / COLUMNS
HOLD = 5  # seconds for which the last state stays

STYLE = """text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre}
.title{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#9aa4b0}
.bold{font-weight:bold}.dim{fill:#9aa4b0}.red{fill:#ff8a80}.green{fill:#5fd784}.yellow{fill:#f2cc60}.blue{fill:#79b8ff}
.magenta{fill:#d2a8ff}.cyan{fill:#76e3ea}.black{fill:#0d1117}.gone{visibility:hidden}
.mark{font:bold 13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}"""


def runs(row, begin):
    """Pieces of a row from a column on, as (column, text, style). Two blanks are the end of a piece: not every program that
    shows pictures keeps them."""
    found = []
    for column in range(begin, len(row)):
        char, style = row[column]
        last = found[-1] if found else None
        if last and last[2] == style and ("inverse" in style or not (char == " " and last[1].endswith(" "))) and \
                last[0] + len(last[1]) == column:
            last[1] += char
        else:
            found.append([column, char, style])
    return [(column, text, style) for column, text, style in found if text.strip() or "inverse" in style]


def pieces(states):
    """The pieces of all states, as [row, column, text, style, from, until]; the last ones have no end."""
    live, done, before = {}, [], []
    for time, rows in states:
        for number in range(max(len(rows), len(before))):
            old = before[number] if number < len(before) else []
            new = rows[number] if number < len(rows) else []
            if old == new:
                continue
            begin = len(old)
            if new[:begin] != old:  # more than one that has grown
                for piece in live.pop(number, []):
                    piece[5] = time
                begin = 0
            here = [[number, *run, time, None] for run in runs(new, begin)]
            live.setdefault(number, []).extend(here)
            done.extend(here)
        before = rows
    return done


def text_of(piece, top, frames):
    row, column, text, style, begin, end = piece
    text_before = len(text) - len(text.lstrip())
    if "inverse" not in style:
        column, text = column + text_before, text.strip()
    classes = sorted(word.replace("bright ", "") for word in style if word != "inverse")
    moment = f" style=\"animation-name:{frames(begin, end)}\"" if frames else ""
    classes += ["gone"] * (end is not None) + ["moving"] * bool(moment)
    x, y = LEFT + column * CHAR, top + TITLE + PAD + row * LINE + 15
    box = ""
    if "inverse" in style:
        box = f'<rect x="{x:.1f}" y="{y - 15}" width="{len(text) * CHAR:.1f}" height="{LINE}" fill="#e6edf3"/>'
        classes += ["black"]
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    return f'{box}<text x="{x:.1f}" y="{y}" textLength="{len(text) * CHAR:.1f}"{attribute}{moment}>{escape(text)}</text>\n'


def mark_of(number, words, y, frames, time):
    """At the right end of a row: the words, and after them the number in a circle."""
    moment = f' class="moving" style="animation-name:{frames(time, None)}"' if frames else ""
    right = WIDTH - LEFT - 9
    return (f'<g{moment}><circle cx="{right}" cy="{y - 5}" r="9" fill="#f2cc60"/>'
            f'<text class="mark black" x="{right}" y="{y}" text-anchor="middle">{number}</text>'
            f'<text class="mark yellow" x="{right - 16}" y="{y}" text-anchor="end">{escape(words)}</text></g>\n')


def draw(windows, about, marks=()):
    times = [time for _, _, states in windows for time, _ in states]
    whole = max(times) + HOLD
    moving, names, rules = len(times) > len(windows), {}, []

    def frames(begin, end):
        if (begin, end) not in names:
            names[begin, end] = f"k{len(names)}"
            start, stop = begin / whole * 100, (end if end is not None else whole) / whole * 100
            after = "" if end is None else f"{stop:.2f}%,100%{{visibility:hidden}}"
            rules.append(f"@keyframes {names[begin, end]}{{0%{{visibility:hidden}}{start:.2f}%"
                         f"{',100%' if end is None else ''}{{visibility:visible}}{after}}}")
        return names[begin, end]

    body, top = "", 0
    for place, (title, rows, states) in enumerate(windows):
        height = TITLE + 2 * PAD + rows * LINE
        body += (f'<rect x=".5" y="{top + .5}" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#161b22" stroke="#444c56"/>\n'
                 f'<path d="M.5 {top + TITLE}H{WIDTH - .5}" stroke="#30363d"/>\n'
                 f'<text class="title" x="{WIDTH / 2:.0f}" y="{top + 20}" text-anchor="middle">{escape(title)}</text>\n')
        drawn = "".join(text_of(piece, top, frames if moving else None) for piece in pieces(states))
        body += f'<g class="window">\n{drawn}</g>\n'
        for number, (window, row, time, words) in enumerate(marks, 1):
            if window == place:
                body += mark_of(number, words, top + TITLE + PAD + row * LINE + 15, frames if moving else None, time)
        top += height + GAP
    motion = f"@media (prefers-reduced-motion:no-preference){{.moving{{animation:{whole:.1f}s step-end infinite}}\n{chr(10).join(rules)}\n}}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP}" width="{WIDTH}" height="{top - GAP}" '
            f'role="img">\n<title>{escape(about)}</title>\n<style>{STYLE}\n{motion if moving else ""}</style>\n{body}</svg>\n')


def texts(svg):
    """The lines that each window shows at the end."""
    space = "{http://www.w3.org/2000/svg}"
    found = []
    for window in tree.fromstring(svg).iter(space + "g"):
        lines = {}
        for text in window.iter(space + "text"):
            if "gone" in text.get("class", "").split():
                continue
            line, column = lines.get(text.get("y"), ""), round((float(text.get("x")) - LEFT) / CHAR)
            lines[text.get("y")] = line.ljust(column) + text.text
        found.append([lines[y] for y in sorted(lines, key=int)])
    return found


def state_at(windows, moment):
    """The same windows as they are at one moment: a picture that does not move."""
    return [(title, rows, [(0, [state for time, state in states if time <= moment][-1])] if states[0][0] <= moment else [(0, [])])
            for title, rows, states in windows]

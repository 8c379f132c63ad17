#!/usr/bin/python3
"""check.py FILE...: reads histories and finds what locks must never allow. It shares no code with what wrote them.

Lines, whose times are nanoseconds of CLOCK_BOOTTIME. The names and tokens of several locks are joined by +:

    section ID NAME MODE BEGIN END TOKEN   one that has ended
    begin ID NAME MODE TIME TOKEN          the same in two lines, which a kill may part
    end ID TIME
    overlap ID NAME TIME                   it began while another one, which may since have been killed, was executing

MODE: w, alone; r, beside others with r; sN, beside N - 1 others. TOKEN: the fencing token; -, it is not known.

Violations: a section overlaps another that it must not overlap; more than N at once; a token is not larger than those of
all sections of the same lock that it must not overlap, and that ended before it began. (Readers that have the lock
together may begin in another order than they were granted it.) A section without an end was killed: only overlap lines
tell what ran beside it.

The last line is `N sections, M violations`; exits with 1 if there is a violation.
"""
import heapq
import sys
from collections import defaultdict, namedtuple

Section = namedtuple("Section", "begin end mode token id")


def read(files):
    """{name: [Section]}, the number of sections, and a list of texts about overlaps that were noted."""
    locks, open_ones, overlaps, count = defaultdict(list), {}, [], 0

    def add(ident, names, mode, begin, end, tokens):
        for name, token in zip(names.split("+"), tokens.split("+"), strict=True):
            locks[name].append(Section(int(begin), end and int(end), mode, int(token) if token != "-" else None, ident))

    for file in files:
        for line in open(file):
            if not line.endswith("\n"):
                continue  # its writer was killed
            what, *words = line.split()
            if what == "section":
                add(*words)
                count += 1
            elif what == "begin":
                open_ones[words[0]] = words
                count += 1
            elif what == "end":
                ident, names, mode, begin, tokens = open_ones.pop(words[0])
                add(ident, names, mode, begin, words[1], tokens)
            elif what == "overlap":
                overlaps.append(f"{words[1]}: {words[0]} began beside another one at {words[2]}")
            else:
                raise ValueError(line)
    for ident, names, mode, begin, tokens in open_ones.values():
        add(ident, names, mode, begin, None, tokens)
    return locks, count, overlaps


def may_be_together(mode, others):
    """`others`: the modes of those that execute."""
    if mode == "w":
        return not others
    if mode == "r":
        return all(other == "r" for other in others)
    return all(other == mode for other in others) and len(others) < int(mode[1:])


def overlaps(sections):
    """Of one lock, in the order of their begin."""
    executing = []  # a heap of (end, number, section)
    for number, section in enumerate(sections):
        while executing and executing[0][0] <= section.begin:
            heapq.heappop(executing)
        if not may_be_together(section.mode, [other.mode for *_, other in executing]):
            beside = ", ".join(other.id for *_, other in executing)
            yield f"{section.id} ({section.mode}) began at {section.begin} while {beside} executed"
        if section.end is not None:
            heapq.heappush(executing, (section.end, number, section))


def old_tokens(sections):
    """Of one lock, in the order of their begin."""
    ended = sorted((one for one in sections if None not in (one.token, one.end)), key=lambda one: one.end)
    highest, next_one = {}, 0  # by mode
    for section in sections:
        while next_one < len(ended) and ended[next_one].end < section.begin:
            one = ended[next_one]
            if one.mode not in highest or one.token > highest[one.mode].token:
                highest[one.mode] = one
            next_one += 1
        for mode, other in highest.items():
            if section.token is not None and not may_be_together(section.mode, [mode]) and section.token <= other.token:
                yield f"{section.id} has the token {section.token}, and {other.id}, which ended before, {other.token}"


def main(files):
    locks, count, violations = read(files)
    for name, sections in sorted(locks.items()):
        sections.sort(key=lambda one: one.begin)
        violations += [f"{name}: {text}" for check in (overlaps, old_tokens) for text in check(sections)]
    for text in violations[:50]:
        print(text)
    print(f"{count} sections, {len(violations)} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

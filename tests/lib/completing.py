#!/usr/bin/python3
"""completing.py SHELL SCRIPT KEYS...: types KEYS, with Tabs, at the prompt of a SHELL on a terminal.

SHELL is bash, bash-completion (bash with the package of that name), zsh or fish; SCRIPT is rlock's completion for it.
For each KEYS, prints a line with the words on the shell's line, as a program would get them, with | between them.
The file "screen" in the current folder gets what the terminal shows; with $SHOWN in the environment, the line is only
read after that text was shown. Needs Debian's python3-pexpect. "rlock" and "show", which PATH must have, are run from it.
"""
import os
import re
import sys
import time

import pexpect

PROMPT = "READY> "
SECONDS = 90  # to fail rather than to hang

folder = os.getcwd()
words_file = os.path.join(folder, "words")
shell, script, lines = sys.argv[1], sys.argv[2], sys.argv[3:]


def plain(text):
    """Without the sequences that move the cursor and set colours."""
    return re.sub(r"\x1b[\[(][0-9;?]*[a-zA-Z]", "", text)


def written(name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def command():
    if shell.startswith("bash"):
        package = ". /usr/share/bash-completion/bash_completion\n" if shell == "bash-completion" else ""
        settings = "".join(f"bind 'set {setting}'\n" for setting in (
            "show-all-if-ambiguous on", "enable-bracketed-paste off", "completion-query-items 0", "page-completions off"))
        rc = written("rc", f"{package}. '{script}'\n{settings}PS1='{PROMPT}'\n")
        return ["bash", "--noprofile", "--rcfile", rc, "-i"]
    if shell == "zsh":
        written(".zshrc", f"fpath=('{os.path.dirname(script)}' $fpath)\nautoload -Uz compinit\ncompinit -u -D\nbindkey -e\n"
                          f"LISTMAX=999\nunsetopt prompt_sp\nPS1='{PROMPT}'\n")
        return ["zsh", "-d", "-i"]
    return ["fish", "--no-config", "--private", "-C",
            f"source '{script}'; function fish_prompt; echo -n '{PROMPT}'; end; function fish_greeting; end"]


class Terminal:
    def __init__(self):
        environment = dict(os.environ, TERM="xterm", HOME=folder, ZDOTDIR=folder, INPUTRC="/dev/null", HISTFILE="/dev/null",
                           LC_ALL="C.UTF-8", XDG_DATA_HOME=folder, XDG_CACHE_HOME=folder, XDG_CONFIG_HOME=folder)
        program, *arguments = command()
        self.child = pexpect.spawn(program, arguments, timeout=SECONDS, encoding="utf-8",
                                   codec_errors="backslashreplace", env=environment, dimensions=(100, 250))
        self.child.delaybeforesend = None
        self.screen = ""

    def until(self, condition, what):
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"{shell}: waited without success for {what}; on the screen: {self.screen!r}"
            try:
                self.screen += self.child.read_nonblocking(65536, 0.05)
            except pexpect.TIMEOUT:
                pass

    def completed(self, keys):
        """The line that results from `keys`: a program gets it instead of being executed."""
        self.until(lambda: PROMPT in self.screen, "the prompt")
        self.screen = ""
        self.child.send(keys)
        self.until(lambda: os.environ.get("SHOWN", "") in plain(self.screen), "the text of $SHOWN")
        self.child.send("\x01show \r")
        self.until(lambda: os.path.exists(words_file), "the end of " + repr(keys))
        with open(words_file, encoding="utf-8") as file:
            words = file.read().split("\0")[:-1]
        os.remove(words_file)
        return "|".join(words)


terminal = Terminal()
shown = ""
for line in lines:
    print(terminal.completed(line), flush=True)
    shown += terminal.screen
written("screen", plain(shown))
terminal.child.close(force=True)

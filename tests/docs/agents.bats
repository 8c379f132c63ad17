# docs/agents.md and the skill for agents: every line with rlock runs, and what they say about statuses and JSON is true.

load ../lib/server
load ../lib/docs

setup() {
  PAGE=$(cd "$TESTS_DIR/.." && pwd)/docs/agents.md
  SKILL=${PAGE%/docs/*}/packaging/examples/SKILL.md
  use_server srv
  stand_ins ' $*' migrate.sh deploy.sh smoke-test.sh bin/make
  echo 4f2a1c9 >commit
  blocks "$PAGE" "$SKILL"
  sed -i "s,RLOCK_URL=local: ,RLOCK_URL=local:$PWD/l ," block.* # not the user's own
}
teardown() {
  [[ ! -d l ]] || rlock --url "local:$PWD/l" local stop --yes
  assert_clean srv
}

# by_another: another owner holds every lock of the blocks.
by_another() {
  local name
  for name in db:shop-test deploy:staging "$(uname -n):port-3000" "$(uname -n):$PWD"; do
    rlock acquire "$name" --lease 10m --reason 'nightly tests'
  done
}

@test "both documents have no other commands than those in their blocks, none takes a lock away, and each block runs" {
  [[ $(cat "$PAGE" "$SKILL" | grep -c '^```sh$') == $(ls block.* | wc -l) ]]
  run -1 awk '/^```/ { fenced = !fenced } !fenced && /rlock (run|acquire|renew|release|status) [^-`]/ { print; bad = 1 } END { exit !bad }' "$PAGE" "$SKILL"
  run -1 grep -hE 'force-unlock|--supersede|redis-cli|kill' block.*
  for script in $(ls block.* | sort -V); do
    run -0 timeout -k 1 60 bash -euo pipefail "$script" </dev/null 3>&-
    redis srv flushall >/dev/null # what --once remembers
  done
  [[ $(cut -d' ' -f1 calls | sort -u | tr '\n' ' ') == 'deploy.sh make migrate.sh smoke-test.sh ' ]]
  grep -qx "make serve under $(uname -n):port-3000" calls
  grep -qx 'make serve under ports' calls
  grep -qx 'make flash BOARD=board0 under boards' calls
}

@test "no block does anything under a lock that another owner has" {
  by_another
  for script in $(grep -L 'RLOCK_URL=local' block.*); do
    sed -i 's/--wait 5m/-n/; s/RLOCK_WAIT=5m/RLOCK_WAIT=0/' "$script"
    timeout -k 1 60 sh "$script" </dev/null >out 2>&1 3>&- || true
    [[ ! -e calls ]] || [[ $(sort -u calls) == 'make  under ' ]] || { cat "$script" out calls && return 1; }
  done
  redis srv flushall
}

@test "a busy lock: the report says who has it, since when and why" {
  rlock run --reason 'nightly tests' deploy:staging -- sh -c 'touch begun; until [ -e go ]; do sleep 0.1; done' 3>&- &
  wait_until test -e begun
  run -75 --separate-stderr rlock run -n deploy:staging -- ./deploy.sh
  [[ ! -e calls && $stderr == *"reason 'nightly tests'" ]]
  run -0 bash -eu "$(grep -l -- 'status --json deploy:' block.*)"
  # Each member that the page names is there.
  sed -n '/^## If you do not get/,/^Never/p' "$PAGE" | grep -oE '`[a-z_]+`' | tr -d '`' | sort -u >members
  (($(wc -l <members) == 8))
  while read -r member; do [[ $output == *"\"$member\": "* ]]; done <members
  let_end go "$!"
}

@test "the statuses are those of rlock" {
  local status
  for status in $(sed -nE '/^## What the exit/,/^## If/s/^\| ([0-9, ]+)[,|].*/\1/p' "$PAGE" | tr -d ,) \
    $(sed -n '/^## After/,/^## Never/s/^- \([0-9][^:]*\):.*/\1/p' "$SKILL" | grep -oE '[0-9]+'); do
    grep -qE "^\| $status \|" "${PAGE%/*}/guarantees.md"
    echo "$status"
  done >statuses
  [[ $(sort -u statuses | tr '\n' ' ') == '124 69 74 75 76 77 78 ' ]]
}

@test "the skill has a name, a description and at most sixty lines" {
  (($(wc -l <"$SKILL") <= 60))
  [[ $(sed -n '1p;4p' "$SKILL" | tr '\n' ' ') == '--- --- ' && $(sed -n 2p "$SKILL") == 'name: rlock' ]]
  about=$(sed -n '3s/^description: //p' "$SKILL")
  ((${#about} > 50 && ${#about} < 900)) && [[ $about != *': '* ]] # which YAML would not read as text
}

@test "the hook refuses each command of hook.table that needs a lock, says the line to type, allows that, and nothing else is refused" {
  python3 - "${PAGE%.md}" "$TESTS_DIR/docs/hook.table" <<'PYTHON'
import json, re, subprocess, sys

folder, table = sys.argv[1:]
hook = ["awk", "-f", folder + "/hook.awk", folder + "/hook.rules", "-"]
rules = [line.split("=>")[1].strip() for line in open(hook[3]) if line[0] != "#" and line[-3:] != "=>\n"]
INPUTS = [  # of Claude Code and Codex, Gemini CLI, Cursor, Copilot, and Copilot with arguments in a string
    lambda command: {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command, "description": '"make"'}},
    lambda command: {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": command}},
    lambda command: {"hook_event_name": "beforeShellExecution", "command": command, "cwd": "/srv"},
    lambda command: {"toolName": "bash", "toolArgs": {"command": command}},
    lambda command: {"toolName": "bash", "toolArgs": json.dumps({"command": command})},
    # Each character as \uXXXX, and a command that is not meant.
    lambda command: '{"command": "ls", "tool_input":\n{\t"command"\n:\t"' + re.sub("....", r"\\u\g<0>", command.encode("utf-16-be").hex().upper()) + '"}}',
]

def said(text, form):
    """The line to type; or the same text, if it may run."""
    done = subprocess.run(hook, input=form(text) if form == INPUTS[5] else json.dumps(form(text)), text=True, capture_output=True)
    if done.returncode == 0 and not done.stdout + done.stderr:
        return text
    answer = json.loads(done.stdout)
    assert done.returncode == 2 and {answer[key] for key in ("decision", "permission", "permissionDecision")} == {"deny"}
    assert {answer[key] for key in ("reason", "agent_message", "user_message", "permissionDecisionReason")} == {done.stderr[:-1]}
    return done.stderr[:-1].split("\n", 1)[1]

rows = [row.rstrip("\n").replace("^J", "\n") for row in open(table) if not row.startswith("## ")]
for number, row in enumerate(rows):
    command = re.sub(r"@\d[ :]", "", row)
    line = re.sub(r"@(\d)([ :])", lambda found: f"rlock run {rules[int(found[1]) - 1]} -- " + "bash -c '\"$@\"' - " * (found[2] == ":"), row)
    assert said(command, INPUTS[number % 6]) == line, f"{command}\n{said(command, INPUTS[0])}"
    assert line == command or said(line, INPUTS[0]) == line, f"refused though it has its locks: {line}"
assert len(rows) >= 200
assert f"`{said('cd app && make | tee log', INPUTS[0])}`" in open(folder + ".md").read()
for long in ("echo " + "$(" * 40 + "make" + ")" * 40, "eval " * 999 + "make", "rlock run a -- " * 999 + "make", "find -exec " * 999 + "make", "make " * 9999):
    assert said(long, INPUTS[0]) == long
hook[3] = "none"
none = subprocess.run(hook, input='{"command": "ls"}', text=True, capture_output=True)
assert none.returncode == 2 and none.stderr == "rlock: the rules of the hook cannot be read: none\n" and json.loads(none.stdout)
PYTHON
}

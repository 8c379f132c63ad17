# The examples in the man pages and in each --help do what they say.

load ../lib/server
load ../lib/docs

setup() {
  MAN=$TESTS_DIR/../man
  use_server srv
  stand_ins ' $*' deploy.sh report.sh migrate.sh import.sh backup.sh tick.sh train.sh daemon step-one step-two bin/make bin/backup bin/terraform
}
teardown() {
  [[ ! -d $BATS_TEST_TMPDIR/l ]] || rlock --url "local:$BATS_TEST_TMPDIR/l" local stop --yes || true
  assert_clean srv
}

# as_here: standard input with this test's paths, so that nobody's own local: server is touched.
as_here() { sed "s,--url local:,--url local:$PWD/l,; s,/usr/local/bin/backup,backup,; s,/opt/backup,backup,; s,^5-55/10 2-4 \* \* \* ,,"; }

# PAGE:EXAMPLES for each man page with examples that a shell runs; a test below follows each.
PAGES='rlock.1:1 rlock-run.1:7 rlock-acquire.1:3 rlock-status.1:3 rlock-force-unlock.1:1 rlock-history.1:1'

# example PAGE NUMBER: a line or block of the page's EXAMPLES.
example() {
  sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/p' "$MAN/$1" | awk -v wanted="$2" '
    /^\.Dl / { if (++n == wanted) { sub(/^\.Dl /, ""); print } next }
    /^\.Bd / { n++; inside = 1; next }
    /^\.Ed/ { inside = 0 }
    inside && n == wanted { print }' | sed 's/^\\&//; s/\\(dq/"/g; s/\\-/-/g' | as_here
}

# man_blocks: each of them, as block.man.PAGE.NUMBER in this folder.
man_blocks() {
  local page number
  for page in $PAGES; do
    for ((number = 1; number <= ${page#*:}; number++)); do
      example "${page%:*}" "$number" >"block.man.${page%:*}.$number"
    done
  done
}

# follow PAGE NUMBER: runs it in a shell that stops at the first error.
follow() {
  example "$1" "$2" >script
  [[ -s script ]]
  run -0 --separate-stderr timeout -k 1 60 bash -eu script </dev/null
}

# help_examples SUBCOMMAND: the lines below "Examples:", without the remarks after them.
help_examples() {
  rlock "$1" --help | sed -n '/^Examples\{0,1\}:/,/^Exit status/{/^  /p}' | sed -E 's/^  //; s/   +[a-z].*$//' | as_here
}

# by_another: another owner holds every lock in the documents, with the kind that they use.
by_another() {
  local name
  for name in hello nightly deploy tick database migrations catalogue-db catalogue-files data backup daily-report weekly-report leader \
    production terraform-production; do
    rlock acquire "$name" --lease 10m
  done
  rlock acquire -x catalogue --lease 10m
  for name in 1 2 3; do rlock acquire --slots 3 builds --lease 10m; done
  rlock acquire --from board0,board1,board2 --take 3 boards --lease 10m
  rlock acquire --protocol set nightly-python --lease 10m
  rlock acquire --from gpu0,gpu1,gpu2,gpu3 --take 4 gpus --lease 10m
  rlock acquire --from 8700..8799 --take 64 "ports-$(uname -n)" --lease 10m
  rlock acquire --from 8700..8799 --take 36 "ports-$(uname -n)" --lease 10m
  rlock acquire --slots 8 --take 8 test-databases --lease 10m
  rlock acquire --slots 2 --take 2 api --lease 10m
}

# nothing_of SCRIPT: a shell without set -e has run it, and no step of it ran.
nothing_of() {
  RLOCK_WAIT=0 timeout -k 1 60 sh "$1" </dev/null >out 2>&1 3>&- || true
  [[ ! -e calls ]] && ! grep -qF 'I have the lock' out || { cat "$1" out calls && return 1; }
}

# documented: all scripts that take a lock, as block.*, with the addresses of these tests and without a wait of minutes.
documented() {
  local subcommand root=$TESTS_DIR/..
  blocks "$root/README.md" "$root/docs/guarantees.md" "$root/docs/cookbook.md"
  man_blocks
  for subcommand in run acquire renew release status; do help_examples "$subcommand" >"block.help.$subcommand"; done
  tldr_examples | split -l 1 - block.tldr.
  sed -i 's/-s data/-s catalogue/' block.help.run # the cookbook's data has another kind
  grep -E '^5-55/10 ' "$root/README.md" | as_here | sed -E 's/^([^ ]+ +){5}//' >block.crontab
  [[ -z $(find . -name 'block.*' -empty) ]]
  rm block.man.rlock-status.1.* $(grep -lE 'force-unlock|--supersede' block.*) # they take none, or take it away
  sed -i -E "s,--url local:$PWD/l,,; s/--wait [0-9]+[mh]/-n/" block.*
  echo 4f2a1c9 >commit
  (($(ls block.* | wc -l) >= 30))
}

@test "no documented script does anything while another owner has its lock, or if Redis is unreachable" {
  local script PATH=$PWD:$PATH # the tldr page's commands are in no folder
  documented
  by_another
  for script in block.*; do nothing_of "$script"; done
  redis srv flushall
  export RLOCK_URL=unix://$PWD/none
  for script in block.*; do nothing_of "$script"; done
}

@test "the man pages have no other examples than those tested here" {
  found=$(for page in "$MAN"/*.1; do
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/p' "$page" | grep -cE '^\.(Dl|Bd) ' | sed "s/^/${page##*/}:/"
  done)
  [[ $(sort <<<"$found") == "$(tr ' ' '\n' <<<"$PAGES" | sort)" ]]
  # Elsewhere in the pages.
  [[ $(sed '/^\.Sh EXAMPLES/,/^\.Sh [^E]/d' "$MAN"/*.1 | sed -n 's/^\.Dl \([^ ]*\).*/\1/p' | sort) == $'eval\nssh' ]] # tests/docs/commissioned.bats has the last one
}

@test "rlock.1: try it without a server of your own; rlock-run.1: in a crontab, run when free and silent when busy" {
  follow rlock.1 1
  [[ $output == 'I have the lock' && -z $stderr ]]
  follow rlock-run.1 1
  [[ $(<calls) == 'backup  under nightly' ]]
  # The README has the same line.
  [[ $(grep -E '^5-55/10 ' "$TESTS_DIR/../README.md" | tr -s ' ' | as_here) == "$(<script)" ]]
  # It has succeeded today; then it is held by another owner.
  follow rlock-run.1 1
  [[ -z $output && -z $stderr && $(wc -l <calls) == 1 ]]
  rlock release --forget nightly 'per day'
  rlock acquire nightly --lease 1m >owner
  follow rlock-run.1 1
  [[ -z $output && -z $stderr && $(wc -l <calls) == 1 ]]
  rlock release nightly --owner "$(<owner)"
  redis srv del 'rlock:totals:{nightly}' # of jobs that found it busy
}

# cron_lines: each documented line that one of many hosts has to run and the others skip: in a crontab, a systemd unit,
# a script. Without cron's fields, and without the markup of troff and tldr. Does not include rows that explain another
# program's line that holds its lock no longer than the job.
cron_lines() {
  local root=$TESTS_DIR/..
  {
    cat "$root"/README.md "$root"/docs/{agents,configuration,cookbook,guarantees,servers,security,java,interop}.md "$root"/packaging/examples/*.*
    cat "$root/packaging/examples/crontab" "$MAN"/*
    sed -nE 's/^`(rlock .*)`$/\1/; s/\{\{\[-.\|(--[a-z-]*)\]\}\}/\1/g; s/[{}]{2}//g; /^rlock/p' "$root/docs/tldr/rlock.md"
    help_examples run
  } | grep -vE '^\| (`flock|`@SchedulerLock|`lockAt|the same lock)|--once-status' | grep -E 'rlock run .*((-E|--conflict-exit-code) 0|--once.* -- )' | sed -E 's/^.*(rlock run )/\1/; s/ \|\| .*//'
}

@test "each documented line for many hosts at the same time runs the job once, even if their clocks differ by more than its duration" {
  local line count=0 host
  printf '#!/bin/sh\necho ran >>"%s/calls"\n' "$PWD" >once
  chmod +x once
  echo 4f2a1c9 >commit
  while IFS= read -r line; do
    : >calls
    # Each host comes when the one before it is done.
    for host in 1 2 3; do
      timeout -k 1 60 sh -c "${line%% -- *} -- '$PWD/once'" </dev/null >>said 2>&1 3>&- || { echo "$line" && cat said && return 1; }
    done
    [[ $(<calls) == ran && ! -s said ]] || { echo "$line" && cat calls said && return 1; }
    redis srv flushall >/dev/null
    count=$((count + 1))
  done < <(cron_lines)
  ((count >= 10)) || { echo "$count lines" && cron_lines && return 1; }
}

@test "rlock-run.1: in a pipeline, readers and a writer, slots, several names; a migration, once for its version" {
  for number in 2 3 4 5 6; do follow rlock-run.1 $number; done
  [[ $(<calls) == $'deploy.sh  under deploy\nreport.sh  under catalogue\nimport.sh  under catalogue\nmake  under builds\nmake test under boards\nmigrate.sh  under catalogue-db catalogue-files' ]]
  rm calls
  follow rlock-run.1 7
  follow rlock-run.1 7
  [[ $(<calls) == 'migrate.sh  under migrations' ]]
  redis srv del 'rlock:once:{migrations}'
}

@test "rlock-acquire.1: by hand, over several steps or those of a pipeline, with the fencing token; under another owner's lock, nothing is done" {
  follow rlock-acquire.1 1
  [[ $(cut -d' ' -f1 calls) == $'step-one\nstep-two' && $(redis srv exists deploy) == 0 ]]
  rm calls
  owner=$(rlock acquire deploy --lease 1m)
  for number in 1 3; do
    example rlock-acquire.1 $number | sed 's/--lease/-n --lease/' >script
    run -75 bash -eu script
    [[ ! -e calls ]]
  done
  rlock release deploy --owner "$owner"
  example rlock-acquire.1 2 >script
  [[ $(wc -l <script) == 3 ]]
  # The first two lines and the third, each in its own shell, whose parent is the runner.
  sed "1{N;s/\n/; /}; s/.*/bash -euc '&'/" script >runner
  run -0 --separate-stderr bash -eu runner
  [[ -s owner && $(redis srv exists deploy) == 0 ]]
  # shellcheck disable=SC2016 # for the stub
  printf 'echo "$RLOCK_TOKEN" >token\n' >>deploy.sh
  follow rlock-acquire.1 3
  [[ $(<token) -gt 0 && $(redis srv exists deploy) == 0 ]]
  # The line among its options is the same.
  grep -qF "$(sed -n 's/^\.Dl eval \(.*\)/eval \1/p' "$MAN/rlock-acquire.1" | sed 's/\\(dq/"/g')" script
}

@test "rlock-status.1: each example" {
  owner=$(rlock acquire deploy --lease 10m)
  follow rlock-status.1 1
  [[ $output == *deploy*'state     held'* ]]
  follow rlock-status.1 2
  [[ $output == busy ]]
  rlock release deploy --owner "$owner"
  example rlock-status.1 3 >script
  run -2 bash script
  rlock run --once-per day nightly -- true
  follow rlock-status.1 3
  [[ $output == 'nightly: succeeded '* ]]
  redis srv del 'rlock:once:{nightly}'
}

@test "rlock-history.1: a job and its history; rlock-force-unlock.1: a lock is stuck at night" {
  follow rlock-history.1 1
  [[ $(<calls) == 'backup  under nightly' && $output == ENDED*nightly* && $(<page.html) == *'"nightly"'* ]]
  redis srv del 'rlock:history:{nightly}' 'rlock:totals:{nightly}' # they stay for a month
  rlock acquire deploy --lease 10m
  example rlock-force-unlock.1 1 >script
  tells 0 'state     held' python3 "$TESTS_DIR/lib/terminal.py" '[y/N]' y bash -eu script
  assert_says 'deploy: free'
  [[ $(redis srv exists deploy) == 0 ]]
}

@test "rlock.toml.5: the example" {
  sed -n '/^\.Sh EXAMPLES/,$p' "$MAN/rlock.toml.5" | sed -n '/^\.Bd/,/^\.Ed/{/^\.[BE]d/d;p}' >example.toml
  [[ -s example.toml ]]
  # The configuration guide has the same one.
  diff example.toml <(sed -n '/^```toml$/,/^```$/{/^```/d;p}' "$TESTS_DIR/../docs/configuration.md")
  chmod go-w example.toml
  # Its server stands for one that does not exist here.
  sed -i 's/cache\.example/127.0.0.1:1/' example.toml
  unset RLOCK_URL
  tells 69 '127.0.0.1:1' rlock --config example.toml run -n deploy -- touch ran
  [[ ! -e ran ]]
}

@test "docs/interop.md: the examples" {
  sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$TESTS_DIR/../docs/interop.md" >script
  (($(wc -l <script) >= 2))
  run -0 --separate-stderr timeout -k 1 60 bash -eu script </dev/null
  [[ $(grep -c '^backup.sh  under .*nightly$' calls) == $(wc -l <script) && -z $stderr ]]
}

# tldr_examples: the commands of the tldr page, one per line, with values for the placeholders.
tldr_examples() {
  sed -n 's/^`\(.*\)`$/\1/p' "$TESTS_DIR/../docs/tldr/rlock.md" |
    sed -E 's/\{\{\[(-.)\|(--[a-z-]+)\]\}\}/\1/g; s/\{\{name\}\}/deploy/g; s/\{\{command\}\}/deploy.sh/g; s/\{\{([^}]*)\}\}/\1/g' | as_here
}

@test "the tldr page has the usual form, its options exist, and each of its examples works" {
  local page=$TESTS_DIR/../docs/tldr/rlock.md pair
  # A title, a description, and up to eight examples: a sentence with a colon, an empty line, a line of code.
  [[ $(head -n 1 "$page") == '# rlock' && $(sed -n 2p "$page") == '' && $(sed -n 3p "$page") == '> '*. ]]
  grep -qE '^> More information: <https://.*>\.$' "$page"
  [[ $(sed -n '7,$p' "$page" | sed -E 's/^- .*:$/text/; s/^`[^`]+`$/code/' | paste -sd' ' | tr -s ' ') =~ ^(text\ code\ ?){1,8}$ ]]
  # Both forms of an option are the same option.
  for pair in $(grep -oE '\[-.\|--[a-z-]+\]' "$page" | tr -d '[]' | tr '|' ,); do
    rlock run --help | grep -qE "^ +$pair "
  done
  PATH=$PWD:$PATH
  tldr_examples >examples
  [[ $(wc -l <examples) == 8 && $(grep -c '{{' examples) == 0 ]]
  sed 's/^rlock status deploy$/rlock run deploy -- &/; s/^rlock force-unlock .*/rlock acquire deploy --lease 10m; & --yes/
    /--once-per/s/$/; rlock release --forget deploy "per day"/' examples >script
  run -0 --separate-stderr timeout -k 1 60 bash -eu script </dev/null
  [[ $output == *'state     held'*'deploy: free'* ]]
  # Six commands ran, five of them under a lock that rlock run gave them.
  [[ $(wc -l <calls) == 6 && $(grep -c 'under deploy$' calls) == 5 ]]
}

@test "run --help: each example" {
  help_examples run >script
  [[ $(grep -c '^rlock ' script) == 8 ]]
  run -0 --separate-stderr bash -eu script
  [[ $output == 'I have the lock' && -z $stderr ]]
  [[ $(cut -d' ' -f1,2 calls) == $'backup \ndeploy.sh \nmake \nmake install\nreport.sh \nmake \nmigrate.sh \nmigrate.sh ' ]]
  redis srv del 'rlock:once:{nightly}' 'rlock:once:{migrations}'
}

@test "the help of acquire, renew, release, status and force-unlock: each example; that with an owner does not touch another's lock" {
  help_examples acquire >script
  [[ $(grep -c rlock script) == 6 ]]
  echo 'rlock release deploy --owner "$owner"' >>script
  run -0 --separate-stderr bash -eu script
  [[ $(<calls) == 'deploy.sh  under deploy' && $(redis srv exists deploy) == 0 ]]
  {
    echo 'owner=$(rlock acquire deploy --lease 10s)'
    help_examples renew
    echo 'redis-cli -s "$srv_sock" pttl deploy'
    help_examples release
  } >script
  [[ $(grep -c '^rlock ' script) == 3 ]]
  rlock run --once 1.4 migrations -- true
  run -0 --separate-stderr bash -eu script
  ((lines[-1] > 1000000))
  help_examples status >script
  owner=$(rlock acquire deploy --lease 10m)
  run -0 --separate-stderr bash -eu script
  [[ $output == *'state     held'*$'\nbusy\nnightly: no success is known'*$'\nno backup today' ]]
  help_examples force-unlock | tail -n 1 >script
  run -76 --separate-stderr bash -eu script
  [[ $(redis srv hgetall deploy) == "$owner"$'\n1' ]]
  rlock release deploy --owner "$owner"
}

@test "the man page's command for removing old fencing tokens removes those, and no others" {
  rlock run build-1 -- true
  rlock run "build-2 of Alice's" -- true
  rlock run deploy -- true
  # shellcheck disable=SC2016 # for the stub
  printf '#!/bin/sh\nPATH=${PATH#*:} exec redis-cli -s "%s" "$@"\n' "$srv_sock" >bin/redis-cli
  chmod +x bin/redis-cli
  sed -n '/^redis-cli --scan/,/^\.Ed/{/^\.Ed/!p}' "$MAN/rlock.1" | sed "s/\\\\(aq/'/g; s/\\\\e/\\\\/g" >recipe
  [[ $(wc -l <recipe) == 2 ]]
  sh -e recipe
  [[ $(redis srv exists 'redisson_lock_token:{build-1}' "redisson_lock_token:{build-2 of Alice's}") == 0 ]]
  [[ $(redis srv exists 'redisson_lock_token:{deploy}') == 1 ]]
}

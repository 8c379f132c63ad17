# The examples in packaging/examples, each with as much of its surroundings as is available: cron, systemd, CI systems,
# containers.

load ../lib/server

setup() {
  EXAMPLES=$(cd "$TESTS_DIR/../packaging/examples" && pwd)
  use_server srv
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  PATH=$PWD/bin:$PATH
}

held() { [[ $(redis srv exists "$1") == 1 ]]; }

# stub NAME: bin/NAME writes its name and its lock to `calls`, and executes standard input.
stub() {
  { echo '#!/bin/sh' && printf 'echo "%s under $(echo $RLOCK_NAME)" >>"%s/calls"\n' "$1" "$PWD" && cat; } >"bin/$1"
  chmod +x "bin/$1"
}

# here: standard input, an example, with this test's paths.
here() { sed "s,/usr/local/bin/,$PWD/bin/,g; s,/srv/,$PWD/srv/,g"; }

# yaml FILE EXPRESSION: prints it, the words of a list one per line; `doc` is the document.
yaml() {
  here <"$EXAMPLES/$1" | python3 -c '
import sys, yaml
doc = yaml.safe_load(sys.stdin)
value = eval(sys.argv[1])
print(*(value if isinstance(value, list) else [value]), sep="\n")' "$2"
}

needs_node() { command -v node >/dev/null || skip 'NO NODE HERE: the action for GitHub is not tested'; }

@test "the table of the examples has every file, and no others" {
  diff <(grep -oE '^\| `.*` \|' "$EXAMPLES/README.md" | grep -oE '`[^`]*`' | tr -d '`/' | sort) \
    <(ls "$EXAMPLES" | grep -vx README.md | sort)
}

@test "each example that takes a lock, and the start of each document, say where to name the server" {
  for file in $(grep -rlE '\brlock (run|acquire) |"rlock", "run"' "$EXAMPLES"); do
    grep -qE 'RLOCK_URL|/etc/rlock/rlock\.toml' "$file" || { echo "$file" && return 1; }
  done
  for file in README.md docs/cookbook.md docs/interop.md docs/agents.md; do
    # Before or beside the first command.
    sed '/rlock run /q' "$TESTS_DIR/../$file" | grep -q RLOCK_URL || { echo "$file" && return 1; }
  done
  for file in rlock-run rlock-acquire; do
    sed -n '/^\.Sh EXAMPLES/,/^\.[DB][ld] /p' "$TESTS_DIR/../man/$file.1" | grep -q RLOCK_URL || { echo "$file" && return 1; }
  done
}

@test "crontab: one host runs the job, and there is mail only after a failure" {
  here <"$EXAMPLES/crontab" >crontab
  [[ $(grep -vcE '^(#.*)?$' crontab) == 4 ]]
  # cron runs the text after the user with /bin/sh, with only these variables.
  as_cron() {
    run --separate-stderr "$1" env -i HOME="$HOME" SHELL=/bin/sh PATH="$PWD/bin:/usr/bin:/bin" RLOCK_URL="$2" \
      /bin/sh -c "$(sed -nE 's/^5-55\/10 2-4 \* \* \*  backup  //p' crontab)" </dev/null
  }
  stub backup.sh </dev/null
  as_cron -0 "$RLOCK_URL"
  [[ -z $output$stderr && $(<calls) == 'backup.sh under backup' ]]
  # A host whose clock is late, and one where the job takes long.
  as_cron -0 "$RLOCK_URL"
  [[ -z $output$stderr && $(wc -l <calls) == 1 ]]
  as_cron -0 "unix://$PWD/none"
  [[ -n $stderr && $output == 'backup failed: 69' ]]
  redis srv flushall
  stub backup.sh <<<'echo "the disk is full" >&2; exit 3'
  as_cron -0 "$RLOCK_URL"
  [[ $stderr == 'the disk is full' && $output == 'backup failed: 3' ]]
  # As the file says, the next line tries again; a job may fail without a message.
  stub backup.sh <<<'rlock status backup | grep -q "reason    nightly backup" && exit 3'
  as_cron -0 "$RLOCK_URL"
  [[ -z $stderr && $output == 'backup failed: 3' ]]
  redis srv flushall
}

@test "backup.sh: files in the order of the grants, seven are kept; never without the lock" {
  mkdir -p srv/data srv/backup
  here <"$EXAMPLES/backup.sh" >backup.sh
  tells 2 'rlock run backup' sh backup.sh
  for number in 1 2 3 4 5 6 7 8 9; do
    echo "$number" >srv/data/number
    rlock run backup -- sh backup.sh
  done
  run ! env BACKUP_FROM=none rlock run backup -- sh backup.sh
  [[ $(ls srv/backup | wc -l) == 7 ]]
  [[ $(tar -xOzf "srv/backup/$(ls srv/backup | tail -n 1)" ./number) == 9 ]]
  [[ $(tar -xOzf "srv/backup/$(ls srv/backup | head -n 1)" ./number) == 3 ]]
}

@test "systemd: the units have no errors" {
  command -v systemd-analyze >/dev/null || skip 'NO SYSTEMD HERE: the units are not verified'
  # systemd looks for programs in its own PATH.
  for unit in {backup,status-page}.{service,timer} leader.service; do sed "s,=rlock ,=$PWD/bin/rlock ," "$EXAMPLES/$unit" >"$unit"; done
  run -0 systemd-analyze verify --man=no ./{backup,status-page}.{service,timer} ./leader.service
  [[ $output != *"$PWD"* ]] || { show && return 1; }
  # systemd puts what a DynamicUser leaves in /run/private, where no web server can read it.
  [[ $(grep -cE '^(RuntimeDirectoryPreserve=yes|User=status-page)$' status-page.service) == 2 ]]
  run ! grep -q '^DynamicUser' status-page.service
}

# exec_start UNIT
exec_start() { here <"$EXAMPLES/$1" | sed -n 's/^ExecStart=//p'; }

@test "systemd: stopping a unit ends the job, and then the lock is free at once; after kill -9 of a leader, the next host leads" {
  for unit in backup leader; do
    stub backup.sh <<<'sleep 1000 & wait'
    stub daemon <<<'sleep 1000 & wait'
    grep -qx 'KillMode=mixed' "$EXAMPLES/$unit.service" # SIGTERM to the main process alone
    rm -f calls
    sh -c "exec $(exec_start "$unit.service")" 3>&- &
    main=$!
    wait_until test -s calls
    kill -TERM "$main"
    exits "$main" 143
    [[ $(redis srv exists "$unit") == 0 ]]
    redis srv del "rlock:once:{$unit}" >/dev/null # of the failure
  done
  # After kill -9 of the leader, the next host becomes the leader.
  rm calls
  stub daemon <<<'exec sleep 1000'
  sh -c "exec $(exec_start leader.service)" 3>&- &
  first=$!
  wait_until test -s calls
  sh -c "exec $(exec_start leader.service)" 3>&- &
  second=$!
  wait_until queued leader 1
  kill -KILL "$first"
  wait_until eval '(( $(wc -l <calls) == 2 ))'
  end_mine_wholly "$second"
  [[ $(redis srv exists leader) == 0 ]]
}

@test "logrotate: one host rotates, and the next finds it done" {
  command -v logrotate >/dev/null || skip 'NO LOGROTATE HERE'
  mkdir -p srv/logs
  echo text >srv/logs/a.log
  here <"$EXAMPLES/logrotate.conf" >shared.conf
  chmod 644 shared.conf
  chmod 755 srv/logs
  sed -n 's/^#.* root  //p' shared.conf | sed "s,/etc/logrotate-shared.conf,-f $PWD/shared.conf," >job
  [[ $(grep -cE '^#   15 0 \* \* \*  root  ' shared.conf) == 1 ]] && grep -q '/etc/cron\.d/' shared.conf # the one with users
  # cron's PATH does not contain sbin.
  as_cron() { env -i PATH="$PWD/bin:/usr/bin:/bin" RLOCK_URL="$RLOCK_URL" sh -eu job; }
  run -0 as_cron
  [[ $(zcat srv/logs/a.log-*.gz) == text && ! -s srv/logs/a.log ]]
  echo more >srv/logs/a.log
  run -0 as_cron
  [[ -s srv/logs/a.log ]]
  redis srv del logs 'rlock:once:{logs}'
}

@test "CI: two steps in separate shells; a cancelled job leaves nothing behind" {
  cp "$EXAMPLES"/ci-*-step.sh .
  chmod +x ci-*-step.sh
  renew=$(sed -n 's/^#   \(rlock renew .*\)/\1/p' ci-first-step.sh)
  [[ -n $renew ]]
  grep -qF "\`${renew//|/\\|}\`" "$EXAMPLES/../../docs/cookbook.md"
  # Each way to call it in the file, in a shell whose parent is the runner.
  sed -nE 's/^#   (LOCK_PID=[^#]*[^# ]).*/\1/p' ci-first-step.sh >calls
  [[ $(wc -l <calls) == 2 ]]
  # A pull request may contain a link.
  echo mine >mine
  while IFS= read -r call; do
    ln -s mine .lock-owner
    grep -qF "\`$call\`" "$EXAMPLES/../../docs/cookbook.md"
    printf '%s\n' "sh -euc '$call'" "sh -euc '$renew; rlock status deploy >status'" "sh -euc ./ci-last-step.sh" >runner
    LOCK_WAIT=1m run -0 --separate-stderr bash -eu runner
    grep -q 'reason    a CI job' status
    [[ $(redis srv exists deploy) == 0 && ! -e .lock-owner && $(cat mine) == mine ]]
  done <calls
  # Between the steps, the runner is killed.
  sed -i '2i kill -KILL $$' runner
  run -137 bash -eu runner
  wait_until not held deploy
  # Lost between the steps: the next one does not start, and the last one says so, too.
  rm status
  sed -i '2s/.*/redis-cli -s "$srv_sock" del deploy "rlock:holder:{deploy}"/' runner
  run -76 bash -eu runner
  [[ ! -e status ]]
  sed -i 3d runner
  run -76 bash -eu runner
  # Another job in this folder does not get the lock, and leaves the owner id of the first one alone.
  cat >runner <<'END'
LOCK_PID=$$ sh ci-first-step.sh
cp .lock-owner before
(LOCK_WAIT=0 LOCK_PID=$$ sh ci-first-step.sh) || echo "status $?"
cmp .lock-owner before
sh ci-last-step.sh
END
  tells 0 'status 75' bash -eu runner
  # Without LOCK_PID nothing is taken.
  run -2 --separate-stderr sh ci-first-step.sh
  [[ $stderr == *'LOCK_PID=$PPID'* && $(redis srv exists deploy) == 0 ]]
}

# job_before: another job has the lock `deploy`, until a file `free` exists; its pid is in $job_before.
job_before() {
  rlock run --reason 'release 1.4 ``` <b>' deploy -- sh -c 'touch begun; until [ -e free ]; do sleep 0.1; done' 3>&- &
  job_before=$!
  wait_until test -e begun
}

# A shell that waits until another job waits for `deploy`.
UNTIL_AWAITED='until rlock status --json deploy | grep -q "\"waiting\": 1"; do sleep 0.02; done'

# between_others COMMAND...: runs a job that waits for another one, and that another one waits for; its output is in `out`.
between_others() {
  local job next
  job_before
  "$@" >out 2>&1 3>&- &
  job=$!
  wait_until queued deploy 1
  let_end free "$job_before"
  rlock run --wait 1m --reason 'release 1.5' deploy -- true 3>&- &
  next=$!
  wait "$job"
  wait "$next"
}

# archive_served: an archive with the program at $archive, on a server of this host; $sha256 is its checksum, $server the pid.
archive_served() {
  mkdir -p tree/rlock-1/bin web
  cp "$(realpath "$RLOCK")" tree/rlock-1/bin/rlock
  tar -C tree -c rlock-1 | gzip -1 >web/rlock.tar.gz
  sha256=$(sha256sum web/rlock.tar.gz)
  sha256=${sha256%% *}
  python3 -u -m http.server --bind 127.0.0.1 --directory web 0 >web.log 2>&1 3>&- &
  server=$!
  wait_until grep -q ' port ' web.log
  archive=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' web.log)/rlock.tar.gz
}

# component [INPUT=VALUE...] <SCRIPT: the file `job`, as GitLab gives a job with the component to a shell.
component() { python3 "$TESTS_DIR/lib/gitlab_runner.py" "$EXAMPLES/gitlab/templates/rlock.yml" "$@" >job; }

# What a branch may be called that is not friendly.
NAME_OF_A_BRANCH='-x"; touch ran; $(touch ran) `touch ran` '"'\$LOCK"

@test "GitLab: the lock is held as long as the script's shell lives; a branch's name cannot become a part of the script" {
  export CI_PROJECT_PATH_SLUG=team-application CI_JOB_URL=https://gitlab.example/1
  component <<<'rlock status "$LOCK"; exit 4'
  tells 4 'name      team-application' bash job
  assert_says 'reason    https://gitlab.example/1'
  wait_until not held team-application
  # Another job has it, so the script does not start.
  owner=$(rlock acquire team-application --lease 10m --reason because)
  component wait=0 <<<'touch ran'
  run -75 bash job
  assert_says "reason 'because'"
  [[ $output == *'did not get its lock'*'reason    because'* ]]
  [[ ! -e ran ]]
  rlock release team-application --owner "$owner"
  export CI_COMMIT_REF_NAME=$NAME_OF_A_BRANCH
  component 'lock=$CI_COMMIT_REF_NAME' <<<'rlock status --json -- "$LOCK"; [ "$LOCK" = "$CI_COMMIT_REF_NAME" ]'
  tells 0 '"state": "held"' bash job
  [[ ! -e ran ]]
}

@test "GitLab: in a container whose first process is the script's shell, the lock is free at its end; a loss fails the job" {
  needs_pid_namespaces
  local shell status want as=()
  [[ $(id -u) == 0 ]] || as=(--user --map-root-user)
  export CI_PROJECT_PATH_SLUG=deploy CI_JOB_URL=https://gitlab.example/1
  # The keeper has no time to end by itself.
  in_container() {
    component
    unshare ${as[@]+"${as[@]}"} --pid --fork --kill-child --mount-proc "$shell" <job
  }
  for shell in bash dash 'busybox sh'; do
    command -v "${shell%% *}" >/dev/null || continue
    [[ $shell != busybox* ]] || { printf '#!/bin/sh\nexec busybox sh "$@"\n' >bin/ash && chmod +x bin/ash && shell=ash; }
    for want in 0 4; do
      tells "$want" 'reason    https://gitlab.example/1' in_container <<<$'cd /\nrlock status "$LOCK"\n'"exit $want"
      [[ $(redis srv exists deploy) == 0 ]]
    done
    run -1 in_container <<<$'false\necho not reached'
    [[ $output != *'not reached'* && $(redis srv exists deploy) == 0 ]]
    # Another job may have run at the same time.
    run -76 in_container <<<'redis-cli -s "$srv_sock" del deploy "rlock:holder:{deploy}"'
  done
}

@test "GitLab: the log says for whom the job has waited, and who waited for it" {
  component lock=deploy <<<"$UNTIL_AWAITED"
  between_others bash job
  sed -n '/section_start:[0-9]*:rlock_begin/,/section_end:[0-9]*:rlock_begin/p' out | grep -qxF 'reason    release 1.4 ``` <b>'
  sed -n '/section_start:[0-9]*:rlock_end/,/section_end:[0-9]*:rlock_end/p' out | grep -q '^waiting   1\. .*: release 1.5$'
  grep -q 'The job waited [0-9]* s for its lock' out
}

@test "GitLab: an archive brings the program; it is checked before it is unpacked" {
  local archive sha256 server owner
  archive_served
  mkdir temporary
  export TMPDIR=$PWD/temporary
  PATH=/usr/bin:/bin
  component lock=deploy "archive=$archive" "sha256=$sha256" <<<'rlock status -- "$LOCK"'
  tells 0 'state     held' bash job
  component lock=deploy "archive=$archive" "sha256=$sha256" <<<'redis-cli -s "$srv_sock" del deploy "rlock:holder:{deploy}"'
  run -76 bash job
  owner=$(bin/rlock acquire deploy --lease 10m)
  component lock=deploy wait=0 "archive=$archive" "sha256=$sha256" <<<'touch ran'
  run -75 bash job
  bin/rlock release deploy --owner "$owner"
  component lock=deploy "archive=$archive" "sha256=${sha256//?/0}" <<<'touch ran'
  run -1 bash job
  component lock=deploy "archive=$archive" <<<'touch ran'
  run -1 bash job
  # However a job ends, nothing stays.
  [[ ! -e ran && -z $(ls "$TMPDIR") ]]
  end_mine_wholly "$server"
}

needs_groovy() { command -v groovy >/dev/null || skip 'NO GROOVY HERE: the library for Jenkins is not tested'; }

# jenkins FILE: runs the pipeline with the library.
jenkins() { JAVA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" groovy "$TESTS_DIR/lib/jenkins_runner.groovy" "$1" "$EXAMPLES/jenkins/vars"; }

@test "Jenkins: two stages under one lock; log and description say for whom the build has waited, and who waited for it" {
  needs_groovy
  export BUILD_URL=https://jenkins.example/1
  sed "s,redis://cache.example,$RLOCK_URL," "$EXAMPLES/Jenkinsfile" >pipeline
  printf '#!/bin/sh\nrlock status "$RLOCK_NAME" >status\n' >deploy.sh
  printf '#!/bin/sh\n%s\n' "$UNTIL_AWAITED" >try.sh
  chmod +x deploy.sh try.sh
  between_others jenkins pipeline
  grep -q 'reason    https://jenkins.example/1' status
  sed -n '/^The build waited/,/^token/p' out | grep -qxF 'reason    release 1.4 ``` <b>'
  sed -n '/^Before the release/,/^+/p' out | grep -q '^waiting   1\. .*: release 1.5$'
  grep -qE '^description: The build waited [0-9]+ s for its lock; it was held by .* pid [0-9]+, release 1.4 ``` \?b\?$' out
}

@test "Jenkins: a lock that is busy or lost, a step that fails, slots, an odd name; an archive brings the program, and is checked" {
  needs_groovy
  local owner archive sha256 server
  archive_served
  owner=$(rlock acquire busy --lease 10m --reason because)
  export BRANCH_NAME=$NAME_OF_A_BRANCH'$HOME' ARCHIVE=$archive SHA256=$sha256
  cat >pipeline <<'END'
def fails(Closure steps) { try { steps(); echo 'fine' } catch (failed) { echo "failed: ${failed.message}" } }
def brought = [archive: env.ARCHIVE, sha256: env.SHA256]
fails { withRlock(brought + [name: 'busy', wait: 0]) { sh 'touch ran' } }
fails { withRlock(brought + [name: 'lost']) { sh 'redis-cli -s "$srv_sock" del lost "rlock:holder:{lost}"' } }
fails { withRlock(brought + [name: 'deploy']) { sh 'exit 3' } }
fails { withRlock(brought + [name: 'lost']) { sh 'redis-cli -s "$srv_sock" del lost "rlock:holder:{lost}"; exit 4' } }
fails { withRlock(brought + [wait: 0]) { sh 'touch ran' } }
fails { withRlock(brought + [name: 'slots', slots: 2]) { sh 'rlock status slots >slots' } }
withRlock(brought + [name: env.BRANCH_NAME]) { sh 'test "$RLOCK_NAME" = "$BRANCH_NAME"; rlock status --is-held -- "$RLOCK_NAME"' }
try { withRlock(brought + [name: 'deploy', wait: 'soon']) { } } catch (failed) { }
withRlock(name: 'deploy', archive: env.ARCHIVE, sha256: '0' * 64) { sh 'touch ran' }
END
  mkdir temporary
  PATH=/usr/bin:/bin TMPDIR=$PWD/temporary run -1 jenkins pipeline
  [[ $(grep -E '^(failed|fine)' <<<"$output" | paste -sd,) == 'failed: script returned exit code 75,failed: script returned exit code 76,failed: script returned exit code 3,failed: script returned exit code 4,failed: withRlock: the name of the lock is missing,fine' ]]
  # However a build ends, nothing stays.
  [[ ! -e ran && -z $(ls temporary) && $(redis srv exists deploy) == 0 ]]
  grep -q '1 of 2 slots taken' slots
  assert_says 'The build did not get its lock; it was held by'
  rlock release busy --owner "$owner"
  end_mine_wholly "$server"
  # As GitLab's component does.
  diff <(grep -hoE '(if command -v curl|echo "\$LOCK_SHA|tar ).*' "$EXAMPLES/jenkins/vars/withRlock.groovy") \
    <(grep -hoE '(if command -v curl|echo "\$LOCK_SHA|tar ).*' "$EXAMPLES/gitlab/templates/rlock.yml")
}

# action [INPUT=VALUE...] -- STEP
action() { python3 "$TESTS_DIR/lib/github_runner.py" "$EXAMPLES/github" "$@"; }

@test "GitHub: the action takes the lock or slot for the steps, whatever its name, and its post step releases it" {
  needs_node
  run -0 --separate-stderr action name=deploy -- 'rlock status deploy; echo "token $OUTPUT_token owner $OUTPUT_owner"'
  assert_says 'reason    https://github.example/team/application/actions/runs/17' 'lease     1m'
  [[ $output =~ 'token '([0-9]+)' owner '([0-9a-f-]+:[0-9]+) ]]
  assert_says "token     ${BASH_REMATCH[1]}" "owner     ${BASH_REMATCH[2]}" 'released its lock'
  [[ $output != *'left behind'* && $(redis srv exists deploy) == 0 ]]
  # Slots, and a name that looks like an option.
  owner=$(rlock acquire --slots 2 builds --lease 10m)
  tells 0 '2 of 2' action name=builds slots=2 lease=10s -- 'rlock status builds'
  rlock release builds --owner "$owner"
  tells 0 'on board8' action name=lab 'from=board[8-9]' -- 'echo "on $OUTPUT_resource"'
  run -0 action name=-x -- 'rlock status -- -x'
  [[ $(redis srv exists -x) == 0 ]]
}

@test "GitHub: the runner does not kill the keeper, which ends with the runner" {
  needs_node
  run -137 action name=deploy -- 'kill -KILL $PPID'
  wait_until not held deploy
  # The runner cleans up in the middle of the job.
  run -0 action name=deploy -- 'for p in /proc/[0-9]*; do
      case $p in /proc/$$ | /proc/$PPID) continue ;; esac
      if tr "\0" "\n" <$p/environ 2>/dev/null | grep -qx "RUNNER_TRACKING_ID=$RUNNER_TRACKING_ID"; then
        case $(cat $p/comm) in tr | grep | sh) ;; *) kill -KILL ${p#/proc/} ;; esac
      fi
    done
    rlock renew deploy --owner "$OUTPUT_owner" && echo kept'
  assert_says kept
}

@test "GitHub: a step that fails, a lock that is busy or lost, a wrong input" {
  needs_node
  run -3 action name=deploy -- 'exit 3'
  [[ $(redis srv exists deploy) == 0 ]]
  owner=$(rlock acquire deploy --lease 10m --reason because)
  tells 75 '::error title=rlock::deploy: not acquired' action name=deploy wait=0 -- 'touch ran'
  assert_says "reason 'because'"
  [[ ! -e ran ]]
  rlock release deploy --owner "$owner"
  tells 76 '::error title=rlock::deploy: the lock was lost' action name=deploy -- 'redis-cli -s "$srv_sock" del deploy "rlock:holder:{deploy}"'
  tells 64 'the input `name` is missing' action name= -- 'touch ran'
  run -64 action name=deploy wait=soon -- 'touch ran'
  run -69 action name=deploy wait=0 "url=unix://$PWD/none" -- 'touch ran'
  [[ $output == *'summary: The job did not get its lock'* && $output != *'```'* ]] # who has it is not known
  PATH=$(dirname "$(command -v node)"):/usr/bin:/bin run -127 action name=deploy -- 'touch ran'
  assert_says 'install it on the runner'
  [[ ! -e ran ]]
}

@test "GitHub: what others have written does not become a command to the runner" {
  needs_node
  # The runner knows ##[…] anywhere in a line, and ::…:: where it begins.
  owner=$(rlock acquire '::error::##[error]' --lease 10m --reason '##[add-mask]deploy ##[error]because')
  run -75 action 'name=::error::##[error]' wait=0 -- true
  assert_says because
  keep() { printf '%s\n' "$output" | grep -v '^summary: ' >>said; }
  keep
  run -0 rlock status
  keep
  run -75 rlock run -n '::error::##[error]' -- true
  keep
  run -0 rlock status --json '::error::##[error]'
  keep
  [[ $(python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["reason"])' <<<"$output") == '##[add-mask]deploy ##[error]because' ]]
  run -0 action 'name=::error::##[error]x' -- true
  keep
  grep -v "^::error title=rlock::" said >others || true
  run -1 grep -nE '##\[|^ *::' others
  [[ $(grep -c '^::error title=rlock::' said) == 1 ]]
  rlock release '::error::##[error]' --owner "$owner"
}

@test "GitHub: the job's summary says for whom the job has waited, and who waited for it" {
  needs_node
  between_others action name=deploy -- "$UNTIL_AWAITED"
  sed -n 's/^summary: //p' out >summary
  sed -n '/When it began to wait/,/^```$/p' summary | grep -qxF 'reason    release 1.4 ``` <b>'
  sed -n '/Just before that/,/^```$/p' summary | grep -q '^waiting   1\. .*: release 1.5$'
  [[ $(grep -c '^```' summary) == 4 ]]
  # It gives up.
  rm free begun
  job_before
  run -75 action name=deploy wait=0 -- true
  [[ $output == *'summary: The job did not get its lock'*'summary: reason    release 1.4'* ]]
  let_end free "$job_before"
}

@test "GitHub: an archive brings the program; it is checked before it is unpacked, and kept for the next job" {
  needs_node
  local archive sha256 server
  archive_served
  export RUNNER_TOOL_CACHE=$PWD/cache PATH
  PATH=$(dirname "$(command -v node)"):/usr/bin:/bin # without rlock
  tells 0 'state     held' action name=deploy "archive=$archive" "sha256=$sha256" -- 'rlock status deploy'
  assert_says 'released its lock'
  run -64 action name=deploy "archive=$archive" -- 'touch ran'
  tells 69 'status 404' action name=deploy "archive=$archive.asc" "sha256=${sha256//?/0}" -- 'touch ran'
  tells 76 "its SHA-256 is $sha256" action name=deploy "archive=$archive" "sha256=${sha256//?/0}" -- 'touch ran'
  # Without a tool cache it is not kept: in /tmp, somebody else may have prepared a folder with links for it.
  RUNNER_TOOL_CACHE='' run -0 action name=deploy "archive=$archive" "sha256=$sha256" -- true
  [[ ! -e $TMPDIR/rlock ]]
  end_mine_wholly "$server"
  run -0 action name=deploy "archive=$archive" "sha256=$sha256" -- true
  # Another job has written to the cache.
  echo >>"cache/rlock/$sha256.tar.gz"
  run -69 action name=deploy "archive=$archive" "sha256=$sha256" -- 'touch ran'
  [[ ! -e ran ]]
}

@test "GitHub: if the runner cannot be told about the lock, none is taken or left" {
  needs_node
  mkdir place
  # main FILE=PATH...: main.js with a runner that provides these.
  main() { env -u GITHUB_STATE -u GITHUB_OUTPUT INPUT_NAME=deploy "$@" node "$EXAMPLES/github/main.js"; }
  touch state output
  redis srv flushall
  tells 1 '::error title=rlock::GITHUB_OUTPUT' main GITHUB_STATE="$PWD/state"
  tells 1 '::error title=rlock::GITHUB_STATE' main GITHUB_OUTPUT="$PWD/output" GITHUB_STATE="$PWD/place"
  [[ $(redis srv exists deploy 'redisson_lock_token:{deploy}') == 0 && ! -s output ]]
  # A full disk reports it too late.
  tells 1 'GITHUB_OUTPUT' main GITHUB_OUTPUT=/dev/full GITHUB_STATE="$PWD/state"
  assert_says 'ENOSPC'
  [[ $(redis srv exists deploy) == 0 ]]
  # The post step still runs.
  run -0 env $(sed 's/^/STATE_/' state) node "$EXAMPLES/github/post.js"
}

@test "GitHub: the workflow uses inputs that exist" {
  for name in $(yaml github-workflow.yml '[k for s in doc["jobs"]["deploy"]["steps"] for k in s.get("with", {})]'); do
    [[ $(yaml github/action.yml "'$name' in doc['inputs']") == True ]]
  done
  [[ $(yaml github-workflow.yml 'doc["jobs"]["deploy"]["steps"][1]["uses"]') == ./.github/actions/rlock ]]
  grep -qE "uses: .* # a copy of packaging/examples/github\$" "$EXAMPLES/github-workflow.yml"
  [[ $(yaml github/action.yml '[f for f in (doc["runs"]["main"], doc["runs"]["post"])]') == $'main.js\npost.js' ]]
}

# first_process COMMAND...: as the first process of a container. $first is its pid outside.
first_process() {
  local as=()
  [[ $(id -u) == 0 ]] || as=(--user --map-root-user)
  unshare "${as[@]}" --pid --fork --kill-child --mount-proc "$@" 3>&- &
  outside=$!
  wait_until pgrep -P "$outside"
  first=$(pgrep -P "$outside")
}

@test "Kubernetes: as the first process of a container, a job and a daemon; SIGTERM ends them" {
  needs_pid_namespaces
  local file owner job=() first outside
  stub backup.sh <<<'exec sleep 1000'
  stub daemon <<<'exec sleep 1000'
  for file in kubernetes-cronjob.yml kubernetes-leader.yml; do
    mapfile -t job < <(yaml "$file" '[str(w) for w in (doc["spec"].get("jobTemplate", doc)["spec"]["template"]["spec"])["containers"][0]["command"]]')
    [[ ${job[*]:0:2} == 'rlock run' ]]
    job=("${job[@]/'$(NODE)'/node-7}")
    rm -f calls
    first_process "${job[@]}"
    wait_until test -s calls
    kill -TERM "$first"
    wait_until gone "$outside"
    [[ $(redis srv exists backup leader) == 0 ]]
    redis srv del 'rlock:once:{backup}' >/dev/null # of the failure
  done
  # A waiting one ends as well, and is no extra replica.
  owner=$(rlock acquire leader --lease 10m)
  first_process "${job[@]}"
  wait_until queued leader 1
  kill -TERM "$first"
  wait_until gone "$outside"
  queued leader 0
  [[ $(wc -l <calls) == 1 ]]
  rlock release leader --owner "$owner"
}

@test "Docker: the image has the program where the example expects it" {
  from=$(sed -n 's,^COPY --from=rlock \(.*/rlock\) .*,\1,p' "$EXAMPLES/Dockerfile")
  grep -qF '/bin" "$work/$arch/libexec" "$root'"${from%/bin/rlock}"'/"' "$EXAMPLES/../image"
  # The entry point and the command, combined as Docker does.
  stub daemon </dev/null
  here <"$EXAMPLES/Dockerfile" | sed -nE 's/^(ENTRYPOINT|CMD) //p' | python3 -c '
import json, shlex, sys
print(shlex.join(json.loads(sys.stdin.readline()) + json.loads(sys.stdin.readline())))' >job
  run -0 sh -eu job
  [[ $(<calls) == 'daemon under leader' ]]
}

@test "Ansible: the tasks; Terraform: apply runs under the lock of the workspace" {
  local number job=()
  for number in restart migrate; do stub "$number" </dev/null; done
  for number in 0 1; do
    # The module `command` splits the text like a shell, but starts none.
    mapfile -t job < <(yaml ansible.yml "__import__('shlex').split(doc[$number]['ansible.builtin.command']['cmd'])")
    run -0 "${job[@]/'{{ '*' }}'/alice}"
  done
  [[ $(<calls) == $'restart under restart\nmigrate under migrate' ]]
  # The second host of the play; failed_when accepts 100. After a failure, it tries, too.
  run -100 "${job[@]/'{{ '*' }}'/alice}"
  [[ $(yaml ansible.yml 'doc[1]["failed_when"]') == 'migration.rc not in [0, 100]' ]]
  rlock release --forget migrate alice && stub migrate <<<'exit 3'
  for _ in first second; do run -3 "${job[@]/'{{ '*' }}'/alice}"; done && redis srv flushall
  stub terraform <<<'case $1 in workspace) echo production ;; *) echo "$@" ;; esac'
  run -0 --separate-stderr sh "$EXAMPLES/terraform.sh" -auto-approve
  [[ $output == 'apply -auto-approve' && $(tail -n 1 calls) == 'terraform under terraform-production' ]]
}

#!/usr/bin/env bats
# Passwords that change while rlock runs: files and commands that are read for each connection, and the prompt.

load ../lib/common
load ../lib/job

setup_file() {
  redis_start srv --unixsocketperm 777
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true
}
setup() {
  cd "$BATS_TEST_TMPDIR" || return
  export RLOCK_URL=unix://worker@$srv_sock
  ADMIN=$(redis_url srv)
  set_password first
  new_password first
  COMMAND="cat '$PWD/pass'" # names the folder of the test: see nothing_left
}
teardown() {
  touch end
  end_mine_wholly "${process:-}"
  wait_until nothing_left
  assert_clean srv
}
teardown_file() { redis_stop srv; }

# new_password TEXT: the server's new password, instead of the old one. set_password TEXT: writes it into the file.
new_password() { redis srv acl setuser worker reset on ">$1" '~*' '&*' +@all >/dev/null; }
set_password() {
  (umask 077 && printf '%s\n' "$1" >pass.new)
  mv pass.new pass
}
cut_connections() { redis srv client kill user worker >/dev/null; }

# No process that names the test's folder is left, except the test's own.
nothing_left() { [[ -z $(pgrep -f -- "(rlock|sh -c) .*$BATS_TEST_TMPDIR" | grep -vxF -e "$$" -e "$BASHPID") ]]; }

renewals() { grep -c 'renewed for' "$1" || true; }
renewed() { (($(renewals "$1") >= $2)); }
held() { [[ $(redis srv exists "$1") == 1 ]]; }
listening() { [[ -n $(redis srv pubsub channels 'rlock:grant:*') ]]; }

# agent_parts: like job_parts, for a frontend that has forked an agent before the monitor: sets $agent, too.
two_children() { (($(pgrep -c -P "$frontend" -x rlock) == 2)); }
agent_parts() {
  wait_until two_children
  agent=$(pgrep -o -P "$frontend" -x rlock)
  monitor=$(pgrep -n -P "$frontend" -x rlock)
  wait_until child_of "$monitor"
}

@test "twenty renewals, five passwords, and a cut connection each time: from a file and from a command" {
  local i pids
  "$RLOCK" run -v -l 5s --password-file pass file -- sh -c 'until [ -e end ]; do sleep 0.1; done; touch file.done' 2>file.err 3>&- &
  pids=$!
  "$RLOCK" run -v -l 5s --password-command "$COMMAND" command -- sh -c 'until [ -e end ]; do sleep 0.1; done; touch command.done' 2>command.err 3>&- &
  pids+=" $!"
  for i in 1 2 3 4 5; do
    wait_until renewed file.err $((i * 3))
    wait_until renewed command.err $((i * 3))
    # Either may be the first to learn the new one.
    ((i % 2)) || set_password "number-$i"
    new_password "number-$i"
    cut_connections
    set_password "number-$i"
  done
  wait_until renewed file.err 20
  wait_until renewed command.err 20
  touch end
  for i in $pids; do wait "$i"; done
  [[ -e file.done && -e command.done ]]
  not grep -F -e number- -e first file.err command.err
}

@test "a refused password is tried again until the deadline" {
  job_start -v -l 9s --password-command "$COMMAND" job -- sh -c 'until [ -e end ]; do sleep 0.1; done'
  wait_until held job
  new_password second
  cut_connections
  wait_until said 'cannot renew'
  said WRONGPASS
  set_password second
  wait_until said 'renewed again'
  touch end
  job_status 0
}

@test "a password command that is slower than one attempt to renew serves the next attempt" {
  job_start -v -l 12s --password-command "sleep 1.5; $COMMAND" job -- sh -c 'until [ -e end ]; do sleep 0.1; done'
  wait_until renewed job.err 1
  cut_connections
  wait_until said 'did not end in time'
  wait_until said 'renewed again'
  touch end
  job_status 0
}

@test "if the server no longer accepts a connection's password, the connection is replaced" {
  local odd port
  python3 "$TESTS_DIR/lib/odd_server.py" forget >port 3>&- &
  odd=$!
  wait_until test -s port
  port=$(cat port)
  RLOCK_PASSWORD=x run -0 --separate-stderr rlock run --url "redis://127.0.0.1:$port" job -- echo ran
  kill "$odd"
  [[ $output == ran && -z $stderr ]]
}

@test "a waiter whose password changes keeps waiting, and gets its turn" {
  local owner
  owner=$(rlock --url "$ADMIN" acquire job --lease 10m)
  job_start --password-command "$COMMAND" job -- echo ran
  wait_until listening
  new_password second
  cut_connections
  wait_until not listening
  set_password second
  wait_until listening
  rlock --url "$ADMIN" release job --owner "$owner"
  job_status 0
  [[ $output == ran && $stderr != *'not in the queue'* ]]
}

# no_password WHY OPTION...: rlock ends with this message and starts nothing.
no_password() {
  local why=$1
  shift
  run -78 --separate-stderr rlock run "$@" job -- touch ran
  [[ $stderr == *"password command: "*"$why"* && -z $output && ! -e ran ]]
  not held job
}

@test "a command that fails, hangs, or prints nothing or too much" {
  no_password 'exited with 3' --password-command "echo first; exit 3"
  no_password 'killed by signal 9' --password-command 'echo first; kill -9 $$'
  no_password 'did not end in time' --server-timeout 500ms --password-command "sleep 1000; $COMMAND"
  no_password 'did not end in time' --server-timeout 500ms --password-command "echo first; exec >/dev/null; sleep 1000; $COMMAND"
  no_password 'printed nothing' --password-command 'echo'
  no_password 'printed nothing' --password-command 'true'
  no_password 'more than 4096 bytes' --password-command 'yes first'
  no_password 'exited with 127' --password-command './none'
  nothing_left
}

@test "the whole process group of the command is gone after its end, and after a signal" {
  run -0 --separate-stderr rlock run --password-command "sh -c \"sleep 1000; $COMMAND\" >/dev/null & $COMMAND" job -- echo ran
  [[ $output == ran ]]
  nothing_left
  job_start --server-timeout 1m --password-command "touch begun; sh -c \"sleep 1000; $COMMAND\"" job -- touch ran
  wait_until test -e begun
  kill -TERM "$frontend"
  job_status 143
  [[ ! -e ran ]]
  nothing_left
}

@test "regardless of what ends rlock while the command runs, the whole group is ended" {
  local signal verb
  for signal in TERM INT KILL; do
    for verb in 'status job' 'run job -- true'; do
      rm -f begun
      # A shell without job control starts background processes with INT ignored.
      # shellcheck disable=SC2086 # several words
      env --default-signal=INT "$RLOCK" --server-timeout 1m --password-command \
        "touch begun; sh -c \"trap '' TERM INT; sleep 1000; $COMMAND\"; true" $verb 3>&- >out 2>&1 &
      process=$!
      wait_until test -e begun
      kill -"$signal" "$process"
      wait_until gone "$process"
      wait_until nothing_left
    done
  done
}

@test "rlock is killed while it is held up at each of its forks: nothing of the command is left" {
  strace -DDD -f -o /dev/null true 2>/dev/null || skip 'PROCESSES CANNOT BE TRACED HERE: strace(1) is missing or not allowed'
  strace -DDD -f -qq -o /dev/null -e trace=clone,clone3,fork,vfork -e inject=clone,clone3,fork,vfork:delay_exit=2s \
    "$RLOCK" --server-timeout 1m --password-command "sh -c \"touch begun; sleep 1000; $COMMAND\"; true" status job 3>&- >out 2>&1 &
  process=$!
  wait_until test -e begun
  kill -KILL "$process"
  wait_until gone "$process"
  wait_until nothing_left
}

@test "a command that becomes another user's process affects neither rlock's time limit nor its signals" {
  [[ $(id -u) == 0 ]] || skip 'only root can make a program that runs as root'
  local signal helper
  redis_start open --unixsocketperm 777
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_RUN_TMPDIR/test" "$BATS_FILE_TMPDIR" "$open_dir" 2>/dev/null || true
  srv_sock=$open_sock needs_nobody
  helper=$BATS_FILE_TMPDIR/becomes-root
  install -m 4755 "$(command -v setpriv)" "$helper"
  becomes_root() { [[ $(as_nobody env "$helper" --reuid=0 id -ru) == 0 ]]; }
  becomes_root || skip 'this file system heeds no setuid bit'
  chmod 777 .
  local text="echo \$\$ >pid; exec '$helper' --reuid=0 sleep 1000"
  run -78 --separate-stderr as_nobody timeout -k 1 10 "$RLOCK" run --url "unix://$open_sock" --server-timeout 500ms --password-command "$text" job -- touch ran
  assert_says 'did not end in time, and could not be stopped, because it runs as another user'
  end_of_roots
  for signal in TERM INT; do
    # Not as_nobody, because the signal would go to the shell that it starts.
    setpriv --reuid=65534 --regid=65534 --clear-groups env --default-signal=INT "$RLOCK" run --url "unix://$open_sock" --server-timeout 1m --password-command "$text" job -- touch ran 3>&- >out 2>&1 &
    process=$!
    wait_until is_roots
    kill -"$signal" "$process"
    wait_until gone "$process"
    end_of_roots
  done
  [[ ! -e ran ]]
  redis_stop open
}
is_roots() { [[ -s pid && $(ps -o ruid=,comm= -p "$(cat pid)") =~ ^\ *0\ +sleep$ ]]; }
end_of_roots() {
  is_roots
  kill -KILL "$(cat pid)"
  rm pid
}

@test "the command gets standard error, an empty input, its folder and its variables, but no password" {
  export OTHER=of-ours RLOCK_PASSWORD=secret-one REDISCLI_AUTH=secret-two
  local text='cat; pwd >&2; env >seen; ps -o pgid= -p $$ >group; echo first'
  run -0 --separate-stderr rlock run --password-command "$text" job -- echo ran
  [[ $output == ran && $stderr == "$PWD" ]]
  grep -qx 'OTHER=of-ours' seen
  not grep -F secret- seen
  (($(<group) != $(ps -o pgid= -p $$))) # it is in a group of its own
}

@test "each level may name one source, and a stronger level takes precedence" {
  run -64 --separate-stderr rlock run --password-file pass --password-command true job -- touch ran
  assert_says 'cannot be used together'
  run -64 --separate-stderr rlock run --ask-password --password-command true job -- touch ran
  RLOCK_PASSWORD_FILE=pass RLOCK_PASSWORD_COMMAND=true run -78 --separate-stderr rlock run job -- touch ran
  assert_says 'cannot be used together'
  printf '%s\n' 'password-file = "pass"' 'password-command = "true"' >c.toml
  run -78 --separate-stderr rlock run --config c.toml job -- touch ran
  run -64 --separate-stderr rlock run --password-command '' job -- touch ran
  [[ ! -e ran ]]
  echo 'password-command = "false"' >c.toml
  RLOCK_PASSWORD_FILE=pass run -0 --separate-stderr rlock run --config c.toml job -- true
  RLOCK_PASSWORD_FILE=none run -0 --separate-stderr rlock run --config c.toml --password-command "$COMMAND" job -- true
  RLOCK_PASSWORD_COMMAND=$COMMAND RLOCK_PASSWORD=wrong run -0 --separate-stderr rlock run job -- true
  # The password itself also takes precedence over a weaker level.
  RLOCK_PASSWORD=first run -0 --separate-stderr rlock run --config c.toml job -- env
  [[ $output != *RLOCK_PASSWORD* ]]
  run -0 --separate-stderr rlock run --config c.toml --url "unix://worker:first@$srv_sock" job -- true
  RLOCK_URL=unix://worker:first@$srv_sock run -0 --separate-stderr rlock run --config c.toml job -- true
  [[ -z $stderr ]]
  # But not over a file or command from the variables; and REDISCLI_AUTH, which is for every server, does not replace
  # anything.
  RLOCK_PASSWORD_FILE=pass run -0 --separate-stderr rlock run --url "unix://worker:bad@$srv_sock" job -- true
  RLOCK_PASSWORD_FILE=pass RLOCK_PASSWORD=bad run -0 --separate-stderr rlock run job -- true
  echo 'password-file = "pass"' >c.toml
  REDISCLI_AUTH=bad run -0 --separate-stderr rlock run --config c.toml --url "unix://worker:first@$srv_sock" job -- true
}

@test "a ~ that no shell has expanded is not a folder" {
  run -64 --separate-stderr rlock run --password-file='~/pass' job -- touch ran
  assert_says "--password-file: '~/pass': ~ is not expanded here"
  echo 'tls-ca = "~/ca.crt"' >c.toml
  run -78 --separate-stderr rlock run --config c.toml job -- touch ran
  assert_says 'c.toml:1: tls-ca: '
  assert_says 'write the full path'
  [[ ! -e ran ]]
}

# reach: the user nobody may enter this test's folder.
reach() { chmod 711 "$BATS_RUN_TMPDIR/test" . 2>/dev/null || true; }

@test "a file that only another user may read: what to do" {
  [[ $(id -u) == 0 ]] || skip 'only root can become another user'
  needs_nobody
  reach
  run -78 --separate-stderr as_nobody "$RLOCK" --password-file "$PWD/pass" run job -- touch ran
  assert_says 'pass: Permission denied; use a file of your own (chmod 600)'
  [[ ! -e ran ]]
}

connected() { redis srv client list | grep -q 'cmd=evalsha user=worker'; }

# A folder below another user's home, as after `sudo -u`: a process that is in it may stay, but not come back.
@test "a folder whose path cannot be entered: hooks and the password command still run there" {
  [[ $(id -u) == 0 ]] || skip 'only root can close a folder to the user that is in it'
  needs_nobody
  reach
  local here=$PWD
  mkdir -p closed/in
  chmod 700 closed
  install -m 644 pass for-all
  (cd closed/in && exec env HOME=/nonexistent setpriv --reuid=65534 --regid=65534 --clear-groups "$RLOCK" run --lease 6s \
    --password-command "cat '$here/for-all'" --on-acquire 'pwd >&2' --on-release 'pwd >&2' job -- \
    sh -c "until [ -e '$here/end' ]; do sleep 0.05; done; exit 5") 2>err 3>&- &
  local job=$! status=0
  wait_until held job
  cut_connections
  wait_until connected
  touch end
  wait "$job" || status=$?
  cat err
  [[ $status == 5 && $(grep -cx "$PWD/closed/in" err) == 2 && $(wc -l <err) == 2 ]]
}

@test "nested: the inner rlock runs the same command, regardless of other settings" {
  RLOCK_PASSWORD_FILE=$PWD/none run -0 --separate-stderr rlock run --password-command "$COMMAND" job -- \
    sh -c 'cd / && "$RLOCK" run -n job -- echo in'
  [[ $output == in && -z $stderr ]]
}

@test "a job in its own namespace reconnects with the help of its agent" {
  needs_pid_namespaces
  job_start -v -l 5s --isolate --password-command "$COMMAND" job -- sh -c 'until [ -e end ]; do sleep 0.1; done'
  wait_until renewed job.err 1
  set_password second
  new_password second
  cut_connections
  wait_until renewed job.err 3
  touch end
  job_status 0
}

@test "a job with a password command is ended as usual: its tree, its lock, its agent" {
  job_start --password-command "$COMMAND" job -- bash -c "$(tree pids)"
  wait_until lines_in pids 3
  agent_parts
  kill -KILL "$frontend"
  wait_until all_gone pids
  wait_until not held job
  wait_until gone "$agent"
}

@test "kill -9 of the monitor: nothing of the job is left, not even the agent" {
  job_start -l 5s --password-command "$COMMAND" job -- bash -c "$(tree pids)"
  wait_until lines_in pids 3
  agent_parts
  kill -KILL "$monitor"
  job_status 74
  all_gone pids
  gone "$agent"
  redis srv del job 'rlock:holder:{job}' >/dev/null
}

@test "kill -9 of the agent, twice: the job reconnects with a new agent, which ends with the job" {
  local first
  job_start -v -l 6s --password-command "$COMMAND" job -- sh -c 'touch begun; until [ -e end ]; do sleep 0.02; done; exit 7'
  wait_until test -e begun
  agent_parts
  for second in second third; do
    first=$agent
    kill -KILL "$agent"
    wait_until another_agent
    set_password "$second"
    new_password "$second"
    cut_connections
    wait_until renewed job.err $(($(renewals job.err) + 2))
  done
  touch end
  job_status 7
  gone "$agent"
}
another_agent() {
  agent=$(pgrep -P "$frontend" -x rlock | grep -vx "$monitor")
  [[ -n $agent && $agent != "$first" ]]
}

@test "kill -9 of the agent and of the monitor: nothing is left" {
  job_start -l 5s --password-command "$COMMAND" job -- bash -c "$(tree pids)"
  wait_until lines_in pids 3
  agent_parts
  kill -KILL "$agent" "$monitor"
  job_status 74
  all_gone pids
  redis srv del job 'rlock:holder:{job}' >/dev/null
}

@test "kill -9 of the agent does not affect a job that needs no new connection" {
  job_start --password-command "$COMMAND" job -- sh -c 'touch begun; until [ -e end ]; do sleep 0.02; done; exit 7'
  wait_until test -e begun
  agent_parts
  kill -KILL "$agent"
  wait_until gone "$agent"
  touch end
  job_status 7
  [[ -z $stderr ]]
}

@test "guards that were forked ahead of the lock have an agent, too" {
  local owner began
  owner=$(rlock --url "$ADMIN" acquire job --lease 10m)
  job_start -l 5s --password-command "$COMMAND" job -- sh -c 'touch begun; until [ -e end ]; do sleep 0.02; done'
  wait_until listening
  agent_parts
  rlock --url "$ADMIN" release job --owner "$owner"
  wait_until test -e begun
  new_password second
  set_password second
  cut_connections
  let_pass 5500
  held job
  touch end
  job_status 0
}

@test "a keeper runs the command after its variables are gone" {
  local owner began
  sleep 1000 3>&- &
  process=$!
  owner=$(FILE=$PWD/pass RLOCK_PASSWORD_COMMAND='cat "$FILE"' rlock acquire --for-pid "$process" --lease 5s job)
  new_password second
  set_password second
  cut_connections
  let_pass 6000
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  kill "$process"
  wait_until not held job
}

# asks ANSWER COMMAND...: types it at the prompt.
asks() { timeout -k 1 60 python3 "$TESTS_DIR/lib/terminal.py" 'Password for unix://***@' "$@"; }

@test "--ask-password asks on the terminal, and does not show the answer" {
  run -0 asks first "$RLOCK" run --ask-password job -- echo ran
  [[ $output == *ran && $output != *first* ]]
  run -77 asks wrong-one "$RLOCK" run --ask-password job -- touch ran
  [[ $output != *wrong-one* ]]
  run -64 asks '' "$RLOCK" run --ask-password job -- touch ran
  assert_says empty
  run -0 asks first "$RLOCK" status --ask-password
  [[ ! -e ran ]]
}

@test "--ask-password restores the terminal's echo, also after a signal" {
  local modes='echo "status=$?"; stty -a'
  run -0 asks first bash -c "\"$RLOCK\" run --ask-password job -- true; $modes"
  [[ $output == *status=0* && $output == *' echo '* && $output == *'susp = ^Z'* ]]
  run -0 asks $'\x03' bash -c "trap : INT; \"$RLOCK\" run --ask-password job -- touch ran; $modes"
  [[ $output == *status=130* && $output == *' echo '* ]]
  run -0 asks $'\x03' bash -c "trap : INT; \"$RLOCK\" status --ask-password; $modes"
  [[ $output == *status=130* && $output == *' echo '* ]]
  run -0 asks SIGTERM bash -c "trap 'kill -TERM \$!' TERM; \"$RLOCK\" run --ask-password job -- touch ran & wait; wait \$!; $modes"
  [[ $output == *status=143* && $output == *' echo '* && ! -e ran ]]
}

@test "--ask-password accepts a line, and signals, from a terminal that was left in raw mode" {
  local modes='echo "status=$?"; stty -a'
  run -0 asks $'firsx\x7ft\r' bash -c "stty raw; \"$RLOCK\" run --ask-password job -- echo ran; $modes"
  [[ $output == *ran* && $output == *status=0* && $output == *-icanon* ]]
  run -0 asks $'\x03' bash -c "trap : INT; stty -icanon -isig; \"$RLOCK\" run --ask-password job -- touch ran; $modes"
  [[ $output == *status=130* && $output == *-icanon* && ! -e ran ]]
}

@test "--ask-password without a terminal is an error" {
  run -64 --separate-stderr setsid -w "$RLOCK" run --ask-password job -- touch ran
  [[ $stderr == *"--ask-password: there is no terminal"* && ! -e ran ]]
}

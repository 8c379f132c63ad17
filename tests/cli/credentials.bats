# Passwords that change while rlock runs: files and commands that are read for each connection, and the prompt.

load ../lib/job
load ../lib/server
load ../lib/odd

setup_file() { open_server; }
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

# new_password TEXT: the server's new password, instead of the old one. set_password TEXT: writes it into the file.
new_password() { redis srv acl setuser worker reset on ">$1" '~*' '&*' +@all >/dev/null; }
set_password() {
  (umask 077 && printf '%s\n' "$1" >pass.new)
  mv pass.new pass
}
new_password_everywhere() {
  set_password "$1"
  new_password "$1"
  cut_connections
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

@test "six renewals, two passwords, and a cut connection each time: from a file and from a command" {
  local i pids
  "$RLOCK" run -v -l 5s --password-file pass file -- sh -c 'until [ -e end ]; do sleep 0.1; done; touch file.done' 2>file.err 3>&- &
  pids=$!
  "$RLOCK" run -v -l 5s --password-command "$COMMAND" command -- sh -c 'until [ -e end ]; do sleep 0.1; done; touch command.done' 2>command.err 3>&- &
  pids+=" $!"
  for i in 1 2; do
    wait_until renewed file.err $((i * 2))
    wait_until renewed command.err $((i * 2))
    # Either may be the first to learn the new one.
    ((i % 2)) || set_password "number-$i"
    new_password "number-$i"
    cut_connections
    set_password "number-$i"
  done
  wait_until renewed file.err 6
  wait_until renewed command.err 6
  touch end
  for i in $pids; do wait "$i"; done
  [[ -e file.done && -e command.done ]]
  not grep -F -e number- -e first file.err command.err
}

@test "a refused password is tried again until the deadline, and so is a command that is slower than one attempt to renew" {
  job_until end -v -l 9s --password-command "$COMMAND" job
  new_password second
  cut_connections
  wait_until said 'cannot renew'
  said WRONGPASS
  set_password second
  wait_until said 'renewed again'
  job_finish end 3
  rm begun end
  job_until end -v -l 12s --password-command "sleep 1.5; $COMMAND" job
  wait_until renewed job.err 1
  cut_connections
  wait_until said 'did not end in time'
  wait_until said 'renewed again'
  job_finish end 3
}

@test "if the server no longer accepts a connection's password, the connection is replaced" {
  odd forget
  RLOCK_PASSWORD=x run -0 --separate-stderr rlock run --url "$url" job -- echo ran
  end_odd
  [[ $output == ran && -z $stderr ]]
}

@test "a waiter whose password changes keeps waiting, and gets its turn" {
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

@test "regardless of what ends rlock while the command runs, the whole group is ended" {
  for signal in TERM INT KILL; do
    for verb in 'status job' 'run job -- true'; do
      rm -f begun
      # A shell without job control starts background processes with INT ignored.
      # shellcheck disable=SC2086 # several words
      env --default-signal=INT "$RLOCK" --server-timeout 1m --password-command \
        "touch begun; sh -c \"trap '' TERM INT; sleep 1000; $COMMAND\"; true" $verb 3>&- >out 2>&1 &
      process=$!
      wait_until test -e begun
      kill_off -"$signal" "$process"
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
  kill_off -KILL "$process"
  wait_until nothing_left
}

@test "a command that becomes another user's process affects neither rlock's time limit nor its signals" {
  [[ $(id -u) == 0 ]] || skip 'only root can make a program that runs as root'
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
    kill_off -"$signal" "$process"
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

connected() { redis srv client list | grep -q 'cmd=evalsha user=worker'; }

# A folder below another user's home, as after `sudo -u`: a process that is in it may stay, but not come back.
@test "a folder whose path cannot be entered: hooks and the password command still run there; a file that only another user may read" {
  [[ $(id -u) == 0 ]] || skip 'only root can close a folder to the user that is in it'
  needs_nobody
  chmod 711 "$BATS_RUN_TMPDIR/test" . 2>/dev/null || true # as_nobody may enter it
  tells 78 'pass: Permission denied; use a file of your own (chmod 600)' as_nobody "$RLOCK" --password-file "$PWD/pass" run job -- touch ran
  [[ ! -e ran ]]
  local here=$PWD
  mkdir -p closed/in
  chmod 700 closed
  install -m 644 pass for-all
  (cd closed/in && exec env HOME=/nonexistent setpriv --reuid=65534 --regid=65534 --clear-groups "$RLOCK" run --lease 6s \
    --password-command "cat '$here/for-all'" --on-acquire 'pwd >&2' --on-release 'pwd >&2' job -- \
    sh -c "until [ -e '$here/end' ]; do sleep 0.1; done; exit 5") 2>err 3>&- &
  local job=$! status=0
  wait_until held job
  cut_connections
  wait_until connected
  touch end
  wait "$job" || status=$?
  cat err
  [[ $status == 5 && $(grep -cx "$PWD/closed/in" err) == 2 && $(wc -l <err) == 2 ]]
}

@test "a job in its own namespace reconnects with the help of its agent" {
  needs_pid_namespaces
  job_until end -v -l 5s --isolate --password-command "$COMMAND" job
  wait_until renewed job.err 1
  new_password_everywhere second
  wait_until renewed job.err 3
  job_finish end 3
}

@test "kill -9 of the agent, twice: the job reconnects with a new agent, which ends with the job" {
  job_until end -v -l 6s --password-command "$COMMAND" job
  agent_parts
  for second in second third; do
    first=$agent
    kill -KILL "$agent"
    wait_until another_agent
    new_password_everywhere "$second"
    wait_until renewed job.err $(($(renewals job.err) + 2))
  done
  job_finish end 3
  gone "$agent"
}
another_agent() {
  agent=$(pgrep -P "$frontend" -x rlock | grep -vx "$monitor")
  [[ -n $agent && $agent != "$first" ]]
}

@test "kill -9 of the frontend, of the monitor, and of agent and monitor: nothing of the job is left" {
  while read -r wanted victims; do
    : >pids
    job_start -l 5s --password-command "$COMMAND" job -- bash -c "$(tree pids)"
    wait_until lines_in pids 3
    agent_parts
    for one in $victims; do kill -KILL "${!one}"; done
    job_status "$wanted"
    wait_until all_gone pids
    wait_until gone "$agent"
    [[ $victims != frontend ]] || wait_until not held job
    redis srv del job 'rlock:holder:{job}' >/dev/null
  done <<'VICTIMS'
137 frontend
74 monitor
74 agent monitor
VICTIMS
}

@test "guards that were forked ahead of the lock have an agent, too; a keeper runs the command after its variables are gone" {
  owner=$(rlock --url "$ADMIN" acquire job --lease 10m)
  job_start -l 5s --password-command "$COMMAND" job -- sh -c 'touch begun; until [ -e end ]; do sleep 0.1; done'
  wait_until listening
  agent_parts
  rlock --url "$ADMIN" release job --owner "$owner"
  wait_until test -e begun
  new_password_everywhere second
  wait_until connected
  job_finish end 0
  sleep 1000 3>&- &
  process=$!
  owner=$(FILE=$PWD/pass RLOCK_PASSWORD_COMMAND='cat "$FILE"' rlock acquire --for-pid "$process" --lease 5s job)
  new_password_everywhere third
  wait_until connected
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  kill "$process"
  wait_until not held job
}

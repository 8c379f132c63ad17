# Work that a command only commissions: on another host by ssh, or in a running tmux server. These are the cookbook's
# recipes, with a real sshd and tmux; those for docker and systemd need an engine and a system that are not available
# here.

load ../lib/server

setup() {
  command -v ssh >/dev/null && [[ -x /usr/sbin/sshd ]] || [[ $BATS_TEST_DESCRIPTION != ssh* ]] || skip 'NO SSHD HERE: the recipes for ssh are not tested'
  command -v tmux >/dev/null || [[ $BATS_TEST_DESCRIPTION != tmux* ]] || skip 'NO TMUX HERE: the recipe for tmux is not tested'
  use_server srv
  BOOK=$TESTS_DIR/../docs/cookbook.md
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  # The job says which process it is, and continues until something ends it.
  printf '#!/bin/sh\necho $$ >"%s/job.pid"\nexec sleep 1000\n' "$PWD" >job.sh
  chmod +x job.sh
}
teardown() {
  local pid
  for pid in ${sshd_pid:-} $(cat job.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
  [[ ! -S $PWD/tmux ]] || tmux -S "$PWD/tmux" kill-server || true
  assert_clean srv
}

held() { [[ $(redis srv exists nightly) == 1 ]]; }
runs() { [[ -s job.pid ]] && ! gone "$(<job.pid)"; }

# far_side: an sshd of this user at a loopback port, and bin/ssh, which connects to it for any host name, in this
# folder, with the variables that the host would have.
far_side() {
  local port
  port=$(redis_free_port)
  ssh-keygen -q -t ed25519 -N '' -f host_key
  ssh-keygen -q -t ed25519 -N '' -f key
  cp key.pub authorized
  [[ $(id -u) != 0 ]] || mkdir -p /run/sshd
  printf '%s\n' "Port $port" 'ListenAddress 127.0.0.1' "HostKey $PWD/host_key" "AuthorizedKeysFile $PWD/authorized" \
    'StrictModes no' 'UsePAM no' 'PermitRootLogin yes' 'PasswordAuthentication no' "PidFile none" \
    "SetEnv RLOCK_URL=$RLOCK_URL PATH=$PWD/bin:$PATH XDG_CONFIG_HOME=/nonexistent" >sshd.conf
  /usr/sbin/sshd -D -f "$PWD/sshd.conf" -E "$PWD/sshd.log" 3>&- &
  sshd_pid=$!
  cat >bin/ssh <<SCRIPT
#!/bin/sh
exec $(command -v ssh) -F none -p $port -i "$PWD/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \\
  -o LogLevel=ERROR -o HostName=127.0.0.1 "\$@"
SCRIPT
  chmod +x bin/ssh
  PATH=$PWD/bin:$PATH
  wait_until ssh prod true
}

# recipe WORD: the line of the cookbook with WORD, for this test's job.
recipe() {
  grep -hF -- "$1" "$BOOK" | grep -E '^(rlock|ssh|tmux) ' | head -n 1 | sed "s,\./job\.sh,$PWD/job.sh,; s,tmux new,tmux -S '$PWD/tmux' -f /dev/null new," >script
  [[ -s script ]]
}

@test "ssh: without a terminal there, the work continues when the lock is free; with -tt, the end of the client ends the work" {
  far_side
  rlock run nightly -- ssh prod "$PWD/job.sh" </dev/null >out 2>&1 3>&- &
  local job=$!
  wait_until runs
  rlock force-unlock --yes nightly # has the holder stop its command
  exits "$job" 74
  not held
  runs
  kill "$(<job.pid)"
  rm job.pid
  recipe '-- ssh -tt prod ./job.sh'
  sh script </dev/null >out 2>&1 3>&- &
  job=$!
  wait_until runs
  held
  rlock force-unlock --yes nightly
  wait_until gone "$(<job.pid)"
  wait "$job" || [[ $? == 74 ]]
}

# client_dies: the client of the recipe in `script` is killed once the work runs.
client_dies() {
  sed -i 's/^/exec /' script
  sh script </dev/null >out 2>&1 3>&- &
  client=$!
  wait_until runs
  kill -9 "$client"
}

@test "ssh, with rlock on the far side: the lock is held as long as the work, regardless of the client; with -tt, its end stops the work" {
  far_side
  recipe 'ssh prod rlock run nightly'
  client_dies
  wait_until gone "$client"
  runs
  held
  run -75 rlock run -n nightly -- touch ran
  [[ ! -e ran ]]
  kill "$(<job.pid)"
  wait_until not held
  rm job.pid
  recipe 'ssh -tt prod rlock run nightly'
  client_dies
  wait_until gone "$(<job.pid)"
  wait_until not held
}

@test "tmux: rlock inside the session holds the lock as long as the work, whose end ends both; outside, as long as the client" {
  tmux -S "$PWD/tmux" -f /dev/null new-session -d -s other 'sleep 1000' # its server runs already
  recipe 'tmux new-session -d -s nightly'
  PATH=$PWD/bin:$PATH
  sed -i "s,rlock run,RLOCK_URL=$RLOCK_URL $PWD/bin/rlock run," script
  run -0 sh script 3>&-
  wait_until runs
  held
  tmux -S "$PWD/tmux" kill-session -t nightly
  wait_until gone "$(<job.pid)"
  wait_until not held
  rm job.pid
  rlock run nightly -- tmux -S "$PWD/tmux" new-session -d "$PWD/job.sh"
  not held
  wait_until runs
}

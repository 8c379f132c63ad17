# CLIENT LIST shows which lock a connection is for.

load ../lib/job
load ../lib/jobs

names() { redis srv client list | grep -o ' name=[^ ]*' | sort | uniq -c | xargs; }
shows() { [[ $(names) == *"name=$1"* ]]; }

@test "the connections of a job, its waiter and their listeners have the lock's name" {
  job_start job -- sleep 300
  wait_until shows rlock:job
  "$RLOCK" run -q --wait 1m job -- true 3>&- 2>/dev/null &
  local waiter=$!
  listens() { [[ $(redis srv client list | grep -c ' name=rlock:job .* cmd=s\?subscribe') -ge 1 ]]; }
  wait_until listens
  kill -TERM "$waiter" "$frontend"
  wait "$waiter" || true
  job_status
}

@test "several names, and characters that a connection's name cannot contain; the longest names are cut" {
  long=$(printf 'x%.0s' {1..512})
  job_start 'b c' a: 'ü' -- sleep 300
  wait_until shows 'rlock:a:,b%20c,%C3%BC'
  kill -TERM "$frontend"
  job_status
  job_start "$long" -- sleep 300
  wait_until shows "rlock:${long:0:200}"
  kill -TERM "$frontend"
  job_status
}

@test "a user without the right, and a server that does not support it: the job runs without a message" {
  redis srv acl setuser limited on nopass '~*' '&*' +@all -client
  RLOCK_PASSWORD=x run --separate-stderr -0 rlock run --url "unix://limited@$srv_sock" job -- echo mine
  [[ $output == mine && -z $stderr ]]
  redis srv acl deluser limited
}

# For files whose tests run many jobs at the same time on one server, srv: $jobs has their pids, and they end when the
# file end exists in the test's folder, or with the test.
#
#   job_on_x ID TEXT OPTION ...   a job on x that executes TEXT, and runs until the file end or end-ID exists; sets $job_ID
#   ends ID STATUS                it has ended with this status

source "${BASH_SOURCE[0]%/*}/server.bash"

setup() {
  use_server srv
  jobs=()
}
teardown() {
  local job
  touch end
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  assert_clean srv
}

job_on_x() {
  local id=$1
  "$RLOCK" run "${@:3}" x -- sh -c "$2"'; until [ -e end ] || [ -e end-'"$id"' ]; do sleep 0.1; done' \
    2>"err-$id" 3>&- &
  jobs+=($!)
  declare -g "job_$id=$!"
}
ends() {
  local name=job_$1 status=0
  wait_until gone "${!name}"
  wait "${!name}" || status=$?
  [[ $status == "$2" ]] || {
    echo "$1 ended with $status: $(<"err-$1")"
    return 1
  }
}

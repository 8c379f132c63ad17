# Messages in syslog. Source it after common, in a folder of the test; teardown calls end_syslog.
#
#   with_dev COMMAND...     with a /dev of its own, which is the folder dev
#   with_syslog ARG...      rlock with a log there, which we read into the file syslog
#   syslog_says REGEX       it has such a line
#   hang_syslog             the log daemon takes no more messages

with_dev() {
  local namespace
  own_namespace -m 'nobody lets us give a job a /dev of its own'
  mkdir -p dev
  touch dev/null dev/urandom
  "${namespace[@]}" sh -c 'mount --bind /dev/null dev/null && mount --bind /dev/urandom dev/urandom && mount --rbind dev /dev &&
    exec "$@"' sh timeout 60 "$@"
}
with_syslog() {
  if [[ ! -e dev/log ]]; then
    mkdir -p dev
    python3 "$TESTS_DIR/lib/syslog_server.py" "$PWD/dev/log" "$PWD/syslog" 3>&- &
    syslog=$!
    wait_until test -S dev/log
  fi
  rm -f syslog
  with_dev "$RLOCK" "$@"
}
syslog_says() { [[ -e syslog ]] && grep -qE -- "$1" syslog; }
hang_syslog() {
  freeze "$syslog"
  python3 "$TESTS_DIR/lib/syslog_server.py" dev/log fill
}
end_syslog() { [[ -z ${syslog:-} ]] || kill -KILL "$syslog"; }

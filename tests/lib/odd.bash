# Servers that are not what they should be. Source it after common, in a folder of the test.
#
#   odd MODE [TEXT]   starts one instead of the last one, and sets $url; odd_server.py has the modes
#   end_odd           ends it

odd() {
  end_odd
  python3 "$TESTS_DIR/lib/odd_server.py" "$@" >port 2>/dev/null </dev/null 3>&- &
  odd_pid=$!
  wait_until test -s port
  url=redis://127.0.0.1:$(<port)
}
end_odd() {
  [[ -n ${odd_pid:-} ]] || return 0
  end_mine "$odd_pid"
  wait_until gone "$odd_pid"
  unset odd_pid
  rm -f port
}

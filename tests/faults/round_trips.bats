# The cost of an uncontended lock.

load ../lib/server

@test "an uncontended run takes one connection and two exchanges: acquire with what comes along, and release" {
  know_scripts srv
  proxy_start "$srv_sock"
  rlock run job -- true
  end_mine_wholly "$proxy"
  cat passed
  [[ $(cut -d' ' -f1 passed | sort -u | wc -l) == 1 ]]
  # The first two go out in one write with the third.
  [[ $(sed 's/^[0-9]* //' passed) == "CLIENT b'SETNAME'
INFO b'memory'
EVALSHA b'rlock acquire'
EVALSHA b'rlock release'" ]]
}

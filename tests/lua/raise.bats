#!/usr/bin/env bats
# raise: makes the fencing token at least this large.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "a smaller token is raised, also in the holder's description" {
  token=$(acquire owner 5000 hold '' | sed -n 3p)
  [[ $(raise owner $((token + 5))) == raised ]]
  [[ $(redis srv get "$token_key") == $((token + 5)) && $(redis srv hget "$holder" token) == $((token + 5)) ]]
  [[ $(raise owner $((token + 5))) == raised ]] # sent twice
  [[ $(redis srv get "$token_key") == $((token + 5)) ]]
}

@test "a larger token stays" {
  token=$(acquire owner 5000 hold '' | sed -n 3p)
  [[ $(raise owner 7) == raised ]]
  [[ $(redis srv get "$token_key") == "$token" ]]
}

@test "an owner that does not hold the lock raises nothing: other-owner" {
  token=$(acquire owner 5000 hold '' | sed -n 3p)
  [[ $(raise stranger $((token + 5))) == other-owner ]]
  [[ $(redis srv get "$token_key") == "$token" ]]
}

@test "a number that is no token by this server's clock raises nothing: no-token" {
  token=$(acquire owner 5000 hold '' | sed -n 3p)
  [[ $(raise owner 9007199254740000) == no-token ]]
  [[ $(redis srv get "$token_key") == "$token" && $(redis srv hget "$holder" token) == "$token" ]]
}

@test "a token key without a token stays as it is: no-token" {
  acquire owner 5000 hold ''
  local junk
  for junk in words 9007199254740000; do
    redis srv set "$token_key" "$junk"
    [[ $(raise owner 7) == no-token ]]
    [[ $(redis srv get "$token_key") == "$junk" ]]
  done
}

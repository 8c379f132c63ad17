#!/usr/bin/env bats
# The forms of options, and where they may be.

load ../lib/common
load ../lib/server
load ../lib/docs

@test "a flag with nothing after = is an error, and the next word is not its value" {
  local subcommand flag count=0
  for subcommand in run acquire renew release status force-unlock history doctor config local; do
    # Also those of -h and -V.
    for flag in $(help_of "$subcommand" | sed -nE 's/^  (-.,)?(--[a-z-]+)  .*/\2/p'); do
      run -64 --separate-stderr rlock "$subcommand" "$flag=" x
      assert_says "$subcommand: $flag: '' is neither true nor false"
      count=$((count + 1))
    done
  done
  ((count >= 80))
  for flag in --quiet --verbose --tls-insecure --version --help; do
    run -64 --separate-stderr rlock "$flag=" status
    assert_says "$flag: '' is neither true nor false"
  done
}

# The forms of options, and where they may be.

load ../lib/server
load ../lib/docs

@test "a flag with nothing after = is an error, and the next word is not its value" {
  local subcommand flag count=0
  for subcommand in run acquire renew release status force-unlock history doctor config local; do
    # Also those of -h and -V.
    for flag in $(help_of "$subcommand" | sed -nE 's/^  (-.,)?(--[a-z-]+)  .*/\2/p'); do
      tells 64 "$subcommand: $flag: '' is neither true nor false" rlock "$subcommand" "$flag=" x
      count=$((count + 1))
    done
  done
  ((count >= 80))
  for flag in --quiet --verbose --tls-insecure --version --help; do
    tells 64 "$flag: '' is neither true nor false" rlock "$flag=" status
  done
}

# Mistakes on the command line that bad_input.table has no words for: names from the script's own list, and closed
# streams.

load ../lib/server

# refused STATUS TEXT ARG...: rlock ARG... exits with STATUS, prints TEXT only to standard error, and leaves Redis
# unchanged.
refused() {
  local expected=$1 text=$2 keys
  shift 2
  keys=$(redis srv keys '*' | sort)
  run "-$expected" --separate-stderr rlock "$@"
  [[ $stderr == "rlock: "*"$text"* && -z $output ]]
  # Others may have expired meanwhile.
  [[ -z $(comm -13 <(echo "$keys") <(redis srv keys '*' | sort)) && ! -e ran ]]
}

@test "a name that is a companion key of another lock" {
  mapfile -t words < <(rlock doctor --acl p: | tr ' ' '\n' | sed -n 's/^[~&]\(.*:\){p:\*.*/\1/p')
  ((${#words[@]} == 16))
  for name in "${words[@]/%/'{a}'}" "${words[@]/%/a}" '{a}:timeout' 'a{b}:timeout' '{a}:ID:rwlock_timeout:1' 'redisson_unlock_latch:{a}:ID'; do
    refused 64 'a key or channel of another lock' run "$name" -- touch ran
    refused 64 'a key or channel of another lock' force-unlock --yes "$name"
  done
  refused 64 'keys of all locks begin with it' doctor --acl rlock:
  run -0 rlock run rlock -- true
}

# Says which standard streams are open, and exits with 3.
# shellcheck disable=SC2089,SC2090 # a script, for sh -c
STREAMS='o=; for f in 0 1 2; do [ -e /proc/$$/fd/$f ] && o=$o$f; done; echo "$o" >"$OUT"; exit 3'

# stream_closed REDIRECTION: the command sees what it would see without rlock.
stream_closed() {
  # shellcheck disable=SC2090
  export STREAMS OUT=$BATS_TEST_TMPDIR/streams
  local expected
  run -3 timeout -k 1 60 bash -c "sh -c \"\$STREAMS\" $1"
  expected=$(cat "$OUT")
  rm "$OUT"
  run -3 timeout -k 1 60 bash -c "\"\$RLOCK\" run x -- sh -c \"\$STREAMS\" $1"
  [[ $(cat "$OUT") == "$expected" ]] || {
    echo "open with $1: $(cat "$OUT"), not $expected" >&2
    return 1
  }
}

@test "a job without standard input" { stream_closed '<&-'; }
@test "a job without standard output" { stream_closed '>&-'; }
@test "a job without standard error" { stream_closed '2>&-'; }
@test "a job without any standard stream" { stream_closed '<&- >&- 2>&-'; }

@test "a message does not go to a file that was opened as descriptor 2" {
  timeout -k 1 60 bash -c '"$RLOCK" run -v --lease 4s x -- sh -c "echo data >kept" 2>&- <&- >&-'
  [[ $(cat kept) == data ]]
}

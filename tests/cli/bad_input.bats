#!/usr/bin/env bats
# Mistakes on the command line: a clear message, the documented status, nothing changed.

load ../lib/common

OWNER=11111111-2222-3333-4444-555555555555:1

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  redis srv flushall >/dev/null
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

# refused STATUS TEXT ARG...: rlock ARG... exits with STATUS, prints TEXT only to standard error, and leaves Redis
# unchanged.
refused() {
  local expected=$1 text=$2 size
  shift 2
  size=$(redis srv dbsize)
  run "-$expected" --separate-stderr rlock "$@"
  [[ $stderr == "rlock: "*"$text"* && -z $output ]] || {
    show
    return 1
  }
  [[ $(redis srv dbsize) == "$size" && ! -e ran ]]
}

@test "no subcommand, an unknown one and a misspelled one" {
  refused 64 subcommand
  refused 64 "'frob'" frob
  refused 64 'did you mean run?' rnu x -- touch ran
  refused 64 'did you mean status?' statsu
  refused 64 'did you mean force-unlock?' force-unlok x
}

@test "no NAME" {
  refused 64 NAME run
  refused 64 NAME run -- touch ran
  refused 64 NAME acquire --lease 10s
  refused 64 NAME renew --owner "$OWNER"
  refused 64 NAME release --owner "$OWNER"
  refused 64 NAME force-unlock --yes
}

@test "a second NAME where only one is allowed" {
  refused 64 b force-unlock --yes a b
}

@test "a name that is a companion key of another lock" {
  local name
  for name in 'rlock:holder:{a}' 'rlock:hold:{a}:x' 'rlock:queue:{a}' 'rlock:waiters:{a}' 'redisson_lock_token:{a}'; do
    refused 64 'a key of another lock' run "$name" -- touch ran
  done
  run -0 rlock run rlock -- true
}

@test "a name given twice, and too many names" {
  refused 64 "'b' is given twice" run b a b -- touch ran
  refused 64 "'b' is given twice" acquire --lease 10s b b
  refused 64 "'b' is given twice" release --owner "$OWNER" b a b
  local names=()
  mapfile -t names < <(seq 65)
  refused 64 '65 names; at most 64' run "${names[@]}" -- touch ran
  run -0 rlock run "${names[@]:1}" -- true
}

@test "contradictory modes, and impossible numbers of slots" {
  refused 64 --shared run -s -x a -- touch ran
  refused 64 --slots run -s --slots 2 a -- touch ran
  refused 64 --slots run -x --slots 2 a -- touch ran
  refused 64 '--resize needs --slots' run --resize a -- touch ran
  local number
  for number in 0 -1 1.5 x '' 1000001; do
    refused 64 '--slots' run "--slots=$number" a -- touch ran
    refused 64 '--slots' acquire --lease 10s "--slots=$number" a
  done
}

@test "without -- the corrected command line is printed" {
  refused 64 'rlock run x -- touch ran' run x touch ran
}

@test "the corrected command line can be pasted into a shell" {
  run -64 --separate-stderr rlock run 'a b' touch "it's here" '$(touch ran)'
  local line
  line=$(grep '^ *rlock run ' <<<"$stderr")
  show
  eval "$line"
  [[ -e "it's here" && -e '$(touch ran)' && ! -e ran ]]
}

@test "no command, an empty one, and a command together with -c" {
  refused 64 command run x
  refused 64 command run x --
  refused 64 command run x -- ''
  refused 64 command run x -c ''
  refused 64 command run x -c true -- touch ran
}

@test "names come before -c, and no word may follow it" {
  local option
  for option in -c --command; do
    refused 64 "'a' follows -c TEXT" run x "$option" 'touch ran' a b
    refused 64 "'x' follows -c TEXT" run "$option" 'touch ran' x
    refused 64 "'b' follows -c TEXT" run x "$option" 'touch ran' -w 5s b
  done
  refused 64 "'a' follows -c TEXT" run -n x -w5s '-ctouch ran' a
  refused 64 "'a' follows -c TEXT" run x -nc 'touch ran' a
  refused 64 "'a' follows -c TEXT" run x '--command=touch ran' a
  refused 64 '--command is given twice' run x -c 'touch ran' -c 'touch ran'
  run -0 rlock run x y -nc '"$RLOCK" status --names' -l 20s --reason -c
  [[ $(sort <<<"$output") == $'x\ny' ]]
  run -0 rlock run --reason -c x -- true
}

@test "an address without a scheme, or with another program's, names the right one" {
  local pair
  for pair in 127.0.0.1:7701=redis://127.0.0.1:7701 cache.example:6379/2=redis://cache.example:6379/2 \
    '[::1]:6379=redis://[::1]:6379' /run/redis.sock=unix:///run/redis.sock unix:/run/redis.sock=unix:///run/redis.sock \
    http://h:6379=redis://h:6379 https://h=rediss://h valkey://h=redis://h valkeys://h:1=rediss://h:1; do
    refused 64 "did you mean ${pair#*=}?" run --url "${pair%%=*}" x -- touch ran
  done
  # It may be a password, or contain one.
  for pair in hunter2 me:hunter2 me:hunter2@h:6379 https://me:hunter2@h hunter2@h:6379 'a:hunter2:7701' '/run/hunter2@h'; do
    refused 64 'write redis://host:port' run --url "$pair" x -- touch ran
    [[ $stderr != *hunter2* ]]
  done
}

@test "an unknown option names the nearest one" {
  refused 64 'did you mean --wait?' run --waitt 5s x -- touch ran
  refused 64 'did you mean --lease?' acquire --laese 5s x
  refused 64 'did you mean --json?' status --jsno x
  refused 64 'did you mean --owner?' release --ownr "$OWNER" x
  run -64 --separate-stderr rlock run --wiat 5s x -- touch ran
  [[ $stderr == 'rlock: run: unknown option --wiat; did you mean --wait? See rlock run --help' ]]
  run -64 --separate-stderr rlock run --xyzzy x -- touch ran
  [[ $stderr == 'rlock: run: unknown option --xyzzy; see rlock run --help' ]]
  run -64 --separate-stderr rlock statsu
  [[ $stderr == "rlock: unknown subcommand 'statsu'; did you mean status? See rlock --help" ]]
  refused 64 "unknown subcommand 'foo'" foo version
  refused 64 'unknown option --bogus' --bogus version
  refused 64 'run: --timeout needs DUR' run x --timeout
  refused 64 --frobnicate run --frobnicate x -- touch ran
  refused 64 -Z run -Z x -- touch ran
}

@test "an option of another subcommand is unknown" {
  refused 64 --kill-after acquire --lease 10s --kill-after 1s x
  refused 64 --json run --json x -- touch ran
}

@test "an option without its value" {
  refused 64 --lease run x --lease
  refused 64 --url status --url
}

@test "an empty name" {
  refused 64 'name' run '' -- touch ran
  refused 64 'name' acquire --lease 10s ''
  refused 64 'name' status ''
  refused 64 'name' status a ''
}

@test "a name of 512 bytes is the longest" {
  local name
  name=$(printf 'a%.0s' {1..512})
  run -0 --separate-stderr rlock run "$name" -- true
  refused 64 512 run "${name}b" -- touch ran
  refused 64 512 acquire --lease 10s "${name}b"
}

@test "control characters in a name are refused and shown escaped" {
  local name
  for name in $'a\nb' $'a\tb' $'a\eb' $'\x01' $'a\x7f' $'a\r'; do
    refused 64 'control character' run "$name" -- touch ran
    [[ $stderr != *"$name"* ]]
    refused 64 'control character' status "$name"
  done
}

@test "a name with blanks, quotes, slashes, stars and other alphabets is fine" {
  local name
  for name in ' ' 'a b' "it's" 'a"b' 'a/b' '*' '?' 'a:b' $'\xc3\xbcber' '$HOME' '-' 'a{b}' 'a{b}c'; do
    run -0 --separate-stderr rlock run "$name" -- sh -c 'printf %s "$RLOCK_NAME"'
    [[ $output == "$name" ]]
  done
}

@test "a name that is not UTF-8 is locked byte for byte" {
  run -0 --separate-stderr rlock run $'a\xff' -- sh -c 'redis-cli --raw -s "$srv_sock" exists "$RLOCK_NAME"'
  [[ $output == 1 ]]
}

@test "braces that would separate a lock from its companion keys" {
  local name
  for name in 'a{b' 'a}b' '{}x' 'x{}' '{' '}' '{}'; do
    refused 64 brace run "$name" -- touch ran
    refused 64 brace acquire --lease 10s "$name"
    refused 64 brace status "$name"
  done
  refused 64 companion run '{x}' -- touch ran
  refused 64 companion force-unlock --yes '{x}'
}

@test "a lock may be named like a subcommand" {
  local name
  for name in run acquire renew release status force-unlock doctor config local help; do
    run -0 --separate-stderr rlock run "$name" -- "$RLOCK" status --names "$name"
    [[ $output == "$name" ]]
  done
}

@test "a name and a command that look like options come after --" {
  run -0 --separate-stderr rlock run x -- printf %s -n --wait --
  [[ $output == -n--wait-- ]]
}

@test "invalid durations" {
  local text option
  for option in --lease --wait --kill-after --server-timeout; do
    for text in '' -1 10x 1e999 abc ' ' s 1s2 0x10 '1 s' nan inf 99999999999999999999d; do
      refused 64 "$option" run "$option" "$text" x -- touch ran
    done
  done
}

@test "an empty value behind = does not swallow the next word" {
  refused 64 --lease run --lease= x -- touch ran
  refused 64 address run --url= x -- touch ran
  run -0 --separate-stderr rlock run --reason= x -- "$RLOCK" status --names
  [[ $output == x ]]
  refused 64 twice acquire --lease 10s --reason= a a
}

@test "a lease under 1s or over a year" {
  local text
  for text in 0 0.5 500ms 999ms 366d 8761h 1e9; do
    refused 64 lease run --lease "$text" x -- touch ran
    refused 64 lease acquire --lease "$text" x
  done
  run -0 --separate-stderr rlock run --lease 365d x -- true
}

@test "a lease under 5s works, with a warning" {
  run -0 --separate-stderr rlock run --lease 3s x -- echo ran
  [[ $output == ran && $stderr == *warning*lease* ]]
  run -0 --separate-stderr rlock run --lease 4.9s x -- echo ran
  [[ $output == ran && $stderr == *warning*lease* ]]
  run -0 --separate-stderr rlock run --lease 5s x -- echo ran
  [[ $output == ran && -z $stderr ]]
}

@test "--wait together with -n" {
  refused 64 'cannot be used together' run -n --wait 5s x -- touch ran
  refused 64 'cannot be used together' run --wait 0 -n x -- touch ran
  refused 64 'cannot be used together' acquire --lease 10s -n -w 5s x
}

@test "-E with a number that is no exit status" {
  local number
  for number in 256 -1 foo '' 1.5 0x1 99999999999999999999; do
    refused 64 exit run --conflict-exit-code "$number" x -- touch ran
  done
  refused 64 exit acquire --lease 10s -E 256 x
}

@test "an unknown log format" {
  refused 64 format run --log-format xml x -- touch ran
}

@test "another type at the key" {
  redis srv set text some ex 60 >/dev/null
  redis srv rpush list 1 >/dev/null
  redis srv expire list 60 >/dev/null
  local name
  for name in text list; do
    refused 76 "$name" run "$name" -- touch ran
    refused 76 "$name" run -n -E 0 "$name" -- touch ran
    refused 76 "$name" acquire --lease 10s "$name"
    refused 76 "$name" force-unlock --yes "$name"
    refused 76 "$name: " renew --owner "$OWNER" "$name"
    refused 76 "$name: " release --owner "$OWNER" "$name"
    run -0 --separate-stderr rlock status "$name"
    if [[ $name == text ]]; then assert_says 'another program'; else assert_says 'not a lock'; fi
  done
  [[ $(redis srv get text) == some && $(redis srv lrange list 0 -1) == 1 ]]
  redis srv del text list
}

@test "renew and release name the lock whose key has another type" {
  redis srv set text 1 px 600000 >/dev/null
  refused 76 'text: ' renew --owner "$OWNER" text
  refused 76 'text: ' release --owner "$OWNER" text
  redis srv del text
}

@test "another kind of lock at the key: the message says which, and who holds it" {
  redis srv hset rw mode read java:1 1 >/dev/null
  redis srv set '{rw}:java:1:rwlock_timeout:1' 1 ex 60 >/dev/null
  redis srv expire rw 60 >/dev/null
  refused 76 'read-write lock, held for reading by java:1; use -s or -x' run rw -- touch ran
  refused 76 'read-write lock, held for reading by java:1; use -s or -x' acquire --lease 10s rw
  refused 76 'read-write lock, held for reading by java:1; use -s or -x' run --slots 2 rw -- touch ran
  [[ $(redis srv hlen rw) == 2 ]]
  redis srv del rw '{rw}:java:1:rwlock_timeout:1'
  local owner
  owner=$(rlock acquire --slots 2 --lease 1m sem)
  refused 76 'semaphore, held by' run sem -- touch ran
  refused 76 'rlock acquire); use --slots' run -s sem -- touch ran
  refused 76 'sem: it has 2 slots, not 3; --resize changes that' run --slots 3 sem -- touch ran
  rlock release sem --owner "$owner"
  owner=$(rlock acquire --lease 1m sem)
  refused 76 'plain lock, held by' run --slots 2 sem -- touch ran
  refused 76 'plain lock, held by' run -x sem -- touch ran
  rlock release sem --owner "$owner"
}

@test "renew and release without an owner" {
  refused 64 --owner renew x
  refused 64 --owner release x
  refused 64 owner release --owner '' x
  refused 64 owner renew --owner '' x
  RLOCK_OWNER='' run --separate-stderr rlock release x
  [[ $status =~ ^(64|78)$ && $stderr == *RLOCK_OWNER* ]]
}

@test "renew and release with a wrong owner do not change the lock" {
  local owner
  owner=$(rlock acquire --lease 30s x)
  refused 76 x renew --owner "$OWNER" x
  refused 76 x release --owner "$OWNER" x
  [[ $(redis srv hget x "$owner") == 1 ]]
  rlock release --owner "$owner" x
}

@test "renew and release of a free lock" {
  refused 76 x renew --owner "$OWNER" x
  refused 76 x release --owner "$OWNER" x
}

@test "acquire needs --lease and says why, regardless of other settings" {
  refused 64 'nothing renews' acquire x
  RLOCK_LEASE=10s refused 64 'nothing renews' acquire x
  echo 'lease = "10s"' >c.toml
  refused 64 'nothing renews' acquire --config c.toml x
}

@test "force-unlock without a terminal needs --yes" {
  local owner
  owner=$(rlock acquire --lease 30s x)
  run -64 --separate-stderr rlock force-unlock x </dev/null
  assert_says --yes
  [[ $(redis srv hget x "$owner") == 1 ]]
  rlock release --owner "$owner" x
}

@test "status of a free lock" {
  run -0 --separate-stderr rlock status x
  assert_says free
  run -1 --separate-stderr rlock status --is-held x
  [[ -z $output && -z $stderr ]]
  run -0 --separate-stderr rlock status --names x
  [[ -z $output ]]
  run -0 --separate-stderr rlock status
  [[ -z $stderr ]]
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

@test "a job without standard error waits for its lock" {
  local owner
  owner=$(rlock acquire --lease 2s x 2>/dev/null)
  run -3 timeout -k 1 60 bash -c '"$RLOCK" run --wait 30s x -- sh -c "exit 3" 2>&-'
  run -75 timeout -k 1 60 bash -c '"$RLOCK" acquire --lease 10m y 2>&- >/dev/null && "$RLOCK" run -n y -- true 2>&-'
  rlock force-unlock --yes y
}

@test "a message does not go to a file that was opened as descriptor 2" {
  timeout -k 1 60 bash -c '"$RLOCK" run -v --lease 4s x -- sh -c "echo data >kept" 2>&- <&- >&-'
  [[ $(cat kept) == data ]]
}

@test "acquire without standard output fails and leaves no lock" {
  run -71 timeout -k 1 60 bash -c '"$RLOCK" acquire --lease 30s x >&-'
  [[ $output == 'rlock: '* && $(redis srv exists x) == 0 ]]
  run -71 timeout -k 1 60 bash -c '"$RLOCK" acquire --lease 30s --json x >/dev/full'
  [[ $output == 'rlock: '* && $(redis srv exists x) == 0 ]]
  run -71 timeout -k 1 60 bash -c '"$RLOCK" acquire --lease 30s --export x >/dev/full'
  [[ $output == 'rlock: '* && $(redis srv exists x) == 0 ]]
}

@test "status on a full disk fails" {
  run -71 timeout -k 1 60 bash -c '"$RLOCK" status x >/dev/full'
  run -71 timeout -k 1 60 bash -c '"$RLOCK" status --json x >&-'
}

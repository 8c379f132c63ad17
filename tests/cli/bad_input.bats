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
  local expected=$1 text=$2 keys
  shift 2
  keys=$(redis srv keys '*' | sort)
  run "-$expected" --separate-stderr rlock "$@"
  [[ $stderr == "rlock: "*"$text"* && -z $output ]] || {
    show
    return 1
  }
  # Others may have expired meanwhile.
  [[ -z $(comm -13 <(echo "$keys") <(redis srv keys '*' | sort)) && ! -e ran ]]
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
  local name words
  mapfile -t words < <(rlock doctor --acl p: | tr ' ' '\n' | sed -n 's/^[~&]\(.*:\){p:\*.*/\1/p')
  ((${#words[@]} == 16))
  for name in "${words[@]/%/'{a}'}" "${words[@]/%/a}" '{a}:timeout' 'a{b}:timeout' '{a}:ID:rwlock_timeout:1' 'redisson_unlock_latch:{a}:ID'; do
    refused 64 'a key or channel of another lock' run "$name" -- touch ran
    refused 64 'a key or channel of another lock' force-unlock --yes "$name"
  done
  refused 64 'a key or channel of another lock' run --protocol set --key '{%}:timeout' a -- touch ran
  refused 64 'a key or channel of another lock' run --like laravel --key 'rlock:pool:{%}' a -- touch ran
  refused 64 'keys of all locks begin with it' doctor --acl rlock:
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

@test "a command without --: it and -c are named, and nothing runs" {
  refused 64 '-- is missing before the command; write rlock run [options] x -- COMMAND' run x touch ran
  refused 64 "write rlock run [options] 'a b' -- COMMAND" run 'a b' touch ran
  refused 64 '-- is missing before the command' run job sh -c 'touch ran'
  refused 64 '-- is missing before the command' run job touch --no-such ran
  refused 64 '-c is missing before the command; write rlock run [options] x -c TEXT' run x 'touch ran; ls'
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

@test "an address without a scheme shows no password" {
  local pair
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
  refused 64 'run: --server-timeout needs DUR' run x --server-timeout
  refused 64 --frobnicate run --frobnicate x -- touch ran
  refused 64 -Z run -Z x -- touch ran
}

@test "the first tries of those who know flock name the right line or option" {
  refused 64 "unknown subcommand 'my job'; to take a lock of that name, write rlock run 'my job' -- COMMAND" 'my job' ./a.sh
  refused 64 '-n is an option of rlock run; write rlock run [options] NAME -- COMMAND' -n x touch ran
  refused 64 '-w is an option of rlock run' -w 5 x ls -l /tmp
  refused 64 '-c is an option of rlock run' -c date job
  local option
  for option in --nb --nonblocking --no-wait; do
    refused 64 'did you mean --nonblock?' run "$option" x -- touch ran
    refused 64 'did you mean --nonblock?' run x "$option" touch ran
    refused 64 'did you mean --nonblock?' "$option" x touch ran
  done
  refused 64 'did you mean --exclusive?' -e x -c 'touch ran; ls'
  refused 64 'did you mean --lease?' acquire --ttl 10s x
  refused 64 'did you mean --lease?' acquire --ttl=10s x
  refused 64 'did you mean --help? See rlock run --help' run --hlep
  refused 64 'did you mean --help?' --hlep
  refused 64 'did you mean --version?' -version
  refused 64 'did you mean --nonblock?' run -nonblock x -- touch ran
  refused 64 'did you mean force-unlock?' kill x
  refused 64 'did you mean status?' who
  refused 64 'unknown option --xyzzy; see' run job --xyzzy touch ran
}

@test "a command is not taken for the name of a lock to acquire" {
  refused 64 'did you mean run or acquire?' lock job touch ran
  refused 64 'did you mean run or acquire?' lock --lease 9s job -- touch ran
  refused 64 'acquire takes no command; use rlock run' acquire --lease 9s job -- touch ran
  run -0 rlock acquire --lease 2s -- x -y
  rlock force-unlock --yes x
  rlock force-unlock --yes -- -y
}

@test "verbs of other programs name the subcommand; in front of -- they are names" {
  local pair
  for pair in stop=force-unlock delete=force-unlock steal=force-unlock extend=renew refresh=renew get=status logs=history \
    check=doctor ping=doctor test=doctor; do
    refused 64 "did you mean ${pair#*=}?" "${pair%=*}" x
    refused 64 "write rlock run ${pair%=*} -- COMMAND" "${pair%=*}" -- touch ran
  done
  refused 64 'did you mean run?' with x touch ran
}

@test "a password on the command line is not repeated" {
  local option
  for option in -password -ahunter2; do
    refused 64 'see rlock run --help' run "$option" hunter2 x -- touch ran
    [[ $stderr != *hunter2* ]]
  done
  for option in --password --pass --passwd --auth --sentinel-password; do
    refused 64 "$option is no option: rlock reads passwords from --password-file, --password-command or RLOCK_PASSWORD" \
      run "$option" hunter2 x -- touch ran
    [[ $stderr != *hunter2* ]]
    refused 64 --help run --nb x "$option=hunter2" -- touch ran
    [[ $stderr != *hunter2* ]]
    refused 64 RLOCK_PASSWORD "$option" hunter2 status
    [[ $stderr != *hunter2* ]]
    refused 64 '-- is missing' run x mysqldump "$option=hunter2" "$option" hunter2 db
    [[ $stderr != *hunter2* ]]
  done
}

@test "--timeout, which other programs have for the wait, names --wait and --server-timeout" {
  refused 64 'did you mean --wait (wait no longer than DUR' run --timeout 1 x -- touch ran
  assert_says '--server-timeout (allow DUR'
  refused 64 'did you mean --server-timeout?' status --timeout=1
  RLOCK_TIMEOUT=1 run -0 --separate-stderr rlock run x -- true
  assert_says 'did you mean RLOCK_WAIT ('
  assert_says 'or RLOCK_SERVER_TIMEOUT ('
  (umask 077 && echo 'timeout = 1' >c.toml)
  refused 78 'did you mean wait (' run --config c.toml x -- touch ran
  assert_says 'or server-timeout ('
}

@test "what only a shell can run names -c, and a program of this folder its path" {
  local command
  printf '#!/bin/sh\n' >script.sh
  chmod +x script.sh
  run -127 --separate-stderr rlock run x -- script.sh 'a b'
  [[ $stderr == 'rlock: script.sh: command not found; write ./script.sh' ]]
  for command in cd export 'echo hi; ls' nosuch; do
    run -127 --separate-stderr rlock run x -- "$command" /
    [[ $stderr == "rlock: $command: command not found; what only a shell can run needs -c TEXT" ]]
  done
}

@test "no suggestion takes safety away" {
  refused 64 'unknown option --no-renw; see' run --no-renw x -- touch ran
  refused 64 'unknown option --force; see' run --force x -- touch ran
  refused 64 'unknown option --hold; see' run --hold x -- touch ran
  refused 64 'did you mean --wait?' run --lock-timeout 5 x -- touch ran
  refused 64 'unknown option --tls-insecur; see' run --tls-insecur x -- touch ran
  RLOCK_NO_RENW=1 run -0 --separate-stderr rlock run x -- true
  [[ $stderr == *'RLOCK_NO_RENW is not a variable that rlock knows' ]]
  RLOCK_LOG_LEVEL=debug run -0 --separate-stderr rlock run x -- true
  [[ $stderr == *'did you mean RLOCK_VERBOSE?' ]]
}

@test "an option of another subcommand is unknown" {
  refused 64 --kill-after acquire --lease 10s --kill-after 1s x
  refused 64 --json run --json x -- touch ran
}

@test "a range or a pattern is not taken for the name of a resource" {
  local given
  for given in 'gpu[0-7]' 08..10 0-2,5 'node{1..2}.a' 8700-8799 gpu0..3 gpu0..gpu3 node1..2.a 'gpu{0,1,2}' 'gpu[0-1,5]x,b' \
    '[gpu0,gpu1]' '["gpu0", "gpu1"]' 'gpu0 gpu1' 'gpu*' '[]' '[a' 'a}' 0-9999 '[a]*'; do
    refused 64 '; name each resource, with commas in between' run --from "$given" x -- touch ran
    refused 64 '; name each resource, with commas in between' acquire --lease 10s --from "ab,$given" x
  done
}

@test "a hyphen between numbers: a range if all names would differ in their number only, otherwise a name" {
  local name given
  for given in gpu0-3 gpu0-gpu3 gpu0-1,gpu2,gpu3 gpu0-1,gpu2-3 gpu0-3,gpu5-7; do
    refused 64 'would be one resource, not a range; name each resource' run --from "$given" x -- touch ran
  done
  for name in 2-1 1-1 a-b 1.5 1- -1 a..b gpu0:3 db2-1 rack1-1,rack1-2 rack1-2,rack1-3 rack1-2,rack2-3 node1-2,node2-1 2024-01-05,2024-01-06; do
    run -0 --separate-stderr rlock run "--from=$name" x -- printenv RLOCK_RESOURCE
    [[ $output == "${name%,*}" ]]
  done
}

@test "names of resources can be on lines, with blanks around them and a comma at the end" {
  local list
  for list in 'a, b' 'a,b,' $'a\nb\n' $' a,\r\n b,\r\n' $'a\n\nb'; do
    run -0 --separate-stderr rlock run --from "$list" x -- "$RLOCK" run --from a,b x -- printenv RLOCK_RESOURCE
    [[ $output == a ]]
  done
  for list in '' , a,,b ,a ' '; do refused 64 'not the name of a resource' run --from "$list" x -- touch ran; done
}

@test "blanks and a line break around a value are no part of it, as in variables" {
  run -0 rlock run --wait $'10m\n' --slots $'2\r' --lease ' 9s' x -- true
  run -0 rlock acquire --lease $'2s\n' x
  rlock force-unlock --yes x
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

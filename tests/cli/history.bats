# Holds that end in special ways, long histories, and pages. history.table has what rlock history prints otherwise.

load ../lib/server
load ../lib/history

setup() {
  use_server srv
  export RLOCK_HISTORY=true
}
teardown() { redis srv flushall >/dev/null; }

@test "the entry names the processes that the command left behind and that were ended" {
  run -0 rlock run a -- bash -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >pid
    until [[ $(readlink "/proc/$!/exe") == */sleep ]]; do sleep 0.1; done'
  rlock run a -- true
  FIELDS='result status fine leftovers' run -0 holds
  [[ $output == $'exited 0 True -\nexited 0 True '"sleep (pid $(<pid))" ]]
  run -0 rlock history
  [[ ${lines[2]} == *" ok; left sleep (pid $(<pid)) "* && ${lines[1]} != *left* ]]
  # An entry of another program.
  entry a outcome released end exited value 0 leftovers $'\033[31mx'
  tells 0 'ok; left \x1b[31mx ' rlock history --limit 1
}

@test "how long it waited and was held" {
  local owner began waiter
  owner=$(RLOCK_HISTORY=false rlock acquire a --lease 1m)
  "$RLOCK" run -q a -- sleep 0.3 3>&- &
  waiter=$!
  wait_until queued a 1
  let_pass 300
  RLOCK_HISTORY=false rlock release a --owner "$owner"
  wait "$waiter"
  FIELDS='held_ms waited_ms' run -0 holds
  read -r held waited <<<"$output"
  ((held >= 300 && held < 60000 && waited >= 300 && waited < 60000))
}

@test "release by hand, by a keeper, and with --min-hold; a second release writes nothing" {
  owner=$(rlock acquire a --lease 1m --reason hand)
  rlock release a --owner "$owner"
  run -76 rlock release a --owner "$owner"
  [[ $(entries a) == 1 && -z $(total a losses) ]]
  sleep 600 3>&- &
  local process=$!
  rlock acquire k --for-pid "$process" >owner
  kill "$process"
  written() { [[ $(entries k) == 1 ]]; }
  wait_until written
  rlock run --min-hold 1m m -- true
  FIELDS='name outcome result reason fine' run -0 holds
  [[ $(sort <<<"$output") == $'a released released hand True\nk released released  True\nm kept exited  True' ]]
  # A hold that was released on request is no loss.
  sleep 600 3>&- &
  process=$!
  owner=$(rlock acquire k --for-pid "$process")
  listens() { [[ $(listeners_on srv 'rlock:control:{k}') == 1 ]]; }
  wait_until listens
  rlock release k --owner "$owner"
  nobody_keeps_it() { ! redis srv client list | grep -q name=rlock:k; }
  wait_until nobody_keeps_it
  kill "$process"
  [[ -z $(total k losses) ]]
}

@test "a hold that was taken away, and one that was lost, with the reason; the reader sees one entry for each" {
  rlock acquire f --lease 1m --reason mine
  rlock force-unlock -y f
  FIELDS='outcome taken_away_by reason lost' run -0 holds f
  [[ $output == "forced $(id -un)@$(uname -n) (rlock force-unlock) mine False" && $(total f forced) == 1 ]]
  run -74 rlock run --lease 5s l -- sh -c "redis-cli -s $srv_sock del l >/dev/null; sleep 600"
  FIELDS='outcome result lost' run -0 holds l
  [[ $output == 'gone lost True' && $(total l losses) == 1 && -z $(total l forced) ]]
  run -74 rlock run e -- sh -c "redis-cli -s $srv_sock del e >/dev/null"
  FIELDS='outcome result status' prints 'gone exited 0' holds e
  run -0 rlock history
  [[ $output == *'taken away by '* && $output == *' lost: the lock is lost'* ]]
}

@test "a hold given up on request is taken away, not lost: of a job and of a keeper" {
  local who process
  who="$(id -un)@$(uname -n)"
  "$RLOCK" run d -- sleep 600 3>&- &
  process=$!
  wait_until rlock status --is-held d
  rlock run --supersede d -- true
  wait_until gone "$process" # only then does a subshell know its status
  run -74 wait "$process"
  FIELDS='outcome taken_away_by result lost fine' prints "forced $who (--supersede) lost True False" holds --failed d
  [[ $(total d forced) == 1 && -z $(total d losses) ]]
  run -74 rlock run e -- sh -c "'$RLOCK' force-unlock -y e >/dev/null; sleep 600"
  FIELDS='outcome taken_away_by why' run -0 holds e
  [[ $output == "forced $who (rlock force-unlock) -" && $(total e forced) == 1 && -z $(total e losses) ]]
  run -0 rlock history e
  [[ $output == *"taken away by $who (rlock force-unlock)"* && $output != *lost* ]]
  sleep 600 3>&- &
  process=$!
  rlock acquire k --for-pid "$process" >owner
  rlock force-unlock -y k
  kill "$process"
  FIELDS='outcome taken_away_by' run -0 holds k
  [[ $output == "forced $who (rlock force-unlock)" && $(total k forced) == 1 && -z $(total k losses) ]]
}

@test "a lock that somebody asked for and that is gone before the release is taken away" {
  run -74 rlock run a -- sh -c "trap 'redis-cli -s $srv_sock del a >/dev/null; exit' TERM
    '$RLOCK' force-unlock -y a >/dev/null & while :; do sleep 0.1; done"
  FIELDS='outcome taken_away_by' run -0 holds a
  [[ $output == "gone $(id -un)@$(uname -n) (rlock force-unlock)" && $(total a forced) == 1 && -z $(total a losses) ]]
  tells 0 'taken away by ' rlock history a
}

@test "force-unlock --now: the holder is told who has taken its lock, and its history has it, even if only the holder records it" {
  who="$(id -un)@$(uname -n)"
  run -74 --separate-stderr rlock run --lease 5s a -- sh -c "RLOCK_HISTORY=false '$RLOCK' force-unlock -y --now a >/dev/null; sleep 600"
  [[ $stderr == *"a: the lock is lost: $who (rlock force-unlock) has taken it away"* ]]
  FIELDS='outcome taken_away_by' run -0 holds a
  [[ $output == "forced $who (rlock force-unlock)" && $(total a forced) == 1 && -z $(total a losses) ]]
  # Its release notices it, and nobody records it.
  RLOCK_HISTORY=false run -74 --separate-stderr rlock run b -- sh -c "'$RLOCK' force-unlock -y --now b >/dev/null"
  [[ $stderr == *"b: $who (rlock force-unlock) has taken the lock away while the command ran"* && -z $(total b forced) ]]
}

@test "only the lost one of several locks counts as lost, for a job and for a keeper" {
  local process
  run -74 rlock run --lease 5s x y -- sh -c "redis-cli -s $srv_sock del x >/dev/null; sleep 600"
  FIELDS='name outcome result lost why' run -0 holds x y
  [[ $output == *'x gone lost True the lock is lost: '* && $output == *'y released stopped False x: the lock is lost: '* ]]
  [[ $(total x losses) == 1 && -z $(total y losses) ]]
  tells 0 ' stopped: x: the lock is lost: ' rlock history y
  run -0 rlock status --prometheus
  [[ $output == *'rlock_last_status{name="x"} 74'* && $output == *'rlock_last_status{name="y"} 74'* ]]
  sleep 600 3>&- &
  process=$!
  rlock acquire v w --for-pid "$process" --lease 5s
  redis srv del v
  written() { [[ $(entries v) == 1 && $(entries w) == 1 ]]; }
  wait_until written
  kill "$process"
  FIELDS='name outcome result lost' run -0 holds v w
  [[ $(sort <<<"$output") == $'v gone lost True\nw released stopped False' && -z $(total w losses) ]]
}

@test "a hold that was taken away is no loss, regardless of how many releases come before its owner notices" {
  local job i
  "$RLOCK" run -s --lease 6s rd -- sh -c 'echo "$RLOCK_OWNER" >reader; sleep 600' 2>/dev/null 3>&- &
  job=$!
  wait_until test -s reader
  rlock force-unlock -y --now --owner "$(<reader)" rd
  for ((i = 0; i < 12; i++)); do rlock run -s rd -- true; done
  exits "$job" 74
  [[ $(total rd forced) == 1 && -z $(total rd losses) ]]
}

@test "a user without the right to the histories can release and force-unlock, with a warning" {
  not_over acl tls cluster 'the user is one of the test, with a password'
  local owner what=' history could not be written: '
  redis srv acl setuser few reset on '>pw' '~?' '~{*' '~rlock:holder:*' '~rlock:hold:*' '~rlock:queue:*' '~rlock:waiters:*' \
    '~redisson_lock_*' '&*' +@all >/dev/null
  (umask 077 && printf pw >password)
  export RLOCK_URL="unix://few@$srv_sock" RLOCK_PASSWORD_FILE=$PWD/password
  run -0 --separate-stderr rlock run a -- true
  [[ $stderr == *"released, but the$what"* && $(redis srv exists a) == 0 ]]
  run -0 --separate-stderr rlock run --protocol set b -- true
  [[ $stderr == *"released, but the$what"* && $(redis srv exists b) == 0 ]]
  owner=$(rlock acquire a --lease 1m)
  run -0 --separate-stderr rlock release a --owner "$owner"
  [[ $stderr == *"released, but the$what"* && $(redis srv exists a) == 0 ]]
  rlock acquire a --lease 1m
  run -0 --separate-stderr rlock force-unlock -y --now a
  [[ $stderr == *"a: the$what"* && $(redis srv exists a) == 0 ]]
  owner=$(rlock acquire a --lease 1m)
  run -75 --separate-stderr rlock run -n a -- true
  rlock release a --owner "$owner"
}

@test "--since 2h uses the server's clock" {
  not_over tls sentinel cluster 'the server is one of the test'
  redis_start_with_clock slow
  RLOCK_URL=$(redis_url slow)
  clock_step -86400000
  rlock run a -- true
  FIELDS=result prints exited holds --since 1h
  # And if that is ahead, it shows no more.
  clock_step 0
  rlock run b -- true
  clock_step 7200000
  FIELDS=name run -0 holds --since 1h
  [[ -z $output ]]
  redis_stop slow
}

@test "--failed finds the newest failures of many locks, even if most have only successes" {
  redis srv eval 'for lock = 1, 210 do
      for i = 1, 60 do
        local failed = lock > 205 and i == 60
        redis.call("xadd", "rlock:history:{m" .. lock .. "}", "*", "outcome", "released", "ended", ARGV[1] + i,
          "owner", "o" .. i, "held", 1, "end", "exited", "value", failed and 1 or 0)
      end
    end' 0 "$(wall_ms)" >/dev/null
  FIELDS='name status' run -0 holds --failed
  [[ $(sort <<<"$output") == $'m206 1\nm207 1\nm208 1\nm209 1\nm210 1' ]]
}

@test "many foreign entries are skipped in large pages" {
  redis srv eval 'for i = 1, 20000 do redis.call("xadd", KEYS[1], "*", "a", "b") end' 1 'rlock:history:{f}' >/dev/null
  redis srv config resetstat >/dev/null
  run -0 --separate-stderr rlock history --limit 1 f
  commands=$(redis srv info commandstats | grep -oP 'cmdstat_xrevrange:calls=\K[0-9]+')
  [[ $stderr == *'20000 entries were not written by rlock'* ]]
  ((commands < 60))
  # Pages grow again after one that was too long.
  redis srv eval 'redis.call("xadd", KEYS[1], "*", "a", "b")
    for i = 1, 40 do redis.call("xadd", KEYS[1], "*", "a", string.rep("b", 100000)) end' 1 'rlock:history:{f}' >/dev/null
  redis srv config resetstat >/dev/null
  tells 0 '20041 entries were not written by rlock' rlock history f
  commands=$(redis srv info commandstats | grep -oP 'cmdstat_xrevrange:calls=\K[0-9]+')
  ((commands < 5000))
}

@test "a long history is listed from its end, and one of many thousand is trimmed" {
  fill h 12000 held 1000 host h user u end exited value 1
  FIELDS=owner prints $'12000\n11999' holds --limit 2 h
  rlock run h -- true
  (($(entries h) < 10200))
}

@test "in a quorum each server has the history, and the reader sees one entry; a server that cannot write it causes a warning" {
  source "$TESTS_DIR/lib/quorum.bash"
  quorum_start 3
  redis s1 xadd 'rlock:history:{q}' '*' outcome released owner same held 10 end exited value 0
  redis s2 xadd 'rlock:history:{q}' '*' outcome released owner same held 12 end exited value 0
  redis s3 xadd 'rlock:history:{q}' '*' outcome gone owner other end lost
  FIELDS=owner run -0 holds q
  [[ $(sort <<<"$output") == $'other\nsame' ]]
  run -0 --separate-stderr rlock run w -- true
  [[ -z $stderr ]]
  FIELDS='name result' run -0 --separate-stderr holds w
  [[ $output == 'w exited' && -z $stderr ]]
  redis s3 del 'rlock:history:{w}'
  redis s3 set 'rlock:history:{w}' text
  tells 0 'released, but the history could not be written: WRONGTYPE' rlock run w -- true
  quorum_stop
}

@test "the release writes one entry, even if it is sent twice" {
  rlock run a -- true
  redis srv del 'rlock:history:{a}'
  redis-cli -s "$srv_sock" monitor >monitor 3>&- &
  local pid=$!
  wait_until grep -q OK monitor
  rlock run a -- true
  redis srv echo the-end >/dev/null
  wait_until grep -q the-end monitor
  kill "$pid"
  python3 - "$srv_sock" <<'PYTHON'
import ast, re, socket, sys
line = next(line for line in open("monitor") if '"rlock release"' in line or '"rlock release, sharded"' in line)
words = [ast.literal_eval('b' + word) for word in re.findall(r'"(?:[^"\\]|\\.)*"', line)]
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
assert b"released" in sock.recv(4096)
PYTHON
  [[ $(entries a) == 1 ]]
}

@test "--html prints a self-contained page and escapes everything" {
  entry '<b>&"' outcome released owner o user '<script>alert(1)</script>' host '"><img src=x>' held 1000 end exited value 0
  rlock run a -- true
  run -1 rlock run a -- false
  rlock history --html >page.html
  python3 - <<'PYTHON'
text = open("page.html").read()
assert "@" + "DATA@" not in text
assert "url(" not in text and "@import" not in text and "http:" not in text and "https:" not in text
assert "prefers-color-scheme: dark" in text and "viewport" in text
# Nothing in the data ends their element, opens a comment, or is a line end of JavaScript.
data = text.split('id="data">\n')[1].split("</script>")[0]
assert not set(data) & set("<>&\u2028\u2029") and data.isascii(), data
assert "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e" in data and "\\u0026" in data
PYTHON
  [[ $(page_data page.html '[one["name"] for one in reports]') == $'<b>&"\na' ]]
  [[ $(page_data page.html '[one["name"] for one in holds]') == $'a\na\n<b>&"' ]]
  # Style and script are allowed by their hashes, and are what the file in the source has.
  python3 - "$TESTS_DIR/../src/show/page.html" <<'PYTHON'
import base64, hashlib, re, sys
for file in "page.html", sys.argv[1]:
    text = open(file).read()
    parts = [re.search(f"<{tag}>(.*)</{tag}>", text, re.S)[1] for tag in ("style", "script")]
    hashes = ["sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    policy = re.search('Content-Security-Policy" content="([^"]*)"', open("page.html").read())[1]
    assert policy == f"default-src 'none'; style-src '{hashes[0]}'; script-src '{hashes[1]}'; base-uri 'none'; form-action 'none'", policy
PYTHON
}

@test "a long history takes little memory: as JSON holds are printed as they arrive, and a page has 32 MiB of them" {
  ! grep -q __asan_init "$RLOCK" || skip 'AddressSanitizer keeps what was freed for a while'
  local text # of maximum length
  text=$(printf 't%.0s' {1..512})
  fill a 32000 held 1 host h user u command "$text" reason "$text" end exited value 3
  python3 - "$RLOCK" <<'PYTHON'
import json, os, resource, subprocess, sys
for most, name, *options in (25, "json", "--json"), (25, "table"), (128, "page", "--html"):
    with open(name, "w") as out:
        pid = subprocess.Popen([sys.argv[1], "history", "--limit", "100000", *options], stdout=out).pid
    _, status, used = os.wait4(pid, 0)
    print(name, status, used.ru_maxrss)
    assert status == 0 and used.ru_maxrss < most << 10
assert [int(hold["owner"]) for hold in json.load(open("json"))] == list(range(32000, 0, -1))
assert open("table").read().count("\n") > 32000
PYTHON
  grep -qF '"holds": "the newest ones (a page has no more than 32 MiB of them)"' page
}

@test "--json merges the histories of many locks, and joins a hold's entries across pages" {
  not_over cluster 'a script there writes keys of one slot'
  redis srv eval 'for i = 1, 6000 do
      redis.call("xadd", "rlock:history:{m-" .. i % 300 .. "}", i .. "-0", "outcome", "released", "owner", i)
    end
    redis.call("xadd", "rlock:history:{m-0}", "6001-0", "outcome", "forced", "owner", "taken", "by", "me")
    for i = 1, 15 do redis.call("xadd", "rlock:history:{m-0}", 6001 + i .. "-0", "outcome", "released", "owner", 6001 + i) end
    redis.call("xadd", "rlock:history:{m-0}", "6017-0", "outcome", "gone", "owner", "taken", "end", "lost")' 0 >/dev/null
  FIELDS='owner outcome' holds --limit 100000 >seen
  [[ $(head -n 1 seen) == 'taken forced' && $(grep -c taken seen) == 1 ]]
  { seq 6016 -1 6002 && seq 6000 -1 1; } >wanted
  tail -n +2 seen | sed 's/ .*//' | cmp - wanted
  FIELDS=owner prints $'taken\n6016\n6015' holds --limit 3
}

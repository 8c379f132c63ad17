# What rlock history says. Source it after common.
#
#   holds [ARG...]                   rlock history --json, each hold on a line, with the fields in $FIELDS
#   entries NAME, total NAME WHAT    how many entries a history has; a number of the lock's totals
#   entry NAME FIELD VALUE...        adds an entry as another program may write it
#   entry_at MS NAME FIELD VALUE...  the same with that time
#   fill NAME NUMBER [FIELD VALUE...]  adds so many, whose owners are 1, 2, 3 …

holds() {
  rlock history --json "$@" | python3 -SEc '
import json, os, sys
for hold in json.load(sys.stdin):
    print(*[hold.get(field, "-") for field in os.environ["FIELDS"].split()])'
}
entries() { redis srv xlen "rlock:history:{$1}"; }
total() { redis srv hget "rlock:totals:{$1}" "$2"; }
entry() { redis srv xadd "rlock:history:{$1}" '*' "${@:2}" >/dev/null; }
entry_at() { redis srv xadd "rlock:history:{$2}" "$1-0" "${@:3}" >/dev/null; }
fill() {
  redis srv eval 'for i = 1, tonumber(ARGV[1]) do
    redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", i, unpack(ARGV, 2))
  end' 1 "rlock:history:{$1}" "${@:2}" >/dev/null
}
wall_ms() { date +%s%3N; }

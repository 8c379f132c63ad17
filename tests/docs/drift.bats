# The documents say what the program does: options, statuses, variables, and examples that run.

load ../lib/server
load ../lib/docs

setup() {
  ROOT=$(cd "$TESTS_DIR/.." && pwd)
  MAN=$ROOT/man/rlock.1
  PAGES=("$ROOT"/man/*)
  README=$ROOT/README.md
  use_server srv
}

SUBCOMMANDS='run acquire renew release status force-unlock history doctor config local completion help version'

# Long options, one per line.
of_help() {
  local subcommand
  {
    rlock --help
    for subcommand in $SUBCOMMANDS; do rlock "$subcommand" --help; done
    rare run | sed 's/^/  /'
  } | grep -E '^ +-' | grep -oE -- '--[a-z][a-z-]+' | sort -u
}
# Both `Fl -name` and the second word of `Fl n , -name`.
of_man() {
  grep -hE '(^\.| )Fl ' "${PAGES[@]}" | grep -oE '( ,|Fl) -[a-z][a-z-]+' | sed 's/.* -/--/' | sort -u
}

# listed: the long options that a help text on standard input lists.
listed() { sed -nE 's/^ +(-[a-zA-Z],)?(--[a-z-]+) .*/\2/p'; }

# page_of SUBCOMMAND: the man page that explains it.
page_of() {
  local page=$ROOT/man/rlock-$1.1
  [[ -e $page ]] || page=$MAN
  echo "$page"
}

# section SUBCOMMAND: its part of the man pages.
section() {
  local page
  page=$(page_of "$1")
  if [[ $page == "$MAN" ]]; then
    sed -n "/^\.Ss rlock $1\$/,/^\.S[hs] /p" "$page" | sed '1d;/^\.S[hs] /d'
  else
    sed -n '/^\.Sh DESCRIPTION$/,/^\.Sh /p' "$page" | sed '1d;/^\.S[hs] /d'
  fi
}

# shared SUBCOMMAND: the long options that rlock-run.1 explains for it and for run.
shared() {
  case $1 in
    acquire) sed -n '/^\.Ss Options of run and acquire$/,/^\.El$/s/^\.It Fl \([a-zA-Z] , \)\{0,1\}\(-[a-z-]*\).*/-\2/p' "$ROOT/man/rlock-run.1" ;;
  esac
}

# flags: the long options in a part of the man page, also those that it only calls by their letter.
flags() {
  local letters long
  grep -oE 'Fl [a-zA-Z-][a-zA-Z-]*( , -[a-z-]+)?' >found
  while read -r _ letters _ long; do
    case $letters in
      -) ;; # the -- before the command
      -*) echo "-$letters" ;;
      *) echo "-${long:-$(long_of "$letters")}" ;;
    esac
  done <found
}

# long_of LETTER: as the man pages explain it.
long_of() { sed -nE "s/^\.It Fl $1 , (-[a-z-]+).*/\1/p" "${PAGES[@]}" | head -n 1; }

# table_of_man, table_of_guarantees: the statuses in each, one per line.
table_of_man() { sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \(Li \)\{0,1\}\([0-9][0-9]*\).*/\2/p' "$MAN" | sort -n; }
table_of_guarantees() {
  sed -n '/^## Exit status/,$s/^| \([0-9, ]*\) |.*/\1/p' "$ROOT/docs/guarantees.md" | tr -d ' ' | tr ',' '\n' | sort -n
}
statuses() { sed -n 's/^ *k[A-Za-z]* = \([0-9]*\),.*/\1/p' "$ROOT/src/base/error.h" | sort -n; }

@test "every page and section that a man page refers to exists, and rlock(1) refers to all pages" {
  for page in "${PAGES[@]}"; do
    name=${page##*/}
    grep -qx "\.Nm ${name%.*}" "$page"
    grep -qx "\.Dt $(tr a-z A-Z <<<"${name%.*}") ${name##*.}" "$page"
    while read -r name section; do
      [[ -e $ROOT/man/$name.$section ]] || { echo "$page: $name($section)" && return 1; }
    done < <(sed -nE 's/^\.Xr (rlock[a-z.-]*) ([0-9]).*/\1 \2/p' "$page")
    while IFS= read -r section; do
      grep -qxF -e ".Sh $section" -e ".Ss $section" "$page" || { echo "$page: $section" && return 1; }
    done < <(sed -nE "s/^\.Sx ([A-Z' ]*[A-Z])( .*)?\$/\1/p" "$page")
  done
  diff <(cd "$ROOT/man" && ls | grep -vx rlock.1 | LC_ALL=C sort) \
    <(sed -n '/^\.Sh SEE ALSO/,$s/^\.Xr \(rlock[a-z.-]*\) \([0-9]\).*/\1.\2/p' "$MAN" | LC_ALL=C sort)
}

@test "every subcommand is in rlock --help and in the man page; each help has the options of all, as in the man page" {
  [[ $(rlock --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p') == "${SUBCOMMANDS// /$'\n'}" ]]
  sed -n '/^\.Ss Options of all/,/^\.El/s/^\.It.* -\(-*[a-z-]*\).*/--\1/p' "$MAN" | sort >of_all
  (($(wc -l <of_all) >= 9))
  diff of_all <(rlock --help | sed -n '/^Options of all/,$p' | listed | sort)
  for subcommand in $SUBCOMMANDS; do
    grep -qx "\.Cm $subcommand" "$MAN"
    for option in -h --version -V --help; do
      run -0 --separate-stderr rlock "$subcommand" "$option"
      [[ $output == "rlock "* && -z $stderr ]]
    done
    [[ $output == *"$subcommand"* ]]
    diff of_all <(sed -n '/^Options of all/,/^$/p' <<<"$output" | grep -oE -- '(^| )--[a-z-]+(,|$)' | tr -d ' ,' | sort)
  done
}

@test "the options of each subcommand are those of its section in the man page, and rlock-run(1) has an entry for each of run" {
  local subcommand count=0
  for subcommand in $SUBCOMMANDS; do
    { rlock "$subcommand" --help | sed '/^Options of all/,$d' | listed && rare "$subcommand"; } | sort >"help.$subcommand"
    { section "$subcommand" | flags && shared "$subcommand"; } | sort -u >"man.$subcommand"
    diff "help.$subcommand" "man.$subcommand"
    count=$((count + $(wc -l <"help.$subcommand")))
  done
  ((count >= 20 && $(wc -l <help.run) >= 40))
  diff help.run <(sed -nE 's/^\.It Fl ([a-zA-Z] , )?(-[a-z-]+).*/-\2/p' "$ROOT/man/rlock-run.1" | sort)
}

@test "the man page's synopsis has the options of the subcommands, and no others" {
  for subcommand in acquire renew release status force-unlock history doctor config local completion; do
    line=$(mandoc -T utf8 "$(page_of "$subcommand")" | col -bx | tr -s ' \n' '  ' | sed 's/DESCRIPTION.*//' | grep -oE "rlock $subcommand [^ ].*" | sed "s/ rlock $subcommand / /g; s/ rlock .*//")
    [[ $line == "rlock $subcommand"* ]]
    { rlock "$subcommand" --help && rare "$subcommand" | sed 's/.*/  & /'; } >help
    for option in $(grep -oE -- '(^|[ [|])--?[a-zA-Z][a-z-]*' <<<"$line" | grep -oE -- '-.*'); do
      grep -qE "^ +(-.,)?${option}[ ,]" help || { echo "$subcommand: $option" && return 1; }
    done
    # Each of its own, by one of its names.
    while IFS=, read -r short long; do
      grep -qE -- "[ [](${short:-$long}|$long)([] ]|\$)" <<<"$line" || { echo "$subcommand: $long is missing" && return 1; }
    done < <(sed '/^Options of all/,$d' help | sed -nE 's/^ +((-[a-zA-Z]),)?(--[a-z-]+) .*/\2,\3/p')
  done
}

@test "a command for the private server says which one it uses" {
  rlock local --help >help
  # The default is a server on the network, for which there is no `rlock local`.
  run -1 grep -nE 'rlock local (status|stop)' help "$README" "$ROOT"/docs/{configuration,cookbook,guarantees,servers}.md "${PAGES[@]}"
  grep -qF 'rlock --url local: local stop' help
}

@test "each short option of --help is in the man page" {
  for pair in $({ rlock --help && for s in $SUBCOMMANDS; do rlock "$s" --help; done; } | grep -oE '^ +-[a-zA-Z],' | tr -d ' ,-' | sort -u); do
    grep -qE "^\.It Fl $pair , -" "${PAGES[@]}" || { echo "-$pair" && return 1; }
  done
}

@test "every exit status is in the tables of the man page and of guarantees.md" {
  (($(statuses | wc -l) > 10))
  diff <(statuses) <(table_of_man)
  diff <(statuses) <(table_of_guarantees)
  # And for each status both name the same subcommands.
  diff <(sed -n '/^\.Sh EXIT STATUS/,/^\.El/s/^\.\(It\|Cm\) \([a-z0-9][^:]*[^ :]\|[0-9]\)\( :\)*$/\2/p' "$MAN" | grep -vx 'rlock run') \
    <(sed -n '/^## Exit status/,$p' "$ROOT/docs/guarantees.md" | grep -oE '^\| [0-9]+|`[a-z][a-z -]*`:' | tr -d '|`:' | sed 's/^ //')
}

# settings: the names of what variables and configuration files can set, too.
settings() { sed -n 's/^    "\([a-z-]*\)": {$/\1/p' "$ROOT/docs/schema/rlock.toml.json" | sort; }

@test "the schema of rlock.toml is what this test makes of the table of options, and rlock takes what it allows" {
  python3 - "$ROOT"/src/{options/option_table.cc,options/option_values.h,base/clock.cc} >made <<'PYTHON'
import json, re, sys

table, values, clock = (open(path).read() for path in sys.argv[1:])
text = {"type": "string", "minLength": 1}
units = [f"{name}|{others.strip().replace(' ', '|')}" for name, others in re.findall(r'\{"(\w+)", "([^"]*)", +[\d\']+\}', clock)]
terms = "".join(f"([0-9.]+({words}))?" for words in units)
KINDS = {
    "": {"type": "boolean"},
    "DUR": {"type": ["string", "integer"], "pattern": f"^(?=.)([0-9.]+|{terms})$", "minimum": 0, "maximum": 365 * 24 * 60 * 60},
    "URL": {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1},
}
# What reads durations of more than 0, which are at most a second.
not_zero = re.findall(r"Result<milliseconds> (\w+)\(.*return duration_from\(", values)
assert len(units) == 5 and len(not_zero) == 4
properties = {}
# --config has no function; it sets nothing, and is not allowed in a file.
for name, value, row in re.findall(r'\{"(?:-.,)?--([a-z-]+)", "([^"]*)",([^{}]*)\bkSetting\b', table):
    kind = {"enum": value.split("|")} if "|" in value else KINDS.get(value, {"type": "string"} if "<remark," in row else text)
    if any(f"<{reader}," in row for reader in not_zero):
        kind = {**kind, "pattern": kind["pattern"].replace("(?=.)", "(?=.*[1-9])"), "minimum": 1}
    if limits := re.search(r"number<(-?[\d']+), ([\d']+), ", row):
        least, most = (int(limit.replace("'", "")) for limit in limits.groups())
        kind = {"type": "integer", "minimum": least, "maximum": most}
    texts = re.findall('"([^"]*)"', re.sub("<.*?>", "", row, flags=re.S))
    properties.setdefault(name, {"description": "".join(texts), **kind})
schema = {"$schema": "http://json-schema.org/draft-04/schema#", "title": "rlock.toml", "type": "object"}
print(json.dumps({**schema, "properties": properties, "additionalProperties": False}, indent=2))
PYTHON
  diff "$ROOT/docs/schema/rlock.toml.json" made
  python3 - "$RLOCK" <<'PYTHON'
import json, re, subprocess, sys

def status(text):
    open("c.toml", "w").write(text)
    return subprocess.run([sys.argv[1], "config", "--config", "c.toml"], capture_output=True).returncode

known = json.load(open("made"))["properties"]
numbers = {name: one for name, one in known.items() if "minimum" in one}
assert len(numbers) > 3
for limit, beyond in ("minimum", -1), ("maximum", 1):
    assert status("".join(f"{name} = {one[limit]}\n" for name, one in numbers.items())) == 0
    assert all(status(f"{name} = {one[limit] + beyond}") == 78 for name, one in numbers.items())
for name, one in known.items():
    if "string" in one.get("type", ""):
        assert (status(f'{name} = ""') == 78) == bool({"minLength", "pattern"} & one.keys()), name
pattern = known["lease"]["pattern"]
for text in "2 20s 1h30m 1.5h 3000ms 1day2hours 2min 0 0s x -1s 1s2m 1mm s 1e3".split() + ["1 m", ""]:
    assert (status(f'lease = "{text}"') == 0) == bool(re.search(pattern, text)), text
PYTHON
}

@test "the settings of a configuration file are those that rlock.toml(5) lists, and rlock(1) has a variable for each" {
  sed -n 's/^The settings are \(.*\)\.$/\1/p' "$ROOT/man/rlock.toml.5" | sed 's/ and /, /; s/, /\n/g' | sort >listed
  settings | diff - listed
  (($(wc -l <listed) >= 20))
  while IFS= read -r option; do
    option=${option//-/_}
    grep -qE "(Ev|,) ?RLOCK_${option^^}\b" "$MAN" || { echo "RLOCK_${option^^}" && return 1; }
  done <listed
}

@test "rlock-protocol(7), the script's lists and the rights have the same keys and channels, and the page each message" {
  python3 - "$ROOT" "$(rlock doctor --acl p:)" <<'PROGRAM'
import pathlib, re, sys

def text(path):
    with open(f"{sys.argv[1]}/{path}") as file:
        return file.read()

kinds = {"A string": "string", "A hash": "hash", "A sorted set": "zset", "A list": "list", "A stream": "stream"}
page = text("man/rlock-protocol.7")
shown = {}
for section, kind in [("KEYS", None), ("CHANNELS", "channel")]:
    body = re.search(rf"\n\.Sh {section}\n(.*?)\n\.Sh ", page, re.S)[1]
    for names, said in re.findall(r"\.It Li (.*)\n(.*)", body):
        for word in re.findall(r"([a-z_:]+):\{N\}", names):
            if word == "rlock:hold" and word in shown:
                continue  # its other keys are about the same
            shown.setdefault(word, kind or next(kinds[one] for one in kinds if re.match(one + r"\b", said)))
listed = {
    word: kind
    for word, kind in re.findall(r"^local k\w+ = '([a-z_:]+):' +-- ([a-z-]+):", text("lua/01_request.lua"), re.M)
    if kind != "-"
}
assert len(listed) > 10
print(set(shown.items()) ^ set(listed.items()))
assert shown == listed
assert ".Li {N}:timeout" in page and ".Li {N}:ID:rwlock_timeout:1" in page
rights = set(re.findall(r"[~&](\S+?):\{p:", sys.argv[2]))
used = {word for file in pathlib.Path(sys.argv[1], "lua").rglob("*.lua") for word in re.findall(r"'((?:rlock:|redisson_)[a-z_]+):'", file.read_text())}
print(rights ^ set(shown), used - rights)
assert set(re.findall(r"\b((?:rlock|redisson)[a-z_:]+):\{N\}", page)) == rights == set(shown) and used - {"redisson_unlock_latch"} <= rights

told = set(re.findall(r"^-- (?:Messages:|         ) +'([a-z]+)\b", text("lua/08_queue.lua"), re.M))
grants = re.search(r"\.It Li rlock:grant:\{N\}:ID\n(.*?)\n\.It", page, re.S)[1]
known = set(re.findall(r"^\.Pq Ql ([a-z]+)", grants, re.M))
print(told ^ known)
assert len(told) > 5 and told == known
PROGRAM
}

@test "the least rights have every command that the script uses" {
  grep -ohE "(call|peek)\('[a-z]+'" "$ROOT"/lua/{,features/}*.lua | sed "s/.*'\(.*\)'/\1/" | sort -u >used
  (($(wc -l <used) >= 30))
  rlock doctor --acl | tr ' ' '\n' | sed -n 's/^+\([a-z]*\).*/\1/p' | sort -u >granted
  run -0 comm -23 used granted
  [[ -z $output ]]
}

@test "the program knows every variable in the man page" {
  for variable in $(grep -ohE '\bRLOCK_[A-Z_]+' "${PAGES[@]}" | sort -u); do
    grep -qaF "$variable" "$RLOCK" || {
      variable=${variable#RLOCK_}
      variable=${variable,,}
      of_help | grep -qx -- "--${variable//_/-}"
    }
  done
}

@test "README, docs and man pages name no option that does not exist" {
  local subcommands=${SUBCOMMANDS// /|}
  of_help >known
  # After `rlock SUBCOMMAND` or `rlock --`, up to the command.
  diff known <(of_man)
  grep -ohE "(^|[^a-z/-])rlock ($subcommands|--)[^\`|;]*" "$README" "$ROOT"/docs/*.md "$ROOT"/docs/tldr/*.md "$ROOT"/packaging/rlock.toml |
    sed 's/ -- .*//' | grep -oE -- ' --[a-z][a-z-]+' | tr -d ' ' | sort -u >named
  (($(wc -l <named) >= 20))
  run -1 grep -vxFf known named
}

@test "the examples of README and guarantees.md run" {
  local script count=0
  blocks
  mkdir work
  for script in deploy.sh step-one step-two tick.sh backup.sh report.sh import.sh migrate.sh; do
    printf '#!/bin/sh\necho "%s" >>"%s/calls"\n' "$script" "$PWD" >"work/$script"
    chmod +x "work/$script"
  done
  PATH=$(cd "$(dirname "$RLOCK")" && pwd):$PATH
  for script in block.*; do
    (cd work && timeout -k 1 60 bash -euo pipefail "../$script" </dev/null 3>&-) >out 2>&1 || {
      cat "$script" out
      return 1
    }
    count=$((count + 1))
  done
  ((count >= 5))
  grep -qx deploy.sh calls
  grep -qx step-two calls
  grep -qx tick.sh calls
  redis srv del 'rlock:once:{nightly}' # the success
  [[ $(redis srv del tick 'rlock:holder:{tick}') == 2 ]]
}

@test "track-record.md names tests that exist" {
  python3 - "$ROOT" <<'PYTHON'
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
rows = [line for line in (root / "docs/track-record.md").read_text().splitlines() if line.startswith("| ")][1:]
wrong = 0
for row in rows:
    # FILE: NAME, up to a … or a remark in brackets.
    for file, name in re.findall(r"(tests/[a-z]+/\w+\.(?:bats|cc|table))`?(?:: ([^;…(|]*))?", row.rsplit(" | ", 1)[1]):
        text = (root / file).read_text() if (root / file).exists() else None
        plain = re.sub(r'\\\\(["$`])', r"\1", text or "").replace("`", "")
        for one in re.split(r", (?=[A-Z])", name.replace("`", "").strip(" ,")):
            if text is None or one.removeprefix("…").strip() not in plain:
                wrong += 1
                print(file, one)
assert len(rows) > 150 and not wrong
PYTHON
}

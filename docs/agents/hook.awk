# A hook for coding agents: refuses a shell command that runs something without its lock, and says what to type instead.
#
#   awk -f hook.awk hook.rules - <INPUT
#
# INPUT is the JSON that the agent gives its hooks. Exits with 0 if the command may run, otherwise with 2, the reason on
# standard error, and JSON for agents that do not read that. It reminds those who forget; `x=make; $x` gets past it.

BEGIN {
  if ((getline first < ARGV[1]) < 0) {
    unreadable = ARGV[1]
    ARGV[1] = ""
  }
  close(ARGV[1])
  # The command stays as JSON writes it.
  meaning["\\n"] = "\n"
  meaning["\\t"] = "\t"
  meaning["\\\""] = "\""
  meaning["\\\\"] = "\\"
  # What may stand before a command in the same shell, and programs that run the command in their arguments.
  assigned = "[A-Za-z_][A-Za-z_0-9]*[+]?=[^ ]*"
  prefix = "^(if|then|elif|else|while|until|do|!|[{]|time|-p|coproc|exec|command|builtin|function [^ ]+|([0-9]+ )?> [^ ]+|" \
    assigned ")$"
  wrapper = "^([^ ]*/)?(" program("sudo|doas", "[ugpCDRTUh]|-user|-group|-chdir") "( " assigned ")*|" \
    program("env", "[uC]|-unset|-chdir") "( " assigned ")*|" program("xargs", "[IadLnPs]|-max-args|-max-procs|-delimiter") "|" \
    program("strace|ltrace", "[oepsEu]") "|" program("timeout|chrt|taskset", "[ks]|-kill-after|-signal") " [^ ]+|" \
    program("nice|ionice|nohup|setsid|stdbuf|time|watch|unbuffer|parallel", "[cnfoj]|-adjustment|-interval|-jobs") ") "
  shell = "^([^ ]*/)?([bdkz]?a?sh|source|[.])( [-+][A-Za-z]*o [^ ]+| [-+][^ ]*)*"
}

# program(NAMES, VALUED): a program with its options. VALUED: those that take a value, without the first dash.
function program(names, valued) { return "(" names ")( -[A-Za-z0-9]*(" valued ") [^ ]+| -[^ ]+)*" }

FILENAME != "-" && !/^#/ && match($0, / +=> +/) {
  pattern[++rules] = "^(" substr($0, 1, RSTART - 1) ")( |$)"
  options[rules] = substr($0, RSTART + RLENGTH)
  match(options[rules], /("[^"]*"|[^ "])+$/)
  lock[rules] = substr(options[rules], RSTART)
  gsub(/"/, "\\\\&", lock[rules])
  gsub(/"/, "\\\\&", options[rules])
}

FILENAME == "-" { input = input $0 }

END {
  if (unreadable != "") deny("rlock: the rules of the hook cannot be read: " unreadable)
  # Copilot may send the arguments as JSON in a string.
  if (match(input, /"toolArgs" *: *"([^"\\]|\\.)*"/)) input = plain(substr(input, RSTART, RLENGTH))
  if (!match(input, /"command" *: *"([^"\\]|\\.)*"/)) exit
  text = substr(input, RSTART, RLENGTH - 1)
  sub(/^"command" *: *"/, "", text)
  gsub(/\\u0026/, "\\&", text)
  gsub(/\\u003c/, "<", text)
  gsub(/\\u003e/, ">", text)
  scan(text, 1, 0, "")
  for (i = 1; i <= length(text); i++) line = line before[i] substr(text, i, 1)
  if (line == text) exit
  deny("rlock: others use this, too. Type the next line instead. Status 75 means that someone else has the lock.\\n" line)
}

function deny(reason,    list, i, more) {
  split("reason agent_message user_message permissionDecisionReason", list, " ")
  for (i in list) more = more ", \"" list[i] "\": \"" reason "\""
  print "{\"decision\": \"deny\", \"permission\": \"deny\", \"permissionDecision\": \"deny\"" more "}"
  print plain(reason) >"/dev/stderr"
  exit 2
}

# plain(STRING): without the escapes of JSON.
function plain(string) {
  gsub(/\\\\/, "\001", string)
  gsub(/\\n/, "\n", string)
  gsub(/\\t/, "\t", string)
  gsub(/\\"/, "\"", string)
  gsub(/\001/, "\\", string)
  return string
}

# masked(STRING): as part of a word. unmasked() is the opposite.
function masked(string) {
  gsub(/ /, "\002", string)
  return string
}
function unmasked(string) {
  gsub(/\002/, " ", string)
  return string
}

# apart(WORDS): with a blank at the end, unless there are none.
function apart(words) {
  sub(/ ?$/, " ", words)
  return words == " " ? "" : words
}

# scan(TEXT, AT, DEPTH, END): reads commands from AT up to END, which is ")", "`" or "". Returns the place of END. The words of
# a command, without their quotes and with one blank in between, are in `words`.
function scan(text, at, depth, end,
              token, c, two, words, start, quoted, deep, head, cases, patterns, body, n, i, line, word, tabs, literal, from, here, dollar) {
  for (; at <= length(text); at += length(token)) {
    token = substr(text, at, 1)
    if (token == "\\") token = substr(text, at, 2)
    c = token in meaning ? meaning[token] : token
    two = c substr(text, at + length(token), 1)
    if (words == "" && !quoted) start = at
    if (c == "\\") {
      at += 2
      token = substr(text, at, 1 + (substr(text, at, 1) == "\\"))
      if (token != "\\n") words = words (quoted && token !~ /[$`"\\]/ ? "\\\\" : "") masked(token)
    } else if (c == "\"") quoted = !quoted
    else if (c == "'" && !quoted) {
      n = index(substr(text, at + 1) "'", "'")
      dollar = sub(/[$]$/, "", words)
      # There, \' is no end.
      if (dollar && match(substr(text, at + 1), /^([^'\\]|\\\\\\\\|\\\\[^\\]|\\[^\\])*'/)) n = RLENGTH
      here = substr(text, at + 1, n - 1)
      if (dollar) gsub(/\\\\n/, "\\n", here)
      words = words masked(here)
      at += n
    } else if (c == "`" && end == "`") break
    else if (two == "$(" || c == "`" || !quoted && two ~ /[<>]\(/) {
      at = scan(text, at + length(c == "`" ? c : two), depth, c == "`" ? c : ")")
      token = " "
      words = words "_"
    } else if (quoted) words = words masked(token)
    else if (c ~ /[ \t]/) words = words ~ prefix ? "" : apart(words)
    else if (c == "#" && words ~ /^$| $/) at += index(substr(text, at) "\\n", "\\n") - 2
    else if (two == "<<" && substr(text, at + 2, 1) != "<") {
      match(substr(text, at), /^<<-? *(\\["\\]|[^ \\;&|<>()])*/)
      word = substr(text, at + 2, RLENGTH - 2)
      at += RLENGTH - 1
      tabs = sub(/^-/, "", word)
      sub(/^ */, "", word)
      literal = gsub(/[\\"']/, "", word)
      if (!body) body = at + index(substr(text, at) "\\n", "\\n") + 1
      from = body
      n = split(substr(text, body), line, /\\n/)
      here = ""
      for (i = 1; i <= n; i++) {
        body += length(line[i]) + 2
        if (tabs) gsub(/\\t/, "", line[i])
        if (line[i] == word) break
        here = here line[i] "\\n"
      }
      words = apart(words) "<<< " masked(here)
      # Without quotes around the delimiter, the shell runs what is in $( ).
      for (; !literal && from < body; from++)
        if (substr(text, from, 2) == "$(") from = scan(text, from + 2, depth, ")")
    } else if (c ~ /[<>]/ || two == "&>") {
      match(substr(text, at, 9), /^[&<>|]+-? */)
      here = substr(text, at, RLENGTH)
      words = apart(words) (here ~ /^<<</ ? "<<< " : here ~ /-/ ? "" : "> ")
      at += RLENGTH - 1
    } else if (c !~ /[;&|()\n]/) words = words token
    else {
      # The words of a case, and the patterns in it, are no commands.
      head = words ~ /^case / || patterns && words !~ /^esac/
      if (c == ")" && end == ")" && !deep && !head) break
      cases += (words ~ /^case /) - (words ~ /^esac/)
      patterns = c != ")" && (head || two == ";;" && cases)
      if (!head) deep += (c == "(" && two != "()") - (c == ")" && deep)
      if (!head) finish(words, substr(text, start, at - start), start, depth, two ~ /[|][^|]/)
      words = ""
      at += two == "()" || two == ";;"
      if (c == "\n" && body) {
        at = body
        body = token = ""
      }
    }
  }
  finish(words, substr(text, start, at - start), start, depth, 0)
  return at
}

# nested(STRING, DEPTH): the rules for the commands in a string, as ",1,,3,".
function nested(string, depth,    outer) {
  outer = inner
  inner = ""
  scan(string, 1, depth + 1, "")
  string = inner
  inner = outer
  return string
}

# finish(WORDS, RAW, START, DEPTH, PIPE): a command is complete; RAW has its quotes. PIPE: the next one reads its output.
function finish(words, raw, start, depth, pipe,    found, rule, lines) {
  found = needed(words, raw, depth)
  fed = pipe && sub(/^(echo|printf|cat) (-[a-z]+ )?(<<< )?/, "", words) ? words : ""
  gsub(/\\\\n/, "\\n", fed)
  inner = inner found
  for (rule = 1; rule <= rules && !depth; rule++)
    if (index(found, "," rule ",") && !index(held, "," rule ",")) lines = lines "rlock run " options[rule] " -- "
  if (!depth) before[start] = lines (lines && words ~ /^(eval|source|[.]) / ? "bash -c '\\\"$@\\\"' - " : "") before[start]
}

# needed(WORDS, RAW, DEPTH): the rules for a command.
function needed(words, raw, depth,    found, rule, named) {
  while (sub(wrapper, "", words));
  if (words ~ /^([^ ]*\/)?rlock /) {
    for (rule = 1; rule <= rules; rule++) if (index(" " raw " ", " " lock[rule] " ")) named = named "," rule ","
    if (words ~ /^[^ ]* (acquire|renew) /) held = held named
    if (!match(words, / (-c|--) /)) return ""
    words = substr(words, RSTART + 1)
    found = sub(/^-c /, "", words) ? nested(unmasked(words), depth) : needed(substr(words, 4), raw, depth)
    for (rule = 1; rule <= rules; rule++) if (index(named, "," rule ",")) gsub("," rule ",", "", found)
    return found
  }
  if (sub(/^eval /, "", words)) return nested(unmasked(words), depth)
  while (words ~ /^find / && match(words, / -(exec|ok)(dir)? /)) {
    found = found needed(substr(words, RSTART + RLENGTH), raw, depth)
    words = "find" substr(words, RSTART + RLENGTH - 1)
  }
  if (match(words, shell " -[A-Za-z]*c [^ ]*") || match(words, /^(su|script|runuser) (.* )?-[a-z]*c [^ ]*/)) {
    words = substr(words, 1, RLENGTH)
    sub(/.* /, "", words)
    return nested(unmasked(words), depth)
  }
  if (sub(shell "( |$)", "", words) && sub(/^(<<< |> |$)/, "\\n", words)) return nested(unmasked(fed words), depth)
  sub(/^[^ ]*\//, "", words)
  for (rule = 1; rule <= rules; rule++) if (words ~ pattern[rule]) found = found "," rule ","
  return found
}

# A hook for coding agents: refuses a shell command that runs something without its lock, and says what to type instead.
#
#   awk -f hook.awk hook.rules - <INPUT
#
# INPUT is the JSON that the agent gives its hooks. Exits with 0 if the command may run, otherwise with 2, the reason on
# standard error, and JSON for agents that do not read that. It reminds those who forget; `x=make; $x` gets past it, and so
# do commands that are longer than 20,000 characters in JSON, or nested more than 15 deep.

BEGIN {
  if ((getline first < ARGV[1]) < 0) {
    unreadable = ARGV[1]
    ARGV[1] = ""
  }
  close(ARGV[1])
  harmless = "^$"
  value = "[ \t\r\n]*:[ \t\r\n]*"
  string = "\"([^\"\\\\]|\\\\.)*\""
  # What may stand before a command in the same shell, and programs that run the command in their arguments.
  assigned = "[A-Za-z_][A-Za-z_0-9]*[+]?=[^ ]*"
  prefix = "^(if|then|elif|else|while|until|do|!|[{]|time|-p|coproc|exec|command|builtin|function [^ ]+|([0-9]+ )?> [^ ]+|" \
    assigned ")$"
  wrapper = "^([^ ]*/)?(" program("sudo|doas", "[ugpCDRTUh]|-user|-group|-chdir") "( " assigned ")*|" \
    program("env", "[uC]|-unset|-chdir") "( " assigned ")*|" program("xargs", "[IadLnPs]|-max-args|-max-procs|-delimiter") "|" \
    program("strace|ltrace", "[oepsEu]") "|" program("timeout|chrt|taskset|flock", "[kswE]|-kill-after|-signal|-wait") " [^ ]+|" \
    program("nice|ionice|nohup|setsid|stdbuf|time|watch|unbuffer|parallel", "[cnfoj]|-adjustment|-interval|-jobs") ") "
  shell = "^([^ ]*/)?([bdkz]?a?sh|source|[.])( [-+][A-Za-z]*o [^ ]+| [-+][^ ]*)*"
}

# program(NAMES, VALUED): a program with its options. VALUED: those that take a value, without the first dash.
function program(names, valued) { return "(" names ")( -[A-Za-z0-9]*(" valued ") [^ ]+| -[^ ]+)*" }

FILENAME != "-" && !/^#/ && match($0, / +=> */) {
  if (RSTART + RLENGTH > length($0)) {
    harmless = harmless "|^(" substr($0, 1, RSTART - 1) ")( |$)"
    next
  }
  pattern[++rules] = "^(" substr($0, 1, RSTART - 1) ")( |$)"
  options[rules] = substr($0, RSTART + RLENGTH)
  match(options[rules], /("[^"]*"|[^ "])+$/)
  lock[rules] = unquoted(substr(options[rules], RSTART))
}

FILENAME == "-" { input = input $0 "\n" }

END {
  if (unreadable != "") deny("rlock: the rules of the hook cannot be read: " unreadable)
  if (match(input, "\"(tool_input|toolArgs)\"" value)) input = substr(input, RSTART + RLENGTH)
  # Copilot may send the arguments as JSON in a string.
  if (match(input, "^" string)) input = plain(substr(input, 2, RLENGTH - 2))
  if (!match(input, "\"command\"" value string)) exit
  text = substr(input, RSTART, RLENGTH - 1)
  sub("^\"command\"" value "\"", "", text)
  text = plain(text)
  scan(text, 1, 0, "")
  for (i = 1; i <= length(text); i++) line = line before[i] substr(text, i, 1)
  if (line == text) exit
  deny("rlock: others use this, too. Type the next line instead. Status 75 means that someone else has the lock.\n" line)
}

function deny(reason,    string, list, i, more) {
  string = reason
  gsub(/\\/, "&&", string)
  gsub(/"/, "\\\\&", string)
  for (i = 1; i < 32; i++) gsub(sprintf("%c", i), sprintf("\\u%04x", i), string)
  split("reason agent_message user_message permissionDecisionReason", list, " ")
  for (i in list) more = more ", \"" list[i] "\": \"" string "\""
  print "{\"decision\": \"deny\", \"permission\": \"deny\", \"permissionDecision\": \"deny\"" more "}"
  print reason >"/dev/stderr"
  exit 2
}

# plain(STRING): without the escapes of JSON.
function plain(string,    done, escape, code, high, i) {
  if (length(string) > 20000) exit
  for (; match(string, /\\(u....|.)/); string = substr(string, RSTART + RLENGTH)) {
    done = done substr(string, 1, RSTART - 1)
    escape = substr(string, RSTART + 1, RLENGTH - 1)
    code = 0
    for (i = 2; i <= length(escape); i++) code = code * 16 + index("123456789abcdef", tolower(substr(escape, i, 1)))
    # \b is character 8, and so on.
    i = index("btn-fr", escape)
    if (length(escape) == 1) done = done (i ? sprintf("%c", 7 + i) : escape)
    else if (code >= 55296 && code < 56320) high = code - 55296
    else if (code >= 56320 && code < 57344) done = done utf8(65536 + high * 1024 + code - 56320)
    else if (code) done = done utf8(code)
  }
  return done string
}

# utf8(CODE): the character with that number, also if awk knows bytes alone.
function utf8(code,    lead, rest) {
  if (code < 128 || length("é") == 1) return sprintf("%c", code)
  for (lead = 64; code >= lead; lead = lead == 64 ? 32 : lead / 2) {
    rest = sprintf("%c", 128 + code % 64) rest
    code = int(code / 64)
  }
  return sprintf("%c", 256 - 2 * lead + code) rest
}

# unquoted(WORDS): without quotes, for a comparison.
function unquoted(words) {
  gsub(/["']/, "", words)
  return words
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
function apart(words) { return words == "" || substr(words, length(words)) == " " ? words : words " " }

# scan(TEXT, AT, DEPTH, END): reads commands from AT up to END, which is ")", "`" or "". Returns the place of END. The words of
# a command, without their quotes and with one blank in between, are in `words`.
function scan(text, at, depth, end,
              c, two, words, start, blanks, quoted, deep, head, cases, patterns, list, body, n, word, tabs, literal, from, here,
              dollar) {
  if (++level > 15) exit
  for (; at <= length(text); at++) {
    c = substr(text, at, 1)
    two = substr(text, at, 2)
    if (words == "" && !quoted) {
      start = at
      blanks = 0
    }
    if (c == "\\") {
      at++
      c = substr(text, at, 1)
      if (c != "\n") words = words (quoted && c !~ /[$`"\\]/ ? "\\" : "") masked(c)
    } else if (c == "\"") quoted = !quoted
    else if (c == "'" && !quoted) {
      n = index(substr(text, at + 1) "'", "'")
      dollar = sub(/[$]$/, "", words)
      # There, \' is no end.
      if (dollar && match(substr(text, at + 1), /^([^'\\]|\\.)*'/)) n = RLENGTH
      here = substr(text, at + 1, n - 1)
      if (dollar) gsub(/\\n/, "\n", here)
      words = words masked(here)
      at += n
    } else if (c == "`" && end == "`") break
    else if (two == "$(" || c == "`" || !quoted && two ~ /[<>]\(/) {
      at = inside(text, at, depth)
      words = words "_"
    } else if (quoted) words = words masked(c)
    else if (c ~ /[ \t]/) words = ++blanks < 9 && words ~ prefix ? "" : apart(words)
    else if (c == "#" && words ~ /^$| $/) at += index(substr(text, at) "\n", "\n") - 2
    else if (two == "<<" && match(substr(text, at), /^<<-?[ \t]*("[^"]*"|'[^']*'|\\.|[^ \t\n\\"';&|<>()])+/)) {
      word = substr(text, at + 2, RLENGTH - 2)
      at += RLENGTH - 1
      tabs = sub(/^-/, "", word)
      sub(/^[ \t]+/, "", word)
      literal = gsub(/[\\"']/, "", word)
      from = body ? body : at + index(substr(text, at) "\n", "\n")
      n = document(text, from, word, tabs)
      # Otherwise, it is arithmetic.
      if (n) {
        words = apart(words) "<<< " masked(content)
        body = from + n
      }
      # Without quotes around the delimiter, the shell runs what is in $( ).
      for (; n && !literal && from < body; from++) {
        if (substr(text, from, 1) == "\\") from++
        else if (substr(text, from, 2) ~ /^(`|[$]\()/) from = inside(text, from, depth)
      }
    } else if (c ~ /[<>]/ || two == "&>") {
      match(substr(text, at, 9), /^[&<>|]+-? */)
      here = substr(text, at, RLENGTH)
      words = apart(words) (here ~ /^<<</ ? "<<< " : here ~ /-/ ? "" : "> ")
      at += RLENGTH - 1
    } else if (c == "(" && two != "()" && (list || words ~ /[=@+^]$| !$|^\[\[ /)) {
      # A list of words, or a pattern.
      list++
      words = words "_ "
    } else if (c == ")" && list) list--
    else if (list && c ~ /[;&|\n]/) words = apart(words)
    else if (c !~ /[;&|()\n]/) words = words c
    else {
      # The words of a case, and the patterns in it, are no commands.
      head = words ~ /^case / || patterns && words !~ /^esac/
      if (c == ")" && end == ")" && !deep && !head) break
      cases += (words ~ /^case /) - (words ~ /^esac/)
      patterns = c != ")" && (head || two == ";;" && cases)
      if (!head) deep += (c == "(" && two != "()") - (c == ")" && deep)
      # The name of a function is no command, either.
      if (!head && two != "()") finish(words, substr(text, start, at - start), start, depth, two ~ /[|][^|]/)
      words = ""
      at += two == "()" || two == ";;"
      if (c == "\n" && body) {
        at = body - 1
        body = 0
      }
    }
  }
  finish(words, substr(text, start, at - start), start, depth, 0)
  level--
  return at
}

# inside(TEXT, AT, DEPTH): scans the substitution AT. Returns the place of its end.
function inside(text, at, depth) {
  if (substr(text, at, 1) == "`") return scan(text, at + 1, depth, "`")
  return scan(text, at + 2, depth, ")")
}

# document(TEXT, AT, WORD, TABS): the length of the here-document AT with the line WORD that ends it, or 0 if there is no such
# line. What it says is in `content`.
function document(text, at, word, tabs,    n, line, i, size) {
  n = split(substr(text, at), line, /\n/)
  content = ""
  for (i = 1; i <= n; i++) {
    size += length(line[i]) + 1
    if (tabs) sub(/^\t+/, "", line[i])
    if (line[i] == word) return size
    content = content line[i] "\n"
  }
  return 0
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
  gsub(/\\n/, "\n", fed)
  inner = inner found
  for (rule = 1; rule <= rules && !depth; rule++)
    if (index(found, "," rule ",") && !index(held, "," rule ",")) lines = lines "rlock run " options[rule] " -- "
  if (!depth) before[start] = lines (lines && words ~ /^(eval|source|[.]) / ? "bash -c '\"$@\"' - " : "") before[start]
}

# needed(WORDS, RAW, DEPTH): the rules for a command.
function needed(words, raw, depth,    found, rule, named) {
  if (depth > 15) exit
  if (words == "") return ""
  # `watch` and `parallel` give such a word to a shell.
  while (sub(wrapper, "", words)) if (words ~ /^[^ ]*\002/) found = found nested(unmasked(words), depth)
  if (words ~ /^([^ ]*\/)?rlock /) {
    for (rule = 1; rule <= rules; rule++) if (index(" " unquoted(raw) " ", " " lock[rule] " ")) named = named "," rule ","
    if (words ~ /^[^ ]* (acquire|renew) /) held = held named
    if (!match(words, / (-c|--command|--)[ =]/)) return ""
    words = substr(words, RSTART + 1)
    found = sub(/^(-c|--command)[ =]/, "", words) ? nested(unmasked(words), depth) : needed(substr(words, 4), raw, depth + 1)
    for (rule = 1; rule <= rules; rule++) if (index(named, "," rule ",")) gsub("," rule ",", "", found)
    return found
  }
  if (sub(/^eval /, "", words)) return nested(unmasked(words), depth)
  while (words ~ /^find / && match(words, / -(exec|ok)(dir)? /)) {
    found = found needed(substr(words, RSTART + RLENGTH), raw, depth + 1)
    words = "find" substr(words, RSTART + RLENGTH - 1)
  }
  if (match(words, shell " -[A-Za-z]*c [^ ]*") || match(words, /^((su|script|runuser) (.* )?)?-[a-z]*c [^ ]*/)) {
    words = substr(words, 1, RLENGTH)
    sub(/.* /, "", words)
    return nested(unmasked(words), depth)
  }
  if (sub(shell "( |$)", "", words) && sub(/^(<<< |> |$)/, "\n", words)) return nested(unmasked(fed words), depth)
  sub(/^[^ ]*\//, "", words)
  if (words ~ harmless) return found
  for (rule = 1; rule <= rules; rule++) if (words ~ pattern[rule]) found = found "," rule ","
  return found
}

# Tables of cases: a command line, its status, and what it prints. tests/cli/*.table are read by
# tests/cli/{tables,job_tables}.bats.
#
#   + take() { rlock acquire --lease 30s "$1"; }     before the first section: every section begins with it
#
#   == a lock that somebody else holds               a section, with a folder of its own and an empty server
#   + owner=$(take a)                                shell, which must succeed
#   75 rlock run -n a -- touch ran  ! held by        a case: status, command, and behind two blanks what it has to print
#   0 rlock status --names a
#     > a                                            the same on lines of its own
#
#   `> LINE`     these lines are the output
#   `>~ TEXT`    TEXT is in the output
#   `!= LINE`    these lines are the error
#   `! TEXT`     TEXT is in the error
#   `? COMMAND`  succeeds; it can use $status, $output, $lines and $stderr
#
# An output that no expectation is about must be empty. With a status from 64 to 78, an error that has a TEXT begins with
# "rlock: ". The command `touch ran` must not run if the status is not 0. A command line that is refused, with 64, adds no
# key.
#
#   @ name: a 'b c'    this section once for each of these words
#   if COMMAND         this section only if it succeeds
#   # comment

# table_file FILE: all cases of a table. Fails at the end if one has failed, and tells which.
table_file() {
  local -a t_head=() t_titles=() t_bodies=() t_body
  local t_line t_number=0 t_bad=0 t_section=-1
  while IFS= read -r t_line || [[ -n $t_line ]]; do
    t_number=$((t_number + 1))
    case $t_line in
      '' | '#'*) continue ;;
      '== '?*) t_titles[++t_section]=${t_line#== } t_bodies[t_section]='' ;;
      '+ '?* | 'if '?* | '@ '[a-z]*': '?* | [0-9]*' '?* | '  > '* | '  >~ '?* | '  ! '?* | '  != '?* | '  ? '?*)
        if ((t_section >= 0)); then
          t_bodies[t_section]+=$t_number:$t_line$'\n'
        elif [[ $t_line == '+ '* ]]; then
          t_head+=("$t_number:$t_line")
        else
          echo "$1:$t_number: before the first section, there may only be set-up" && return 1
        fi
        ;;
      *) echo "$1:$t_number: not understood: $t_line" && return 1 ;;
    esac
  done <"$1"
  ((t_section >= 0)) || { echo "$1: there is no case in it" && return 1; }
  local t_run=0
  for ((t_section = 0; t_section < ${#t_titles[@]}; t_section++)); do
    [[ $'\n'${t_bodies[t_section]} =~ $'\n'[0-9]+:[0-9] ]] || { echo "$1: no case in: ${t_titles[t_section]}" && return 1; }
    mapfile -t t_body < <(printf %s "${t_bodies[t_section]}")
    local t_variable='' t_word t_words=('')
    if [[ ${t_body[0]} =~ ^[0-9]+:@\ ([a-z_]+):\ (.*)$ ]]; then
      t_variable=${BASH_REMATCH[1]}
      eval "t_words=(${BASH_REMATCH[2]})"
      unset 't_body[0]'
    fi
    for t_word in "${t_words[@]}"; do
      t_run=$((t_run + 1))
      mkdir -p "$BATS_TEST_TMPDIR/$t_run"
      (table_section "$1" "$t_variable" "$t_word") || {
        echo "in: ${t_titles[t_section]}${t_variable:+, with $t_variable=$t_word}"
        t_bad=$((t_bad + 1))
      }
    done
    is_clean srv || {
      echo "left behind by: ${t_titles[t_section]}"
      t_bad=$((t_bad + 1))
    }
    redis srv flushall >/dev/null
  done
  ((t_bad == 0)) || { echo "$1: $t_bad failures in $t_run sections" && return 1; }
}

# table_section FILE VARIABLE WORD: the lines of $t_head and $t_body, in a subshell. What a table itself names does not
# begin with t_, and so changes nothing here.
table_section() {
  local t_file=$1 t_entry t_text t_at='' t_command='' t_wanted='' t_failed=0 t_folder=$BATS_TEST_TMPDIR
  local -a t_output_is t_output_has t_error_is t_error_has t_conditions lines
  local status output stderr # of the last case, also for set-up behind it
  [[ -z $2 ]] || local "$2=$3"
  cd "$BATS_TEST_TMPDIR/$t_run" || return
  for t_entry in "${t_head[@]}" "${t_body[@]}" ''; do
    t_text=${t_entry#*:}
    if [[ $t_text == '  '* ]]; then
      [[ -n $t_command ]] || { table_fails "${t_entry%%:*}" 'there is no case above' && break; }
      table_expects "${t_text#  }"
      continue
    fi
    [[ -z $t_command ]] || table_case
    t_command='' t_at=${t_entry%%:*}
    case $t_text in
      '+ '*) eval "${t_text#+ }" >"$t_folder/out" 2>"$t_folder/err" || { table_fails "$t_at" 'the set-up failed' && cat "$t_folder/out" "$t_folder/err" && break; } ;;
      'if '*) eval "${t_text#if }" >/dev/null 2>&1 || { echo "# left out, unless ${t_text#if }: $t_file:$t_at" >&3 && break; } ;;
      [0-9]*)
        t_wanted=${t_text%% *} t_text=${t_text#* }
        t_output_is=() t_output_has=() t_error_is=() t_error_has=() t_conditions=()
        # From the last one on, because a command may have two blanks, too.
        local -a t_behind=()
        while [[ $t_text =~ ^(.*[^\ ])\ \ +((>|>~|!|!=|\?)( .*)?)$ ]]; do
          t_text=${BASH_REMATCH[1]} t_behind=("${BASH_REMATCH[2]}" "${t_behind[@]}")
        done
        t_command=$t_text
        for t_text in "${t_behind[@]}"; do table_expects "$t_text"; done
        ;;
    esac
  done
  return "$t_failed"
}

table_expects() {
  case $1 in
    '> '*) t_output_is+=("${1#> }") ;;
    '>~ '*) t_output_has+=("${1#>~ }") ;;
    '!= '*) t_error_is+=("${1#!= }") ;;
    '! '*) t_error_has+=("${1#! }") ;;
    '? '*) t_conditions+=("${1#? }") ;;
    *) table_fails "$t_at" "not understood: $1" ;;
  esac
}

# table_fails LINE TEXT...
table_fails() {
  echo "$t_file:$1: ${*:2}"
  t_failed=1
}

# table_case: runs $t_command and compares.
table_case() {
  local t_keys t_one t_about t_before=$t_failed
  status=0
  [[ $t_wanted != 64 ]] || t_keys=$(redis srv dbsize)
  (eval "$t_command") >"$t_folder/out" 2>"$t_folder/err" </dev/null 3>&- || status=$?
  { output=$(<"$t_folder/out") && stderr=$(<"$t_folder/err"); } 2>/dev/null
  mapfile -t lines <"$t_folder/out"
  [[ $status == "$t_wanted" ]] || table_fails "$t_at" "status $status instead of $t_wanted"
  if ((${#t_output_is[@]})); then
    [[ $output == "$(printf '%s\n' "${t_output_is[@]}")" ]] || table_fails "$t_at" "the output is not: $(printf '%s\n' "${t_output_is[@]}")"
  fi
  if ((${#t_error_is[@]})); then
    [[ $stderr == "$(printf '%s\n' "${t_error_is[@]}")" ]] || table_fails "$t_at" "the error is not: $(printf '%s\n' "${t_error_is[@]}")"
  fi
  for t_one in "${t_output_has[@]}"; do
    [[ $output == *"$t_one"* ]] || table_fails "$t_at" "not in the output: $t_one"
  done
  for t_one in "${t_error_has[@]}"; do
    [[ $stderr == *"$t_one"* ]] || table_fails "$t_at" "not in the error: $t_one"
  done
  for t_one in "${t_conditions[@]}"; do
    (eval "$t_one") || table_fails "$t_at" "does not hold: $t_one"
  done
  t_about="${t_conditions[*]}"
  [[ -z $output || ${#t_output_is[@]} != 0 || ${#t_output_has[@]} != 0 || $t_about == *output* || $t_about == *lines* ]] ||
    table_fails "$t_at" 'no output was expected'
  [[ -z $stderr || ${#t_error_is[@]} != 0 || ${#t_error_has[@]} != 0 || $t_about == *stderr* ]] ||
    table_fails "$t_at" 'no error was expected'
  ((t_wanted < 64 || t_wanted > 78 || ${#t_error_has[@]} == 0)) || [[ $stderr == 'rlock: '* ]] ||
    table_fails "$t_at" 'the error does not begin with "rlock: "'
  [[ $t_wanted == 0 || ! -e ran ]] || table_fails "$t_at" 'touch ran was run'
  # Keys may have expired meanwhile.
  [[ $t_wanted != 64 ]] || (($(redis srv dbsize) <= t_keys)) || table_fails "$t_at" 'keys were added'
  ((t_failed == t_before)) || show | sed 's/^/  /'
}

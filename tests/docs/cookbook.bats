# Every line with rlock in the cookbook does what it says there.

load ../lib/server
load ../lib/docs

setup() {
  BOOK=$TESTS_DIR/../docs/cookbook.md
  use_server srv
  stand_ins '' backup.sh report.sh deploy.sh migrate.sh train.sh daemon job.sh a.sh b.sh bin/make bin/terraform
  echo 4f2a1c9 >commit
}

# block WORD: the first tested block that contains it, as the file `script`.
block() {
  blocks "$BOOK"
  cp "$(grep -lF -- "$1" block.* | sort -V | head -n 1)" script
}

# follow FILE: runs it as a script of its own, because one recipe starts itself again.
follow() {
  { echo '#!/usr/bin/env bash' && cat "$1"; } >script.sh
  chmod +x script.sh
  run -0 --separate-stderr timeout -k 1 60 bash -euo pipefail ./script.sh </dev/null 3>&-
}

# rows: the new commands in the tables, each row as a script row.1, row.2 … for the lock "job".
rows() {
  sed -n '/^## The old command/,$p' "$BOOK" | grep -E '\| `(rlock|owner=)' | sed 's/\\|/\r/g' | awk -F' *[|] *' '
    { n++; count = split($3, part, "`"); for (i = 2; i <= count; i += 2) print part[i] > ("row." n) }'
  sed -i 's/\r/|/g; s/\bNAME\b/job/g' row.*
}

@test "every block and every row with rlock is executed" {
  [[ $(grep -c '^```sh$' "$BOOK") == $(grep -c '^# tested$' "$BOOK") ]]
  # Besides these blocks: the crontab's file is a file, and one line is for a terminal.
  run -0 awk '/^```/ { fenced = !fenced } !fenced && /^ +.*rlock/ && !/COPY/' "$BOOK"
  [[ $output == '    rlock run --reason "Alice repairs the database" deploy -- bash' ]]
  rows
  [[ $(ls row.* | wc -l) == $(sed -n '/^## The old command/,$p' "$BOOK" | grep -cE '\| `(rlock|owner=)') ]]
  (($(ls row.* | wc -l) >= 24))
}

@test "each block of the cookbook runs" {
  blocks "$BOOK"
  for script in $(ls block.* | sort -V); do
    # It takes away a held lock.
    for name in $(sed -n 's/^rlock force-unlock --yes //p' "$script"); do rlock acquire "$name" --lease 1m >/dev/null; done
    follow "$script" || { show && cat "$script" && return 1; }
    redis srv flushall >/dev/null # kept by --min-hold
  done
  [[ $(cut -d' ' -f1 calls | sort -u | tr '\n' ' ') == 'backup.sh daemon deploy.sh make migrate.sh report.sh terraform train.sh ' ]]
}

@test "a script that locks itself, however it is called, and also if a job that is over has left it running" {
  block --locked
  sed 's/^.*backup.*/echo "$*, $RLOCK_TOKEN" >>self/' script >self.sh
  chmod +x self.sh
  sh self.sh 'a  b' c
  { echo '#!/bin/sh' && cat self.sh; } >with-shell.sh
  chmod +x with-shell.sh
  ./with-shell.sh
  mkfifo go
  rlock run --leftovers ignore nightly -- bash -c '{ read -r <go; ./with-shell.sh left; echo done >left; } >/dev/null 2>&1 &' 3>&-
  owner=$(rlock acquire nightly --lease 10m)
  echo >go
  wait_until queued nightly 1
  [[ $(wc -l <self) == 2 && $(head -n 1 self) == 'a  b c, '* ]]
  rlock release nightly --owner "$owner"
  wait_until test -s left
  [[ $(tail -n 1 self) == 'left, '[0-9]* ]]
}

@test "each row of the tables runs the job" {
  rows
  for script in row.*; do
    rm -f calls
    follow "$script" || { show && cat "$script" && return 1; }
    case $(<"$script") in
      *' --protocol set '*) [[ $(<calls) == 'job.sh under job-lock:default:job' ]] ;;
      *'./job.sh') [[ $(<calls) == 'job.sh under job' ]] ;;
      *'./a.sh; ./b.sh'*) [[ $(<calls) == $'a.sh under job\nb.sh under job' ]] ;;
      *'$RLOCK_TOKEN'*) [[ $output =~ ^[0-9]+$ ]] ;;
      *'--lease 1h') [[ $(redis srv hkeys job) == "$output" ]] ;;
      *'rlock release '* | *force-unlock*) [[ $(redis srv exists job) == 0 ]] ;;
      *) cat "$script" && return 1 ;;
    esac
    redis srv del job 'rlock:holder:{job}' >/dev/null
  done
  redis srv flushall
}

@test "a busy lock: no row runs the job, and each exits as documented" {
  rows
  for script in $(grep -l 'run ' row.*); do
    redis srv flushall >/dev/null
    case $(<"$script") in
      *' -s '*) rlock acquire -x job --lease 10m ;;
      *' -x '*) rlock acquire -s job --lease 10m ;;
      *' --protocol set '*) rlock acquire --protocol set job-lock:default:job --lease 10m ;;
      *--slots*) for _ in 1 2 3; do rlock acquire --slots 3 job --lease 10m; done ;;
      *) rlock acquire job --lease 10m ;;
    esac
    # Some wait forever, some for ten seconds.
    case $(<"$script") in
      *' -w 10 '*) sed -i 's/-w 10 /-n /' "$script" ;;
      *' -w 10s '*) sed -i 's/-w 10s /-n /' "$script" ;;
      *' -n '*) ;;
      *) sed -i 's/rlock run/rlock run -n/' "$script" ;;
    esac
    expected=$(sed -n 's/.* -E \([0-9]*\) .*/\1/p' "$script")
    run "-${expected:-75}" bash "$script" </dev/null
  done
  [[ ! -e calls ]]
  redis srv flushall
}

@test "one backup: a later host is silent, and one that was too slow is reported" {
  block '--once-per day backup -- ./backup.sh'
  rlock acquire backup --lease 10m >owner
  follow script
  [[ -z $output && -z $stderr && ! -e calls ]]
  rlock release backup --owner "$(<owner)"
  block --max-hold
  printf '#!/bin/sh\nexec sleep 1000\n' >backup.sh
  sed -i 's/--max-hold 3h/--max-hold 100ms/' script
  tells 124 'backup' bash script
  redis srv flushall
}

@test "once a day: another host does not run it again until somebody takes the success back" {
  block '--once-per day daily-report'
  cp report.sh fine
  printf '#!/bin/sh\nexit 3\n' >report.sh
  run -3 bash script
  mv fine report.sh
  follow script
  follow script
  [[ -z $output && -z $stderr && $(<calls) == 'report.sh under daily-report' ]]
  block 'release --forget daily-report'
  follow script
  assert_says 'once      per day succeeded'
  block '--once-per day daily-report'
  follow script
  [[ $(wc -l <calls) == 2 ]]
  redis srv flushall
}

@test "migrate once for each release: the others wait, and go on when it has succeeded" {
  printf '#!/bin/sh\necho ran >>calls; until [ -e go ]; do sleep 0.1; done\n' >migrate.sh
  block '--once "$(cat commit)"'
  bash script 3>&- &
  first=$!
  wait_until test -e calls
  bash script 3>&- &
  second=$!
  wait_until queued database 1
  touch go
  wait "$first" "$second"
  [[ $(<calls) == ran ]]
  echo another >commit
  follow script
  [[ $(wc -l <calls) == 2 ]]
  redis srv flushall
}

@test "did it happen: 0 or 1, with one line" {
  block 'succeeded-within 26h daily-report'
  follow script
  [[ $output == $'daily-report: no success is known from the history or --once\ncall someone' ]]
  rlock run --once-per day daily-report -- true
  follow script
  [[ $output == 'daily-report: succeeded '* && $output != *call* ]]
  redis srv flushall
}

@test "only the newest deploy: the waiting one yields" {
  owner=$(rlock acquire deploy --lease 10m)
  block --replace-waiting
  bash script 2>older.err 3>&- &
  older=$!
  wait_until queued deploy 1
  bash script 3>&- &
  newer=$!
  exits "$older" 75
  [[ ! -e calls ]]
  rlock release deploy --owner "$owner"
  wait "$newer"
  [[ $(<calls) == 'deploy.sh under deploy' ]]
}

@test "a shell under the lock: the lock is free when the shell exits" {
  grep '^    rlock run .*-- bash$' "$BOOK" >script
  tells 0 'reason    Alice repairs the database' bash script <<<'rlock status deploy'
  [[ $(redis srv exists deploy) == 0 ]]
}

@test "a token of IAM: the keys that AWS publishes, the signatures of botocore; it logs in to a server that has it as a password" {
  local token=$TESTS_DIR/../packaging/examples/iam-token key part call
  export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY IAM_TIME=20260102T030405Z
  eval "$(sed -n '/^hex()/p; /^hmac()/,/^}/p' "$token")"
  key=$(printf 'AWS4%s' "$AWS_SECRET_ACCESS_KEY" | hex)
  for part in 20120215 us-east-1 iam aws4_request; do key=$(printf %s "$part" | hmac "$key"); done
  [[ $key == f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d ]]
  [[ $("$token" my-cluster ci us-east-1 memorydb) == *=5fdfaf72234006432b7ff36812141e2a60d17b71728933f4fcdbab88dde0801b ]]
  [[ $(AWS_SESSION_TOKEN='ab+/c==' "$token" my-cache ci eu-west-1) == *=7646cfc4bcdbc42a0679c8b917d324fd31617f89c657124d6d0e8a81802ef0bc ]]
  [[ $(RESOURCE_TYPE=ServerlessCache "$token" my-cache ci eu-west-1) == *=573e6d1c25aa6de0f5b312658d760aa2c51d2c14499531e5e8e98017004b1859 ]]
  part=$("$token" my-cache ci eu-west-1)
  [[ $part == my-cache/'?'Action=connect*=2072c342027389f440cdf32c24d6ea7778d65673cbf702e099ecd3b69ecae4ae ]]
  # What cannot make a valid token says so and prints none.
  ln -s "$(type -P false)" openssl
  for call in '"$0" my-cache ci' '"$0" "" ci r' '"$0" my:cache ci r' '"$0" my-cache "c i" r' '"$0" my-cache ci é' \
    'AWS_ACCESS_KEY_ID="" "$0" my-cache ci r' 'unset AWS_SECRET_ACCESS_KEY; "$0" my-cache ci r' \
    'AWS_SECRET_ACCESS_KEY=$(seq 50) "$0" my-cache ci r' 'PATH=/none /bin/sh "$0" my-cache ci r' 'PATH=.:$PATH "$0" my-cache ci r'; do
    run --separate-stderr sh -c "$call" "$token"
    [[ $status != 0 && -z $output && $stderr == *iam-token:* ]] || { echo "$call" && return 1; }
  done
  # The command in the document.
  call=$(sed -n 's,^password-command = ".*/\(iam-token .*\)"$,\1,p' "$TESTS_DIR/../docs/security.md")
  redis srv acl setuser ci on ">$part" '~*' '&*' +@all
  PATH=${token%/*}:$PATH run -0 rlock run --url "unix://ci@$srv_sock" --password-command "$call" deploy -- ./deploy.sh
  IAM_TIME=20260102T030406Z PATH=${token%/*}:$PATH run -77 rlock run --url "unix://ci@$srv_sock" --password-command "$call" deploy -- ./deploy.sh
  [[ $(<calls) == 'deploy.sh under deploy' ]]
  redis srv acl deluser ci
}

@test "every file that the cookbook names is an example" {
  for name in $(grep -oE '`[A-Za-z-]+(\.(sh|service|timer|yml|conf)|file|/)`' "$BOOK" | tr -d '`' | sort -u) crontab; do
    [[ -e $TESTS_DIR/../packaging/examples/$name ]] || { echo "$name" && return 1; }
  done
}

# witness.sh ID SECONDS RULE FILE...: a job that finds out which others run at the same time, and takes SECONDS.
#
#   alone    nobody else may be at any of the FILEs
#   beside   others at the FILE may only be `beside`, too
#   one-of   there must be a FILE left that nobody is at: at most so many jobs at once as there are files
#
#   named    nobody else may be at any of the resources in RLOCK_RESOURCE, and FILE is how many there must be
#
# It takes a flock(2) on them, at once or never, and keeps it: the kernel gives it back when the last process of the
# job has died, however that came, and not before. Writes to `log`: "begin ID TIME", "end ID TIME" and, of what must
# not be, "overlap ID TIME".
id=$1 seconds=$2 rule=$3
shift 3

note() { echo "$1 $id $EPOCHREALTIME" >>log; }
take() { exec {file}>>"$2" && flock -n "$1" "$file"; }

case $rule in
  alone) for name; do take -x "$name" || note overlap; done ;;
  beside) take -s "$1" || note overlap ;;
  named)
    # shellcheck disable=SC2086 # words
    set -- "$1" $RLOCK_RESOURCE
    (($# == $1 + 1)) || note overlap
    for name in "${@:2}"; do take -x "$name" || note overlap; done
    ;;
  one-of)
    # One after the other, because two that look at the same time could both miss a free file.
    exec {door}>>door
    flock "$door"
    for name; do take -x "$name" && break; done || note overlap
    exec {door}>&-
    ;;
esac
note begin
sleep "$seconds"
note end

# Nothing that others have written becomes a command to the CI system of a job that shows it.

load ../lib/server

# The runners look at whole lines, so parts of a command may come from several texts.
@test "no line of any output is a command to a CI system, whatever its texts are" {
  local seed=${CI_SEED:-1}
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  run -0 python3 "$TESTS_DIR/lib/ci_commands.py" "$srv_sock" "$seed" "${CI_ROUNDS:-6}"
  redis srv flushall >/dev/null
}

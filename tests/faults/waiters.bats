# Waiters and new holders are killed at random moments: nothing of them stays for longer than a lease.

load ../lib/server

# kill_some COUNT LONGEST_MS: starts COUNT times `rlock run x -- touch started-N`, eight at a time, and kills each with
# -9 or TERM after a random time.
kill_some() {
  local seed=${SEED:-$RANDOM}
  echo "# seed $seed" >&3
  python3 - "$RLOCK" "$1" "$2" "$seed" 3>&- <<'PYTHON'
import concurrent.futures, random, signal, subprocess, sys, time
rlock, count, longest, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
plan = [(n, random.uniform(0, longest / 1000), random.choice((signal.SIGKILL, signal.SIGTERM))) for n in range(count)]
def one(entry):
    number, wait, how = entry
    job = subprocess.Popen([rlock, "run", "-q", "--lease", "2s", "x", "--", "touch", f"started-{number}"])
    time.sleep(wait)
    job.send_signal(how)
    return job.wait(timeout=100), how
with concurrent.futures.ThreadPoolExecutor(8) as lanes:
    results = list(lanes.map(one, plan))
odd = [r for r in results if r[0] not in (0, -r[1])]
print(len(results), "killed,", sum(r[0] == 0 for r in results), "had ended before,", len(odd), "with another status")
sys.exit(bool(odd))
PYTHON
}

@test "100 waiters killed at random moments: no command is started, and nothing is left" {
  owner=$(rlock acquire x --lease 5m)
  run -0 kill_some 100 80
  echo "# $output" >&3
  [[ $output == '100 killed, 0 had ended before, 0 with another status' ]]
  redis srv hgetall x && compgen -G 'started-*' && return 1
  [[ $(redis srv hgetall x) == "$owner"$'\n1' ]]
  rlock release x --owner "$owner"
  run -0 rlock run -n x -- true
}

@test "100 jobs killed at random moments around the grant: the lock is free within a lease" {
  run -0 kill_some 100 12
  echo "# $output" >&3
  wait_until eval '[[ $(redis srv exists x) == 0 ]]'
  run -0 rlock run -n x -- true
}

#!/usr/bin/env bash
# Breaks one promise at a time in a copy of the tree and runs the tests that must notice. Prints the number of mutants
# that no test noticed.
#
#   bash tests/faults/mutants.sh            all (about an hour)
#   bash tests/faults/mutants.sh PATTERN    those whose name matches
#   bash tests/faults/mutants.sh --compile  only checks that each compiles (a quarter of an hour)
#   bash tests/faults/mutants.sh --texts    only checks that the texts to replace exist (seconds)
set -euo pipefail
cd "$(dirname "$0")/../.."
copy=$(mktemp -d /tmp/mutant.XXXX)
trap 'rm -rf "$copy"' EXIT
git clone -q . "$copy"
cd "$copy"
only=''
if [[ ${1:-} == --* ]]; then only=$1 && shift; fi
if [[ $only != --texts ]]; then
  cmake --preset release -G Ninja -DBUILD_TESTING=OFF >/dev/null
  cmake --build build --target rlock >/dev/null
fi
pattern=${1:-.}
unnoticed=0
# If a broken guard leaves a process running, that ends with its namespace.
contained=()
if unshare --pid --fork --mount-proc true 2>/dev/null; then contained=(unshare --pid --fork --kill-child --mount-proc); fi

# bats needs GNU parallel to run files in parallel.
side_by_side=()
if command -v parallel >/dev/null; then side_by_side=(-j 3 --no-parallelize-within-files); fi

# mutant NAME 'TESTS ...' FILE OLD NEW [FILE OLD NEW ...]
mutant() {
  local name=$1 tests=$2 noticed
  shift 2
  [[ $name =~ $pattern ]] || return 0
  [[ $only == --texts ]] || git checkout -q -- .
  while (($# > 0)); do
    [[ $(<"$1") == *"$2"* ]] || {
      echo "$name: $1 does not contain '$2'; fix this mutant"
      exit 1
    }
    [[ $only == --texts ]] || python3 - "$1" "$2" "$3" <<'PYTHON'
import sys
path, old, new = sys.argv[1:]
text = open(path).read()
open(path, "w").write(text.replace(old, new))
PYTHON
    shift 3
  done
  [[ $only != --texts ]] || return 0
  cmake --build build --target rlock >build.log || {
    tail -n 20 build.log
    echo "$name: does not compile; fix this mutant"
    exit 1
  }
  [[ -z $only ]] || return 0
  # shellcheck disable=SC2086 # several files
  noticed=$(RLOCK=$copy/build/rlock BATS_TEST_TIMEOUT=40 "${contained[@]}" bats "${side_by_side[@]}" $tests 2>/dev/null |
    grep -c '^not ok') || true
  echo "$name: noticed by $noticed tests"
  ((noticed > 0)) || unnoticed=$((unnoticed + 1))
}

mutant 'release.lua does not look at the owner' tests/lua/release.bats \
  lua/verb/release.lua 'local count = count_of(owner)' 'local count = count_of(owner) or 1'
mutant 'acquire.lua counts a resent request again' 'tests/lua/acquire.bats tests/faults/lost_reply.bats' \
  lua/verb/acquire.lua 'if count_of(owner) then' 'if count_of(owner) then set_count(owner, count_of(owner) + 1)'
mutant 'renew.lua renews any holder' tests/faults/loss.bats \
  lua/verb/renew.lua 'if not count_of(owner) then' "if redis.call('exists', lock) == 0 then"
mutant 'the token does not grow' 'tests/lua/token.bats tests/faults/exclusion.bats' \
  lua/part/grant.lua 'previous + 1 > now_us and text(previous + 1) or time[1] .. micros' 'text(previous)'
mutant 'the token is only the clock' tests/lua/token.bats \
  lua/part/grant.lua 'previous + 1 > now_us and text(previous + 1) or time[1] .. micros' 'text(now_us)'
mutant 'a key that could not be given a TTL stays forever' tests/lua/acquire_refused.bats \
  lua/part/limit.lua "    redis.call('set', key, '', 'px', 1)" ''
mutant 'the description of an earlier holder stays' tests/lua/acquire.bats \
  lua/part/grant.lua '    remove(description)' ''
mutant 'released before the tree is empty' tests/faults/guards.bats \
  src/run/life.cc '  stage_ = Stage::clearing_up;' '  tree_is_empty(event);'
mutant 'no guard keeps the deadline' tests/faults/loss.bats \
  src/run/life.cc 'ours && !lost() ? deadlines.terminate_at() : never' never \
  src/run/life.cc 'ours && force_ != Force::killing ? deadlines.kill_at() : never' never \
  src/run/frontend.cc 'if (timer_.set_for(shared)) return;' 'return timer_.set(TimePoint::max());'
mutant 'the frontend does not keep the deadline' 'tests/faults/guards.bats tests/faults/pauses.bats' \
  src/run/frontend.cc 'if (timer_.set_for(shared)) return;' 'return timer_.set(TimePoint::max());'
mutant 'the deadline counts from the reply' tests/faults/outage.bats \
  src/verbs/verbs.cc 'if (renewed) renewed->sent = sent;' 'if (renewed) renewed->sent = BootClock::now();'
mutant 'SIGTERM is sent a second late' tests/faults/outage.bats \
  src/run/life.cc '? deadlines.terminate_at() :' '? deadlines.terminate_at() + 1s :'
mutant 'the command does not die with the monitor' tests/faults/guards.bats \
  src/run/command.cc 'die_with(isolate ? getppid() : monitor);' ''
mutant 'nobody ends the tree of a dead monitor' tests/faults/guards.bats \
  src/run/frontend.cc '    termination.kill_all(BootClock::now());
    termination.go_on(BootClock::now());
    const std::string what' '    const std::string what' \
  src/run/frontend.cc '    see_through(termination);
    terminal_' '    terminal_' \
  src/run/command.cc 'die_with(isolate ? getppid() : monitor);' ''
mutant 'there is no second guard' tests/faults/guards.bats \
  src/run/event_loop.cc 'if (frontend_died) happen(Kind::frontend_died);' '' \
  src/run/event_loop.cc 'take_packets() == Received::nobody_there) happen(Kind::frontend_died);' 'take_packets() == Received::packet) return;'
mutant 'signals are passed on twice' tests/faults/guards.bats \
  src/run/frontend.cc 'if (unsent_ && send_packet' \
  'if (unsent_) send_packet(guards_.guard_socket(), *unsent_);
      if (unsent_ && send_packet'
mutant 'what the terminal has delivered is passed on' tests/cli/terminal.bats \
  src/run/signals.cc 'info.ssi_code == SI_KERNEL && of_terminals(number) && !alone' false
mutant 'a waiter that is interrupted starts its command' tests/faults/waiters.bats \
  src/run/frontend.cc 'if (signals.was_asked_to_end())' 'if (false)' \
  src/lock/wait.cc 'acquired = wait();' \
  'acquired = wait(); if (!acquired) acquired = Acquired{.outcome = Acquired::Outcome::granted, .hold = Hold{lock(), request_.owner, "x", "1", request_.lease, BootClock::now()}};'
mutant 'an acquire that was given up is not released' tests/faults/lost_reply.bats \
  src/lock/wait.cc '(queued_ || unknown)' queued_
mutant 'leftovers are left alone' 'tests/faults/guards.bats' \
  src/run/life.cc ' || plan_.leftovers == Leftovers::wait) return;' ') return;' \
  src/run/life.cc 'if (plan_.leftovers == Leftovers::ignore) return apply' 'if (true) return apply'
mutant 'guards keep the pipes of the command' tests/faults/signals.bats \
  src/run/inherited.cc 'for (const int fd : descriptors_) close(fd);' ''
mutant 'a server clock that runs ahead is not noticed' tests/faults/clock.bats \
  src/run/watchdog.cc 'std::max<milliseconds>(expected - found, 0ms)' 0ms
mutant 'the guard that cannot kill is killed itself' tests/faults/resources.bats \
  src/run/watchdog.h 'std::max(kill_at(), last_killing + kKillingCounts)' 'kill_at()'
mutant 'a stopped frontend has no stand-in' tests/faults/guards_at_work.bats \
  src/run/job_control.cc 'wake_in_need(frontend, shared, timer, monitor);' '_exit(0);'
mutant 'a process without its first thread counts as dead' tests/faults/guards_at_work.bats \
  src/run/tree.cc " && process.threads <= 1" ''
mutant 'killing reads the whole of /proc' tests/faults/trees.bats \
  src/run/tree.cc 'return access("/proc/thread-self/children", R_OK) == 0;' 'return false;'
mutant 'nobody records that killing continues' tests/faults/trees.bats \
  src/run/event_loop.cc 'shared.set_last_killing(BootClock::now());' ''
mutant 'a tree that keeps forking is reported as unkillable' tests/faults/trees.bats \
  src/run/termination.cc 'if (forking_) {' 'if (false) {'
mutant 'the processes of another /proc are taken for ours' tests/faults/trees.bats \
  src/run/tree.cc ' || name != pid' ''
mutant 'the end of a namespace is polled' tests/cli/isolate.bats \
  src/run/event_loop.cc 'if (unseen && job.leftovers == Leftovers::kill)' 'if (watched_.command.has_namespace())'
mutant 'a waiting process looks at the clock each second' tests/faults/guards_at_work.bats \
  src/base/wait.cc 'timer_pays && !timer && left > kShort' false
mutant 'the frontend wakes up for deadlines that have moved' tests/faults/guards_at_work.bats \
  src/run/event_loop.cc 'watched_.frontend.move_timer(shared);' ''
mutant 'warnings appear on a screen that a program draws' tests/cli/terminal.bats \
  src/base/log.cc 'holding = true;' ''
mutant 'the terminal keeps the modes of a killed command' tests/cli/terminal.bats \
  src/run/frontend.cc 'terminal_.restore();' ''
mutant 'the modes of a shell that has taken the terminal back are changed' tests/cli/terminal.bats \
  src/run/job_control.cc 'if (foreground == ours) ' ''
mutant 'rlock stops with SIGSTOP, regardless of what has stopped the command' tests/cli/terminal.bats \
  src/run/job_control.cc 'stop_by(signal);' 'raise(SIGSTOP);'
mutant 'messages wait for their reader' tests/faults/guards_at_work.bats \
  src/base/write_line.cc 'O_WRONLY | O_NONBLOCK' O_WRONLY \
  src/base/write_line.cc 'if (wait_for(to, POLLOUT, end) != WaitEnd::ready) return false;' ''
mutant 'processes from before the job are ended, too' tests/faults/guards_at_work.bats \
  src/run/guards.cc 'guards->children_ = children_so_far();' ''
mutant 'a Ctrl-C that comes before the command is lost' tests/cli/terminal.bats \
  src/run/frontend.cc 'unsent_ = Packet{' 'if (gone_) unsent_ = Packet{'
mutant 'a command starts after a Ctrl-C' tests/cli/terminal.bats \
  src/run/frontend.cc 'if (signals.was_asked_to_end())' 'if (false)'
mutant 'a Ctrl-C that comes before the guards is lost' tests/cli/terminal.bats \
  src/run/frontend.cc 'guards_.missed(signal->number)' false
mutant 'a Ctrl-C that comes as the command starts reaches it twice' tests/cli/terminal.bats \
  src/run/frontend.cc 'guards_.missed(signal->number)' '!gone_'
mutant 'without a thread there is no renewal' tests/faults/resources.bats \
  src/run/renewer.cc '  renew_once(watchdog_->deadlines().terminate_at());' ''
mutant 'signals that find no room are dropped' tests/faults/signals_at_edges.bats \
  src/run/guard_state.cc 'errno == EPIPE || errno == ECONNRESET ? Sent::nobody_there : Sent::no_room' 'Sent::nobody_there'
mutant 'guards that are ready keep the connections' tests/faults/ready.bats \
  src/run/guards.cc $'    if (ahead) client.disconnect();\n    disconnect();\n' ''
mutant 'dead guards are relied on' tests/faults/ready.bats \
  src/run/guards.cc 'return poll(&ended, 1, 0) == 0 && ' 'return '
mutant 'a Ctrl-Z of the waiter stops the command' tests/faults/ready.bats \
  src/run/event_loop.cc 'if (!watched_.command.status()) watched_.command.signal(SIGCONT);' ''
mutant 'the late variable never comes' tests/faults/ready.bats \
  src/run/guards.cc 'shared_->set_late_variable(job.command.late_variable);' ''
mutant 'a command that is killed before its start is a failed hook' tests/faults/ready.bats \
  src/run/life.cc 'settle(Gravity::ended, {JobEnd::Kind::system_refused, 0});' 'settle(Gravity::ended, {JobEnd::Kind::hook_failed, 0});'
mutant 'a dead waiter with guards stays in the queue' tests/faults/ready.bats \
  src/run/monitor.cc 'if (getppid() != frontend) release_unseen(context.client, context.job);' ''
mutant 'a hook is started for a job that has ended' tests/faults/ready.bats \
  src/run/life.cc '  if (command_ended_ || force_ != Force::calm) return call_off();
' '  if (hook_ != Hook::none && (command_ended_ || force_ != Force::calm)) return call_off();
'
mutant 'a waiter that was stopped is woken' tests/faults/ready.bats \
  src/run/monitor.cc '    watched = std::unexpected(end.error());  // the command' '    kill(frontend.pid, SIGCONT), watched = std::unexpected(end.error());  // the command'
mutant 'an orphaned group looks controlled by a shell' 'tests/faults/groups.bats tests/cli/terminal.bats' \
  src/run/monitor.cc 'setsid();' 'setpgid(0, 0);'
mutant 'orphans in a namespace make an orphaned group look controlled by a shell' tests/faults/groups.bats \
  src/run/isolation.cc 'setsid();' 'setpgid(0, 0);'
mutant 'a stopped monitor sleeps on when the frontend is killed' tests/faults/groups.bats \
  src/run/monitor.cc 'prctl(PR_SET_PDEATHSIG, SIGCONT);' ''
mutant 'a group is never controlled by a shell' tests/cli/terminal.bats \
  src/run/tree.cc 'getsid(pid) == session) return false;' 'false) return false;'
mutant 'no guards are forked ahead' tests/faults/ready.bats \
  src/lock/wait.cc 'if (!policy_.at_front) break;' 'break;'
mutant 'guards that were ready stay' tests/faults/ready.bats \
  src/run/guards.cc 'if (monitor_ < 0 || status_) return;' 'return;' \
  src/run/event_loop.cc 'take_packets() == Received::nobody_there) happen(Kind::frontend_died);' 'take_packets() == Received::packet) return;' \
  src/run/event_loop.cc 'if (frontend_died) happen(Kind::frontend_died);' ''
mutant 'a keeper is not waited for' tests/cli/for_pid.bats \
  src/run/keeper.cc 'if (said == kReady) return keeper;' 'return keeper;'
mutant 'the command is started although the gate should stay closed' 'tests/cli/hooks.bats' \
  src/run/event_loop.cc 'watched_.command.close_gate();' 'watched_.command.open_gate();'
mutant 'a release after a lost reply is not known to be one' 'tests/faults/lost_reply.bats tests/lua/release.bats' \
  lua/verb/release.lua "if remember_for ~= '0' then" 'if false then'
mutant 'a connection that the server has closed is trusted' tests/faults/loss.bats \
  src/redis/connections.cc 'auto silent = connection->expect_silence();' 'Result<void> silent;'
mutant 'a lease that ran out during the release is a loss' tests/faults/loss.bats \
  src/verbs/verbs.cc 'return answered >= ends_at && ' 'return false && answered >= ends_at && '
mutant 'a later holder of the lock does not matter' tests/faults/loss.bats \
  src/verbs/verbs.cc '&& released.token == hold.token' ''
mutant 'nothing is renewed' tests/faults/exclusion.bats \
  src/run/renewer.cc '== WaitEnd::deadline) {' '== WaitEnd::deadline && false) {'
mutant 'a lock lost without notice is not reported' tests/faults/loss.bats \
  src/run/release.cc 'BootClock::now())) return true;' 'BootClock::now())) return false;'
mutant 'waiters are not woken' tests/lua/release.bats \
  lua/part/publish.lua "return redis.pcall(kSharded and 'spublish' or 'publish', to, what)" 'return 0'
mutant 'a waiter that is dead is given the lock' 'tests/lua/queue.bats tests/cli/queue.bats' \
  lua/part/queue.lua "return type(heard) == 'table' or heard > 0" 'return true'
mutant 'newcomers overtake waiters' 'tests/lua/queue.bats tests/cli/queue.bats' \
  lua/verb/acquire.lua 'hand_over(wait and owner or nil)' '(function() if wait then return hand_over(owner) end end)()'
mutant 'a waiter is not told that the lock is its own' 'tests/lua/queue.bats tests/cli/queue.bats' \
  lua/part/handoff.lua "tell(first, 'granted', waiter)" true
mutant 'all waiters are woken' tests/cli/queue.bats \
  src/lock/waiter_life.cc 'const bool first = found_.ahead == 0;' 'const bool first = true;'
mutant 'nobody becomes the first waiter when the first has left' 'tests/lua/queue.bats tests/cli/queue.bats' \
  lua/part/queue.lua 'while front and front ~= known do' 'while false do'
mutant 'a lost place is not taken again' 'tests/lua/queue.bats tests/cli/queue.bats' \
  src/lock/waiter_life.cc 'if (!found_.place.empty()) plan_.queueing.place = found_.place;' ''
mutant 'foreign waiters starve' tests/lua/queue.bats \
  lua/part/hand_off.lua 'if payload and not open and' 'if false and'
mutant 'fair waiters starve' tests/lua/fair.bats \
  lua/part/handoff.lua "if not id then" 'if true then'
mutant 'a fair waiter that is dead is waited for' tests/lua/fair.bats \
  lua/part/fair.lua 'tonumber(alive_until) > now' true
mutant 'one call does all the work at once' tests/lua/bounded.bats \
  lua/part/queue.lua 'return done <= kAtOnce' 'return true'
mutant 'work that a call had no time for is never done' tests/lua/bounded.bats \
  lua/verb/release.lua 'pcall(go_on)' ''
mutant 'some readers are taken for all of them' tests/lua/bounded.bats \
  lua/layout/read_write.lua "return living, dead, cursor == '0'" 'return living, dead, true'
mutant 'a writer gets in beside readers' 'tests/lua/read_write.bats tests/cli/shared.bats' \
  lua/layout/read_write.lua 'return #living == 0 and not somebody_reads(living, dead, all)' 'return true'
mutant 'dead readers are waited for' 'tests/lua/read_write.bats' \
  lua/layout/read_write.lua 'if left > 0 then' 'if true then'
mutant 'readers overtake a waiting writer' 'tests/lua/read_write.bats tests/cli/shared.bats' \
  lua/verb/acquire.lua 'if not wait and not first_waiter() and available(mode) then' 'if not wait and available(mode) then'
mutant 'there is always a free slot' 'tests/lua/semaphore.bats tests/cli/shared.bats' \
  lua/layout/semaphore.lua "return tonumber(redis.call('get', lock)) > 0" 'return true'
mutant 'slots of the dead do not come back' tests/lua/semaphore.bats \
  lua/layout/semaphore.lua 'tonumber(first_end) <= now' false
mutant 'any number of slots is accepted' 'tests/lua/semaphore.bats tests/cli/shared.bats' \
  lua/layout/semaphore.lua 'if slots == wanted then' 'if true then'
mutant 'a hold that was never counted frees the lock' tests/lua/release.bats \
  lua/verb/release.lua "(described or count == 1 and hold ~= 'hold:' .. string.match(owner, '^[^:]*'))" described
mutant 'a released hold is still there when the release is sent again' tests/lua/release.bats \
  lua/verb/release.lua "    redis.call('hdel', description, hold)" ''
mutant 'a kept hold is still there when the release is sent again' tests/lua/release.bats \
  lua/verb/release.lua "description, hold, 'control'" "description, 'control'"
mutant 'a turn of others in the future never ends' tests/lua/untrusted.bats \
  lua/part/handoff.lua 'return began and began <= now and math.max(began + kOthersTurn - now, 0)' \
  'return began and math.max(math.min(began, now) + kOthersTurn - now, 0)'
mutant 'leftover permits prove a semaphore' tests/lua/kind.bats \
  lua/part/string_kind.lua 'local proven = permits_of_it() or' "local proven = redis.call('exists', permits) == 1 or"
mutant 'one lock of several is enough' tests/cli/several.bats \
  src/lock/acquire_all.cc 'if (acquired.outcome != Acquired::Outcome::granted) return Taken{{}, i, std::move(acquired)};' \
  'if (acquired.outcome != Acquired::Outcome::granted) break;'
mutant 'locks are not released if the next one is not granted' tests/cli/several.bats \
  src/lock/acquire_all.cc 'auto released = verbs_.release(ReleaseRequest{hold.lock, hold.owner, hold.id}, soon); !released' 'Result<void> released; !released'
mutant 'held locks are not renewed while others are waited for' tests/cli/several.bats \
  src/lock/acquire_all.cc 'Result<void>{} : keep(false);' 'Result<void>{} : Result<void>{};'
mutant 'only the first lock of several is renewed' tests/cli/several.bats \
  src/run/renewer.cc 'client_->renew(holds_,' 'client_->renew(holds_.first(1),'

# A quorum.
mutant 'a minority is a majority' 'tests/cli/quorum.bats' \
  src/lock/tally.h 'return voters / 2 + 1' 'return (voters + 1) / 2 - 1'
mutant 'a server that was just restarted votes' 'tests/cli/quorum.bats' \
  src/lock/voters.cc 'if (now >= counts_at) return {};' 'return {};'
mutant 'a server with another run id votes at once' 'tests/cli/quorum.bats' \
  src/lock/voters.cc 'const TimePoint since = another ? now : by_itself;' 'const TimePoint since = another ? now - 24h : by_itself;'
mutant 'a minority is not given back' 'tests/cli/quorum.bats' \
  src/lock/quorum_votes.cc 'if (granted || (!vote && vote.error().maybe_executed)) members_[i]->add_stray(asked_[name]);' \
  'if (granted || (!vote && vote.error().maybe_executed)) continue;'
mutant 'the token is not raised' 'tests/cli/quorum.bats' \
  src/lock/quorum_votes.cc 'RLOCK_TRY(raise_tokens(holds, until));' ''
mutant 'raise.lua lowers the token' 'tests/lua/raise.bats' \
  lua/verb/raise.lua 'if (known or 0) < tonumber(token) then' 'if known ~= tonumber(token) then'
mutant 'the validity counts from the answer' 'tests/cli/quorum.bats' \
  src/lock/tally.cc 'token, request.lease, sent}};' 'token, request.lease, BootClock::now()}};'
mutant 'a hold that a server has lost is not restored' 'tests/cli/quorum.bats' \
  src/lock/quorum_renew.cc '    restore();
    return all;' '    return all;'
mutant 'one answer that it is not ours is a loss' 'tests/cli/quorum.bats' \
  src/lock/quorum_renew.cc 'if (ballot.rejected()) return' 'if (ballot.no > 0) return'
mutant 'two addresses of one server have two votes' 'tests/cli/quorum.bats' \
  src/lock/voters.cc 'if (!same && !related) continue;' 'if (same || related || i > 0) continue;'

# A cluster.
mutant 'a cluster: a renewal probes a connection on which a reply is due' tests/faults/cluster_rounds.bats \
  src/redis/connections.cc 'if (!connection || is_due(connection)) return connection;' 'if (!connection) return connection;'
mutant 'a cluster: the end of the time hides the servers replies' tests/faults/cluster_rounds.bats \
  src/redis/exchange.cc 'if (again.empty() || until_.over()) return false;  // the replies say why' \
  'for (Sent* one : again) one->reply.reset();
  if (again.empty() || until_.over()) return false;'
mutant 'a cluster: a server that hangs is waited for, regardless of the others' tests/faults/cluster_rounds.bats \
  src/verbs/verbs.cc 'if (each[i] && each[i]->outcome != RenewOutcome::renewed)' \
  'if (std::ranges::all_of(each, [](const auto& one) { return one.has_value(); }) && each[i]->outcome != RenewOutcome::renewed)'
mutant 'a cluster: a renewal of another lock is an answer to a waiter' tests/faults/cluster_rounds.bats \
  src/lock/wait.cc '.strayed = strayed};' '.strayed = (static_cast<void>(on_held_(*answer_)), strayed && subscriber_->server() != client_.server())};'
mutant 'a cluster: replies to ASKING are not read' tests/faults/cluster_rounds.bats \
  src/redis/exchange.cc '    auto reply = connection->receive(until_);
    if (reply) reply = connection->receive(until_);' '    RLOCK_TRY(connection->receive(until_));
    auto reply = connection->receive(until_);'
mutant 'a cluster: all scripts are sent again' tests/faults/cluster_rounds.bats \
  src/verbs/script.cc 'return !one && wants_the_whole(one.error()); };
  for' 'return !one && wants_the_whole(one.error()); };
  if (std::any_of(results.begin(), results.end(), wanting)) {
    for (const Call& call : calls) as_a_whole.push_back(call.as_a_whole());
    return client.call_all(as_a_whole, until);
  }
  for'
mutant 'a cluster: the server that named a dead owner is asked again first' tests/cli/cluster.bats \
  src/redis/slot.cc 'if (teacher_) doubt(*teacher_);' ''
mutant 'a cluster: MOVED is ignored' 'tests/cli/cluster.bats tests/faults/cluster_rounds.bats' \
  src/redis/slot.cc 'known_.owner[static_cast<std::size_t>(redirection.slot)] = known_.index_of({host, ""});' ''
mutant 'a cluster: all keys are on one server' tests/cli/cluster_verbs.bats \
  src/redis/slot.cc 'return static_cast<int>(crc % kSlots);' 'return static_cast<int>(crc % 1);'
mutant 'a cluster: a server is known by its address, regardless of what it announces' tests/cli/cluster.bats \
  src/redis/slot.cc 'if (by_name && ' 'if (false && '
mutant 'Sentinels are not asked before a release' tests/faults/hung_master.bats \
  src/verbs/by_scripts.cc 'const std::string unsure = request.lease > 0ms ? follow_master(until) : "";' 'const std::string unsure;'
mutant 'Sentinels are not asked about a server that has granted a lock' tests/faults/hung_master.bats \
  src/lock/wait.cc 'if (standing && (*standing == Standing::master || *standing == Standing::by_few)) return acquired;' 'return acquired;'

# The epoch guard.
mutant 'newcomers are not held back' tests/faults/epoch.bats \
  lua/part/epoch.lua 'return math.max(left, 0), since, cause' 'return 0, since, cause'
mutant 'the guard forgets that a replaced master goes on granting locks' tests/faults/epoch.bats \
  src/verbs/epoch.h 'kReplacedMasterGrants = 10s' 'kReplacedMasterGrants = 0s'
mutant 'a life that did not last forgets the one before' tests/faults/epoch.bats \
  lua/part/epoch.lua 'served and 0 or before or kUnknownLease' '0'

echo "$unnoticed mutants unnoticed"
exit "$((unnoticed > 0))"

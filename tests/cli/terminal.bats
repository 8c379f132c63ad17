# A user at a terminal, with a shell that has job control, or without one: the same as without rlock.

load ../lib/server

setup() {
  export RLOCK_URL SOCKET=$srv_sock FOLDER=$BATS_TEST_TMPDIR
  RLOCK_URL=$(redis_url srv)
  redis srv flushall >/dev/null
}

at_terminal() { timeout -k 1 45 /usr/bin/python3 "$TESTS_DIR/lib/session.py" "$1"; }

@test "Ctrl-C ends the command and rlock, and the shell sees 130" { at_terminal ctrl_c; }
@test "each Ctrl-C reaches the command once" { at_terminal ctrl_c_once; }
@test "Ctrl-C between the grant and the start: the command is not started" { can_trace && at_terminal ctrl_c_before_the_command; }
@test "the same with guards that are slow to answer" { can_trace && at_terminal ctrl_c_before_the_command_slowly; }
@test "Ctrl-C between the grant and the guards: it reaches the command" { can_trace && at_terminal ctrl_c_before_the_guards; }
@test "Ctrl-C just as the command starts reaches it once" { can_trace && at_terminal ctrl_c_as_the_command_begins; }
@test "a hook uses the terminal like the command" { at_terminal hook_at_a_terminal; }
@test "so does the hook of a nested job" { at_terminal hook_of_a_nested_job; }
@test "Ctrl-C aborts a loop of the shell, as without rlock" { at_terminal ctrl_c_in_a_loop; }

@test "Ctrl-C while waiting: nothing is started" {
  owner=$(rlock acquire job --lease 1m)
  at_terminal ctrl_c_while_waiting
  rlock release job --owner "$owner"
}

@test "Ctrl-\\ ends the command and rlock, and the shell sees 131" { at_terminal ctrl_backslash; }
@test "a second Ctrl-C ends the grace of the leftovers" { at_terminal second_ctrl_c_ends_the_grace; }
@test "Ctrl-Z for longer than the lease, then fg: the lock is kept, and the job continues" { at_terminal ctrl_z_fg; }
@test "Ctrl-Z, bg, a read from the background stops it, then fg" { at_terminal ctrl_z_bg_fg; }
@test "fg continues a job that learned late of a stop that is over" { at_terminal a_stop_that_is_over; }
@test "a background job that reads the terminal is stopped, and continues with fg" { at_terminal background; }
@test "a shell as the command: its prompt, its job control, its status" { at_terminal a_shell_as_the_command; }
@test "a full-screen program, stopped and continued, leaves a sane terminal" { at_terminal full_screen; }
@test "messages that are not urgent wait until a program that draws on the terminal has ended" { at_terminal messages_while_somebody_draws; }
@test "a loss during a full-screen program is shown at once, and again after the program has ended" { at_terminal a_loss_while_somebody_draws; }
@test "a background job's loss is shown once at the prompt" { at_terminal a_loss_at_a_prompt; }
@test "otherwise messages are shown at once" { at_terminal held_back_only_while_somebody_draws; }
@test "74: the message comes while the program draws, and the terminal's modes are restored" { at_terminal modes_after_a_loss; }
@test "124: the terminal's modes are restored" { at_terminal modes_after_max_hold; }
@test "124, and the command was faster than the frontend: the terminal's modes are restored" { can_trace && at_terminal modes_of_a_command_that_is_faster; }
@test "74 because the monitor was killed: the terminal's modes are restored" { at_terminal modes_after_the_monitor_was_killed; }
@test "a shell is killed: the terminal's modes and foreground are restored" { at_terminal a_shell_that_was_killed; }
@test "a stopped job's lock is lost: the modes of the shell that reads a line stay" { at_terminal modes_of_others_are_left_alone; }
@test "a job whose output goes to a pager is stopped: the modes that the pager sets stay" { at_terminal modes_of_pagers_are_left_alone; }
@test "rlock stops with the signal that has stopped the command: the shell sees 148 after Ctrl-Z" { at_terminal stopped_by_the_same_signal; }
@test "rlock stops even where the kernel ignores SIGTSTP" { at_terminal stopped_where_the_kernel_stops_nobody; }
@test "a new window size reaches the command once" { at_terminal window_size; }
@test "the shell exits while the job is stopped: the job ends, and the lock is free" { at_terminal shell_goes_away; }
@test "the terminal closes: nothing of the tree is left, and the lock is free" { at_terminal terminal_closes; }

@test "Ctrl-Z at a terminal without a shell stops nothing, because nobody could continue it" { at_terminal ctrl_z_without_a_shell; }
@test "nor does it if a namespace has orphans" { needs_pid_namespaces && at_terminal ctrl_z_without_a_shell_isolated; }
@test "Ctrl-C at a terminal without a shell ends the job" { at_terminal ctrl_c_without_a_shell; }

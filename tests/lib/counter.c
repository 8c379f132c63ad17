// counter: says "ready", counts SIGINT and SIGTERM until SIGUSR1 comes, and prints their number.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t count, over;

static void take(int number) {
  if (number == SIGUSR1) {
    over = 1;
  } else {
    ++count;
    if (write(STDOUT_FILENO, "+", 1) != 1) over = 1;
  }
}

int main(void) {
  struct sigaction action = {.sa_handler = take};
  sigset_t held, before;
  sigemptyset(&held);
  for (int i = 0; i < 3; ++i) sigaddset(&held, (const int[]){SIGINT, SIGTERM, SIGUSR1}[i]);
  sigprocmask(SIG_BLOCK, &held, &before);
  for (int i = 0; i < 3; ++i) sigaction((const int[]){SIGINT, SIGTERM, SIGUSR1}[i], &action, NULL);
  if (write(STDOUT_FILENO, "ready", 5) != 5) return 1;
  while (!over) sigsuspend(&before);
  printf("=%d\n", (int)count);
  return 0;
}

// SPDX-License-Identifier: MIT
// holders PORT STEPS NUMBERS CONNECTIONS TURN once                     each holder has one turn, as fast as possible
// holders PORT STEPS NUMBERS CONNECTIONS TURN full SECONDS [anew]      turns one after another, as fast as possible
// holders PORT STEPS NUMBERS CONNECTIONS TURN evenly SECONDS EVERY LOST    a turn of each every EVERY seconds
//
//     cc -O2 -static -o holders holders.c
//
// Plays very many holders of locks for bench/scale, on connections to a port of 127.0.0.1, which they share evenly.
// STEPS is a file with what a holder sends in a turn: for each step a line "BYTES REPLIES WORD" and then the bytes, in
// which each
// "########" stands for the number of the holder and each "$$$$$$$$" for that of its turn. The last of the REPLIES must
// begin with WORD. NUMBERS is a file with the numbers of the holders. TURN is the number of the first turn.
//
// A connection sends a step when the one before is answered; only with "evenly", where a turn has one step, it sends
// each when it is due. With "anew", each turn has a connection of its own. LOST is the share of the connections that
// are lost each minute: closed right after a step was sent, so nobody knows whether it has arrived, opened again, and
// sent again.
//
// Prints "open" when all connections are, and begins when it reads a line. Then prints a JSON object: the turns, the
// replies that are wrong, the connections lost, the seconds; with "evenly" how many ms after they were due the replies
// came, and the least number after WORD, which for a renewal is what was left of the lease. Exits with 1 if a reply is
// wrong; the first one is on standard error.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kDigits = 8, kMostSteps = 4, kMostBytes = 4096, kUsage = 64, kNoServer = 69 };

struct step {
  char text[kMostBytes], word[32];
  int bytes, replies;
};
// Its holders are its own number, that plus the number of connections, and so on. Each has its turn, and then the first
// again.
struct connection {
  int fd, have, replies;  // bytes of replies that were read, and replies of the current step
  long sent, answered;    // steps
  char in[kMostBytes];
};

static struct step steps[kMostSteps];
static struct connection* connections;
static int port, poller, step_count, holder_count, connection_count, first_turn, *numbers;
static int anew, evenly;  // the modes
static double every, *late;
static long turns, wrong, lost, least = -1;

static void fail(const char* what) {
  perror(what);
  exit(kNoServer);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static long holders_of(long connection) {
  return holder_count / connection_count + (connection < holder_count % connection_count);
}

static void open_connection(struct connection* it) {
  const struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  // No port waits for a minute after the end of its connection.
  const struct linger none = {.l_onoff = 1, .l_linger = 0};
  const int on = 1;
  it->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (it->fd < 0 || connect(it->fd, (const struct sockaddr*)&to, sizeof to) != 0) fail("connect");
  setsockopt(it->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  setsockopt(it->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = it};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, it->fd, &event) != 0) fail("epoll_ctl");
  it->have = it->replies = 0;
}

static void fill_in(char* text, int bytes, char mark, int number) {
  char marks[kDigits + 1] = "", digits[kDigits + 1];
  memset(marks, mark, kDigits);
  snprintf(digits, sizeof digits, "%0*d", kDigits, number);
  for (char *at = text, *end = text + bytes; (at = memmem(at, end - at, marks, kDigits)) != NULL;)
    memcpy(at, digits, kDigits);
}

// Sends a step, of which the connection counts from 0.
static void send_step(struct connection* it, long which) {
  const long mine = it - connections, turn = which / step_count, of = holders_of(mine);
  const struct step* step = &steps[which % step_count];
  char text[kMostBytes];
  memcpy(text, step->text, step->bytes);
  fill_in(text, step->bytes, '#', numbers[mine + turn % of * connection_count]);
  fill_in(text, step->bytes, '$', step_count > 1 ? first_turn + turn / of : first_turn);
  if (send(it->fd, text, step->bytes, MSG_NOSIGNAL) != step->bytes) fail("send");
}

static void send_next(struct connection* it) { send_step(it, it->sent++); }

static void lose(struct connection* it) {
  close(it->fd);
  ++lost;
  open_connection(it);
  for (long which = it->answered; which < it->sent; ++which) send_step(it, which);
}

// The bytes of the first reply, 0 if it is not complete.
static int whole(const char* text, int have) {
  int at = 0;
  for (int left = 1; left > 0; --left) {
    const char* end = memchr(text + at, '\n', have - at);
    if (end == NULL) return 0;
    const int number = atoi(text + at + 1);
    if (text[at] == '*' && number > 0) left += number;
    at = end + 1 - text + (text[at] == '$' && number >= 0 ? number + 2 : 0);
    if (at > have) return 0;
  }
  return at;
}

// `counts`: whether the number after the word counts.
static void check(const char* reply, int bytes, const char* word, int counts) {
  const char *at = reply, *end = reply + bytes;
  while (*at == '*' || *at == '$') at = (const char*)memchr(at, '\n', end - at) + 1;
  at += *at == ':' || *at == '+';
  const int length = strlen(word);
  if (end - at < length || memcmp(at, word, length) != 0) {
    if (wrong++ == 0) fprintf(stderr, "holders: the reply is not %s: %.*s\n", word, bytes, reply);
    return;
  }
  at += length;
  if (counts && end - at > 3 && at[2] == ':' && (least < 0 || atol(at + 3) < least)) least = atol(at + 3);
}

// A step has been answered.
static void answered(struct connection* it, double time) {
  const long turn = it->answered / step_count, mine = it - connections, of = holders_of(mine);
  it->replies = 0;
  if (++it->answered % step_count != 0) return;
  const double place = mine + turn % of * connection_count;
  if (evenly) late[turns] = time - every * (turn / of + place / holder_count);
  ++turns;
}

static void read_replies(struct connection* it, double start) {
  const int got = recv(it->fd, it->in + it->have, sizeof it->in - it->have, 0);
  if (got <= 0) fail("recv");
  it->have += got;
  for (int bytes; it->answered < it->sent && (bytes = whole(it->in, it->have)) > 0;) {
    const struct step* step = &steps[it->answered % step_count];
    if (++it->replies == step->replies) {
      check(it->in, bytes, step->word, it->answered / step_count >= holders_of(it - connections));
      answered(it, now() - start);
    }
    memmove(it->in, it->in + bytes, it->have -= bytes);
  }
}

// Waits for replies, for this many seconds at most, and reads them. `after` is called for each connection that has
// some.
static void wait_for_replies(double seconds, double start, void (*after)(struct connection*)) {
  struct epoll_event events[256];
  const struct timespec most = {.tv_sec = seconds, .tv_nsec = (seconds - (long)seconds) * 1e9};
  const int count = epoll_pwait2(poller, events, 256, &most, NULL);
  for (int i = 0; i < count; ++i) {
    read_replies(events[i].data.ptr, start);
    if (after != NULL) after(events[i].data.ptr);
  }
}

static void play_evenly(double start, double seconds, double lost_per_minute) {
  const long total = seconds / every * holder_count;
  const double between_losses = 60 / (lost_per_minute * connection_count);
  double next_loss = between_losses;
  late = calloc(total, sizeof *late);
  for (long next = 0; turns < total;) {
    const double time = now() - start;
    for (; next < total && every * next / holder_count <= time; ++next) {
      struct connection* it = &connections[next % holder_count % connection_count];
      send_next(it);
      if (time < next_loss) continue;
      lose(it);
      next_loss += between_losses;
    }
    const double due = next < total ? every * next / holder_count - (now() - start) : 1;
    wait_for_replies(due > 0 ? due : 0, start, NULL);
  }
}

static double stop_at;  // of "full"; 0: after one turn of each holder
static long working;    // connections that have not stopped

static void go_on(struct connection* it) {
  if (it->answered < it->sent) return;
  if (it->answered % step_count == 0) {
    if (stop_at > 0 ? now() >= stop_at : it->answered / step_count == holders_of(it - connections)) {
      --working;
      return;
    }
    if (anew) {
      close(it->fd);
      open_connection(it);
    }
  }
  send_next(it);
}

static void play_fully(double start) {
  working = connection_count;
  for (long i = 0; i < connection_count; ++i) send_next(&connections[i]);
  while (working > 0) wait_for_replies(1, start, go_on);
}

static int by_value(const void* left, const void* right) {
  return (*(const double*)left > *(const double*)right) - (*(const double*)left < *(const double*)right);
}

static void load(const char* steps_path, const char* numbers_path) {
  FILE *file = fopen(steps_path, "r"), *list = fopen(numbers_path, "r");
  if (file == NULL || list == NULL) fail("open");
  for (struct step* it = steps; fscanf(file, "%d %d %31s", &it->bytes, &it->replies, it->word) == 3; ++it) {
    fgetc(file);
    if (++step_count == kMostSteps || it->bytes > kMostBytes ||
        fread(it->text, 1, it->bytes, file) != (size_t)it->bytes)
      exit(kUsage);
  }
  numbers = malloc(sizeof *numbers);
  while (fscanf(list, "%d", &numbers[holder_count]) == 1)
    numbers = realloc(numbers, (++holder_count + 1) * sizeof *numbers);
  fclose(file);
  fclose(list);
}

int main(int count, char** arguments) {
  if (count < 7) return kUsage;
  const char* mode = arguments[6];
  evenly = strcmp(mode, "evenly") == 0;
  if (count < (evenly ? 10 : strcmp(mode, "full") == 0 ? 8 : 7)) return kUsage;
  const double seconds = count > 7 ? atof(arguments[7]) : 0;
  anew = !evenly && count > 8;
  every = evenly ? atof(arguments[8]) : 0;
  port = atoi(arguments[1]);
  load(arguments[2], arguments[3]);
  connection_count = atoi(arguments[4]) < holder_count ? atoi(arguments[4]) : holder_count;
  first_turn = atoi(arguments[5]);
  if (connection_count < 1 || step_count < 1 || (evenly && step_count > 1)) return kUsage;

  struct rlimit files = {0, 0};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  prctl(PR_SET_TIMERSLACK, 1);
  poller = epoll_create1(0);
  connections = calloc(connection_count, sizeof *connections);
  for (int i = 0; i < connection_count; ++i) open_connection(&connections[i]);

  puts("open");
  fflush(stdout);
  getchar();

  const double start = now();
  if (evenly) {
    play_evenly(start, seconds, atof(arguments[9]));
  } else {
    stop_at = seconds > 0 ? start + seconds : 0;
    play_fully(start);
  }
  printf("{\"turns\": %ld, \"wrong\": %ld, \"lost\": %ld, \"seconds\": %f", turns, wrong, lost, now() - start);
  if (evenly && turns > 0) {
    qsort(late, turns, sizeof *late, by_value);
    printf(", \"late_p50_ms\": %f, \"late_p99_ms\": %f, \"late_worst_ms\": %f, \"least\": %ld", 1e3 * late[turns / 2],
           1e3 * late[turns * 99 / 100], 1e3 * late[turns - 1], least);
  }
  puts("}");
  fflush(stdout);
  getchar();
  return wrong > 0;
}

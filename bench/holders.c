// SPDX-License-Identifier: MIT
// holders PORT STEPS NUMBERS CONNECTIONS TURN SECONDS                as fast as possible; 0 s: one turn of each holder
// holders PORT STEPS NUMBERS CONNECTIONS TURN SECONDS reconnect      the same, with a connection for each turn
// holders PORT STEPS NUMBERS CONNECTIONS TURN SECONDS EVERY LOST     each holder has a turn every EVERY seconds
//
//     cc -O2 -static -o holders holders.c
//
// For bench/scale: plays very many holders of locks, which share connections to a port of 127.0.0.1.
//
// STEPS is a file with what a holder sends in a turn: for each step a line "BYTES REPLIES WORD", followed by the bytes.
// "########" in them stands for the number of the holder, "~~~~~~~~" for that of its turn, if a turn has several steps.
// The last of the REPLIES must begin with WORD. NUMBERS is a file with the numbers of the holders (int), and TURN the
// number of the first turn.
//
// A connection sends each step when the previous one has been answered, or, with EVERY, when it is due; a turn has one
// step then. LOST is the share of the connections that are lost per minute: closed right after a step was sent, so that
// nobody knows whether it has arrived, and opened again to repeat the step.
//
// Prints "open" when all connections are open, and waits for a line. Then prints a JSON object: turns, wrong replies,
// lost connections, seconds; with EVERY also how many ms after they were due the replies came, and the least number
// after WORD, which is what was left of the lease before a renewal. Then waits for another line. Exits with 1 if a
// reply was wrong; standard error has the first one.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  kDigits = 8,
  kMostSteps = 4,
  kMostBytes = 4096,
  kBacklog = 256,
  kOfOneAddress = 8192,
  kUsage = 64,
  kNoServer = 69
};

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

static struct step steps[kMostSteps + 1];  // one more, to notice that there are too many
static struct connection* connections;
static int port, poller, step_count, holder_count, connection_count, first_turn, *numbers;
static int reconnects;
static double start, seconds, every, lost_per_minute, *late;  // every: 0: as fast as possible
static long turns, wrong, lost, working, least = -1;          // working: connections that have not stopped

static void fail(const char* what) {
  perror(what);
  exit(kNoServer);
}

// Since `start`.
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9 - start;
}

static long holders_of(long connection) {
  return holder_count / connection_count + (connection < holder_count % connection_count);
}

static void open_connection(struct connection* it) {
  const struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  // No port waits for a minute after the end of its connection.
  const struct linger none = {.l_onoff = 1, .l_linger = 0};
  // Each address of ours has 28,000 ports; the kernel finds a free one fast while less than half of them are in use.
  const int on = 1, address = INADDR_LOOPBACK + (it - connections) / kOfOneAddress;
  const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
  it->fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(it->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  if (it->fd < 0 || bind(it->fd, (const struct sockaddr*)&from, sizeof from) != 0 ||
      connect(it->fd, (const struct sockaddr*)&to, sizeof to) != 0)
    fail("connect");
  setsockopt(it->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  setsockopt(it->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = it};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, it->fd, &event) != 0) fail("epoll_ctl");
  it->have = it->replies = 0;
}

// Waits until the server has accepted this connection and those before.
static void ping(int fd) {
  char reply[7];
  if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6 || recv(fd, reply, sizeof reply, MSG_WAITALL) != sizeof reply ||
      memcmp(reply, "+PONG\r\n", sizeof reply) != 0)
    fail("ping");
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
  fill_in(text, step->bytes, '~', step_count > 1 ? first_turn + turn / of : first_turn);
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

// A number that is not negative, as cmsgpack packs it; -1: it is anything else.
static long unpacked(const unsigned char* at, const unsigned char* end) {
  const int bytes = *at >= 0xcc && *at <= 0xce ? 1 << (*at - 0xcc) : 0;
  if (bytes == 0 || end - at <= bytes) return *at < 0x80 ? *at : -1;
  long number = 0;
  for (int i = 1; i <= bytes; ++i) number = number << 8 | at[i];
  return number;
}

// `counts`: whether what was left of the lease counts, the field `left` of a reply in MessagePack.
static void check(const char* reply, int bytes, const char* word, int counts) {
  if (memmem(reply, bytes, word, strlen(word)) == NULL) {
    if (wrong++ == 0) fprintf(stderr, "holders: the reply is not %s: %.*s\n", word, bytes, reply);
    return;
  }
  const char* left = counts ? memmem(reply, bytes, "\xa4left", 5) : NULL;
  const long number = left ? unpacked((const unsigned char*)left + 5, (const unsigned char*)reply + bytes) : -1;
  if (number >= 0 && (least < 0 || number < least)) least = number;
}

static void step_is_answered(struct connection* it, const char* reply, int bytes) {
  const long turn = it->answered / step_count, mine = it - connections, of = holders_of(mine);
  check(reply, bytes, steps[it->answered % step_count].word, turn >= of);
  it->replies = 0;
  if (++it->answered % step_count != 0) return;
  const double place = mine + turn % of * connection_count;
  if (late != NULL) late[turns] = now() - every * (turn / of + place / holder_count);
  ++turns;
}

static void read_replies(struct connection* it) {
  const int got = recv(it->fd, it->in + it->have, sizeof it->in - it->have, 0);
  if (got == 0) errno = ECONNRESET;
  if (got <= 0) fail("recv");
  it->have += got;
  for (int bytes; it->answered < it->sent && (bytes = whole(it->in, it->have)) > 0;) {
    if (++it->replies == steps[it->answered % step_count].replies) step_is_answered(it, it->in, bytes);
    memmove(it->in, it->in + bytes, it->have -= bytes);
  }
}

// Waits for replies, for this many seconds at most, and reads them. Calls `after` for each connection that has some.
static void wait_for_replies(double most, void (*after)(struct connection*)) {
  struct epoll_event events[256];
  const struct timespec time = {.tv_sec = most, .tv_nsec = (most - (long)most) * 1e9};
  const int count = epoll_pwait2(poller, events, 256, &time, NULL);
  if (count < 0 && errno != EINTR) fail("epoll_pwait2");
  for (int i = 0; i < count; ++i) {
    read_replies(events[i].data.ptr);
    if (after != NULL) after(events[i].data.ptr);
  }
}

static void play_evenly(void) {
  const long total = seconds / every * holder_count;
  const double between_losses = 60 / (lost_per_minute * connection_count);
  double next_loss = between_losses;
  late = calloc(total, sizeof *late);
  for (long next = 0; turns < total;) {
    for (; next < total && every * next / holder_count <= now(); ++next) {
      struct connection* it = &connections[next % holder_count % connection_count];
      send_next(it);
      if (now() < next_loss) continue;
      lose(it);
      next_loss += between_losses;
    }
    const double due = next < total ? every * next / holder_count - now() : 1;
    wait_for_replies(due > 0 ? due : 0, NULL);
  }
}

static void go_on(struct connection* it) {
  if (it->answered < it->sent) return;
  if (it->answered % step_count == 0) {
    if (seconds > 0 ? now() >= seconds : it->answered / step_count == holders_of(it - connections)) {
      --working;
      return;
    }
    if (reconnects) {
      close(it->fd);
      open_connection(it);
    }
  }
  send_next(it);
}

static void play_fully(void) {
  working = connection_count;
  for (long i = 0; i < connection_count; ++i) send_next(&connections[i]);
  while (working > 0) wait_for_replies(1, go_on);
}

static int by_value(const void* left, const void* right) {
  return (*(const double*)left > *(const double*)right) - (*(const double*)left < *(const double*)right);
}

static void load(const char* steps_path, const char* numbers_path) {
  FILE *file = fopen(steps_path, "r"), *list = fopen(numbers_path, "r");
  if (file == NULL || list == NULL) fail("open");
  for (struct step* it = steps; fscanf(file, "%d %d %31s", &it->bytes, &it->replies, it->word) == 3; ++it) {
    fgetc(file);
    if (++step_count > kMostSteps || it->bytes > kMostBytes ||
        fread(it->text, 1, it->bytes, file) != (size_t)it->bytes)
      exit(kUsage);
  }
  fseek(list, 0, SEEK_END);
  holder_count = ftell(list) / sizeof *numbers;
  rewind(list);
  numbers = calloc(holder_count, sizeof *numbers);
  if (fread(numbers, sizeof *numbers, holder_count, list) != (size_t)holder_count) fail("read");
}

int main(int count, char** arguments) {
  if (count < 7) return kUsage;
  port = atoi(arguments[1]);
  load(arguments[2], arguments[3]);
  connection_count = atoi(arguments[4]) < holder_count ? atoi(arguments[4]) : holder_count;
  first_turn = atoi(arguments[5]);
  seconds = atof(arguments[6]);
  reconnects = count == 8;
  every = count > 8 ? atof(arguments[7]) : 0;
  lost_per_minute = count > 8 ? atof(arguments[8]) : 0;
  if (connection_count < 1 || step_count < 1 || (every > 0 && step_count > 1)) return kUsage;

  prctl(PR_SET_TIMERSLACK, 1);
  poller = epoll_create1(0);
  connections = calloc(connection_count, sizeof *connections);
  for (int i = 0; i < connection_count; ++i) {
    open_connection(&connections[i]);
    if (i % kBacklog == 0) ping(connections[i].fd);
  }
  puts("open");
  fflush(stdout);
  getchar();

  start = now();
  every > 0 ? play_evenly() : play_fully();
  printf("{\"turns\": %ld, \"wrong\": %ld, \"lost\": %ld, \"seconds\": %f", turns, wrong, lost, now());
  if (late != NULL) {
    qsort(late, turns, sizeof *late, by_value);
    printf(", \"late_p50_ms\": %f, \"late_p99_ms\": %f, \"late_worst_ms\": %f, \"least\": %ld", 1e3 * late[turns / 2],
           1e3 * late[turns * 99 / 100], 1e3 * late[turns - 1], least);
  }
  puts("}");
  fflush(stdout);
  getchar();
  return wrong > 0;
}

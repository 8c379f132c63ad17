// SPDX-License-Identifier: MIT
// redis-cli for what tests ask most, `redis-cli -s SOCKET COMMAND...`. It prints the same, and takes a third of the time,
// because it loads no libraries. For everything else it becomes the real one.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int is_one_of(const char *word, const char *const *words) {
  while (*words && strcasecmp(word, *words) != 0) ++words;
  return *words != NULL;
}

static void print(const redisReply *reply) {
  if (reply->type == REDIS_REPLY_INTEGER) printf("%lld", reply->integer);
  if (reply->str) fwrite(reply->str, 1, reply->len, stdout);
  if (reply->type == REDIS_REPLY_ERROR) putchar('\n');
  for (size_t i = 0; i < reply->elements; ++i) {
    if (i > 0) putchar('\n');
    print(reply->element[i]);
  }
}

int main(int count, char **arguments) {
  static const char *const others[] = {"auth", "debug", "hello", "latency", "memory", "monitor", "psubscribe", "psync",
    "quit", "shutdown", "ssubscribe", "subscribe", "sync", NULL};
  static const char *const of_lines[] = {"info", "list", "nodes", NULL};  // the texts of these end their last line
  if (count < 4 || strcmp(arguments[1], "-s") != 0 || arguments[3][0] == '-' || is_one_of(arguments[3], others) ||
      getenv("REDISCLI_AUTH"))
    return execv(REDIS_CLI, arguments), 127;
  redisContext *server = redisConnectUnix(arguments[2]);
  if (!server || server->err)
    return fprintf(stderr, "Could not connect to Redis at %s: %s\n", arguments[2], server ? server->errstr : "-"), 1;
  redisReply *reply = redisCommandArgv(server, count - 3, (const char **)arguments + 3, NULL);
  if (!reply) return fprintf(stderr, "Error: %s\n", server->errstr), 1;
  print(reply);
  int in_family = strcasecmp(arguments[3], "client") == 0 || strcasecmp(arguments[3], "cluster") == 0;
  if (!is_one_of(arguments[in_family && count > 4 ? 4 : 3], of_lines)) putchar('\n');
  return fflush(stdout) != 0;
}

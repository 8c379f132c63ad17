// SPDX-License-Identifier: MIT
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Lets a shell script use Redisson's locks: commands come in on standard input, one a line, and the replies go
 * out on standard output, one JSON object a line. ../README.md describes both.
 */
public final class Driver {

    /** A command: gets the lock's name and what follows it on the line. What it returns is the reply's "value". */
    private interface Verb {
        Object run(String name, String[] args) throws Exception;
    }

    private static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final RedissonClient redisson;
    private final Map<String, Verb> verbs = new HashMap<>();
    /** Locks belong to threads, so each label has a thread of its own, which runs its commands in order. */
    private final Map<String, ExecutorService> threads = new HashMap<>();

    private Driver(RedissonClient redisson) {
        this.redisson = redisson;
        lockVerbs("", redisson::getLock);
        lockVerbs("fair-", redisson::getFairLock);
        lockVerbs("read-", name -> redisson.getReadWriteLock(name).readLock());
        lockVerbs("write-", name -> redisson.getReadWriteLock(name).writeLock());
        verbs.put("fenced-lock", (name, args) -> redisson.getFencedLock(name).lockAndGetToken());
        verbs.put("token", (name, args) -> redisson.getFencedLock(name).getToken());
        permitVerbs();
    }

    /** Every RLock has these. */
    private void lockVerbs(String prefix, Function<String, RLock> named) {
        verbs.put(prefix + "lock", (name, args) -> {
            named.apply(name).lock();
            return null;
        });
        verbs.put(prefix + "lock-lease", (name, args) -> {
            named.apply(name).lock(Long.parseLong(args[0]), TimeUnit.MILLISECONDS);
            return null;
        });
        verbs.put(prefix + "trylock", (name, args) ->
                named.apply(name).tryLock(Long.parseLong(args[0]), Long.parseLong(args[1]), TimeUnit.MILLISECONDS));
        verbs.put(prefix + "unlock", (name, args) -> {
            named.apply(name).unlock();
            return null;
        });
        verbs.put(prefix + "force-unlock", (name, args) -> named.apply(name).forceUnlock());
        verbs.put(prefix + "is-locked", (name, args) -> named.apply(name).isLocked());
        verbs.put(prefix + "ttl", (name, args) -> named.apply(name).remainTimeToLive());
        verbs.put(prefix + "holds", (name, args) -> named.apply(name).getHoldCount());
    }

    private void permitVerbs() {
        verbs.put("try-set-permits", (name, args) -> permits(name).trySetPermits(Integer.parseInt(args[0])));
        verbs.put("set-permits", (name, args) -> {
            permits(name).setPermits(Integer.parseInt(args[0]));
            return null;
        });
        verbs.put("acquire-permit", (name, args) -> args.length == 0 ? permits(name).acquire()
                : permits(name).acquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS));
        verbs.put("try-acquire-permit", (name, args) ->
                permits(name).tryAcquire(Long.parseLong(args[0]), Long.parseLong(args[1]), TimeUnit.MILLISECONDS));
        verbs.put("release-permit", (name, args) -> {
            permits(name).release(args[0]);
            return null;
        });
        verbs.put("try-release-permit", (name, args) -> permits(name).tryRelease(args[0]));
        verbs.put("available-permits", (name, args) -> permits(name).availablePermits());
        verbs.put("all-permits", (name, args) -> permits(name).getPermits());
    }

    private RPermitExpirableSemaphore permits(String name) {
        return redisson.getPermitExpirableSemaphore(name);
    }

    private void readCommands() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null && !line.equals("quit")) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[0], label -> Executors.newSingleThreadExecutor())
                    .execute(() -> print(run(words)));
        }
    }

    private Map<String, Object> run(String[] words) {
        Map<String, Object> reply = new LinkedHashMap<>();
        long start = System.nanoTime();
        try {
            reply.put("thread", words[0]);
            reply.put("command", words[1]);
            reply.put("name", words[2]);
            reply.put("owner", redisson.getId() + ":" + Thread.currentThread().getId());
            Verb verb = verbs.get(words[1]);
            if (verb == null) {
                throw new IllegalArgumentException("unknown command");
            }
            reply.put("value", verb.run(words[2], Arrays.copyOfRange(words, 3, words.length)));
            reply.put("ok", true);
        } catch (Exception e) {
            reply.put("ok", false);
            // Redisson wraps some of what it throws.
            Throwable thrown = e.getCause() == null ? e : e.getCause();
            reply.put("error", thrown.getClass().getSimpleName());
            reply.put("message", thrown.getMessage());
        }
        reply.put("waited_ms", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
        return reply;
    }

    private static synchronized void print(Map<String, Object> reply) {
        out.println(reply.entrySet().stream()
                .map(member -> json(member.getKey()) + ":" + json(member.getValue()))
                .collect(Collectors.joining(",", "{", "}")));
    }

    private static String json(Object value) {
        if (!(value instanceof String text)) {
            return String.valueOf(value);
        }
        return text.chars()
                .mapToObj(c -> c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : Character.toString(c))
                .collect(Collectors.joining("", "\"", "\""));
    }

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress(args[0]).setConnectionMinimumIdleSize(1);
        if (args.length > 1) {
            config.setLockWatchdogTimeout(Long.parseLong(args[1]));
        }
        Driver driver = new Driver(Redisson.create(config));
        print(Map.of("event", "ready"));
        driver.readCommands();
        // Nothing is released, as in a crash: a thread may be waiting for a lock that nobody will give back.
        System.exit(0);
    }
}

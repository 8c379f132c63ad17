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
import java.util.stream.Collectors;
import org.redisson.Redisson;
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
        verbs.put("lock", this::lock);
        verbs.put("lock-lease", this::lockLease);
        verbs.put("trylock", this::tryLock);
        verbs.put("unlock", this::unlock);
        verbs.put("force-unlock", (name, args) -> redisson.getLock(name).forceUnlock());
        verbs.put("is-locked", (name, args) -> redisson.getLock(name).isLocked());
        verbs.put("ttl", (name, args) -> redisson.getLock(name).remainTimeToLive());
        verbs.put("fenced-lock", (name, args) -> redisson.getFencedLock(name).lockAndGetToken());
        verbs.put("token", (name, args) -> redisson.getFencedLock(name).getToken());
    }

    private Object lock(String name, String[] args) {
        redisson.getLock(name).lock();
        return null;
    }

    private Object lockLease(String name, String[] args) {
        redisson.getLock(name).lock(Long.parseLong(args[0]), TimeUnit.MILLISECONDS);
        return null;
    }

    private Object tryLock(String name, String[] args) throws InterruptedException {
        long wait = Long.parseLong(args[0]);
        long lease = Long.parseLong(args[1]);
        return redisson.getLock(name).tryLock(wait, lease, TimeUnit.MILLISECONDS);
    }

    private Object unlock(String name, String[] args) {
        redisson.getLock(name).unlock();
        return null;
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
            reply.put("error", e.getClass().getSimpleName());
            reply.put("message", e.getMessage());
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
        Driver driver = new Driver(Redisson.create(config));
        print(Map.of("event", "ready"));
        driver.readCommands();
        // Nothing is released, as in a crash: a thread may be waiting for a lock that nobody will give back.
        System.exit(0);
    }
}

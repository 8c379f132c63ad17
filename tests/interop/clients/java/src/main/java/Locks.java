// SPDX-License-Identifier: MIT
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** Locks of Spring and ShedLock behind the line protocol of tests/interop/README.md: Locks LIBRARY redis://HOST:PORT */
public final class Locks {

    /** One lock of a library, for one owner. */
    private interface OneLock {
        boolean attempt() throws Exception;

        void await() throws Exception;

        boolean extend(Duration time) throws Exception;

        void unlock() throws Exception;
    }

    private static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final String library;
    private final LettuceConnectionFactory connections;
    /** A registry has one time for all of its locks. */
    private final Map<Long, RedisLockRegistry> registries = new HashMap<>();
    private OneLock current;

    private Locks(String library, URI address) {
        this.library = library;
        connections = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration(address.getHost(), address.getPort()));
        connections.afterPropertiesSet();
        connections.start();
    }

    private OneLock of(String name, long ms) {
        if (library.equals("shedlock")) {
            return new Shed(name, Duration.ofMillis(ms), new RedisLockProvider(connections));
        }
        return new Spring(name, registries.computeIfAbsent(ms, time -> {
            RedisLockRegistry registry = new RedisLockRegistry(connections, "REGISTRY", time);
            if (library.equals("spring-pubsub")) {
                registry.setRedisLockType(RedisLockType.PUB_SUB_LOCK);
            }
            return registry;
        }));
    }

    private record Spring(String name, RedisLockRegistry registry) implements OneLock {
        private Lock lock() {
            return registry.obtain(name);
        }

        @Override
        public boolean attempt() {
            return lock().tryLock();
        }

        @Override
        public void await() {
            lock().lock();
        }

        /** By the time of the registry, which is that of the lock. */
        @Override
        public boolean extend(Duration time) {
            registry.renewLock(name);
            return true;
        }

        @Override
        public void unlock() {
            lock().unlock();
        }
    }

    private static final class Shed implements OneLock {
        private final String name;
        private final Duration time;
        private final LockProvider provider;
        private SimpleLock lock;

        Shed(String name, Duration time, LockProvider provider) {
            this.name = name;
            this.time = time;
            this.provider = provider;
        }

        @Override
        public boolean attempt() {
            return keep(provider.lock(new LockConfiguration(Instant.now(), name, time, Duration.ZERO)));
        }

        /** It does not wait: a scheduler calls it again. */
        @Override
        public void await() throws InterruptedException {
            while (!attempt()) {
                Thread.sleep(50);
            }
        }

        @Override
        public boolean extend(Duration time) {
            return keep(lock.extend(time, Duration.ZERO));
        }

        @Override
        public void unlock() {
            lock.unlock();
        }

        private boolean keep(Optional<SimpleLock> found) {
            found.ifPresent(one -> lock = one);
            return found.isPresent();
        }
    }

    private boolean perform(String command, String[] words) throws Exception {
        switch (command) {
            case "try", "lock" -> {
                OneLock lock = of(words[0], Long.parseLong(words[1]));
                if (command.equals("lock")) {
                    lock.await();
                } else if (!lock.attempt()) {
                    return false;
                }
                current = lock;
                return true;
            }
            case "extend" -> {
                return current.extend(Duration.ofMillis(Long.parseLong(words[0])));
            }
            case "unlock" -> {
                current.unlock();
                return true;
            }
            case "sections" -> {
                return sections(words[0], Integer.parseInt(words[1]), Path.of(words[2]), Long.parseLong(words[3]));
            }
            default -> throw new UnsupportedOperationException(command);
        }
    }

    private boolean sections(String name, int count, Path file, long ms) throws Exception {
        for (int i = 0; i < count; i++) {
            OneLock lock = of(name, ms);
            lock.await();
            int number = Integer.parseInt(Files.readString(file).strip());
            Thread.sleep(1);
            Files.writeString(file, Integer.toString(number + 1));
            lock.unlock();
        }
        return true;
    }

    /** As its file is called: name-VERSION.jar. */
    private String version() {
        Class<?> type = library.equals("shedlock") ? RedisLockProvider.class : RedisLockRegistry.class;
        return type.getProtectionDomain().getCodeSource().getLocation().getPath().replaceFirst(".*-(.*)\\.jar", "$1");
    }

    private static String quoted(String text) {
        return '"' + text.replaceAll("[\\\\\"\\p{Cntrl}]", " ") + '"';
    }

    public static void main(String[] args) throws Exception {
        Locks locks = new Locks(args[0], URI.create(args[1]));
        out.println("{\"event\":\"ready\",\"version\":" + quoted(locks.version()) + "}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null && !line.equals("quit")) {
            String[] words = line.split(" ");
            boolean ok = false;
            String error = "";
            try {
                ok = locks.perform(words[0], Arrays.copyOfRange(words, 1, words.length));
            } catch (Exception thrown) {
                // Any exception of a library is its answer.
                error = thrown.toString();
            }
            out.println("{\"command\":" + quoted(words[0]) + ",\"ok\":" + ok + ",\"error\":" + quoted(error)
                    + ",\"at\":" + System.currentTimeMillis() + "}");
        }
        // Nothing is released, as in a crash.
        System.exit(0);
    }
}

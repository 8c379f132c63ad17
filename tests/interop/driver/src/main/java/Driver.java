// SPDX-License-Identifier: MIT
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Lets a shell script use Redisson's locks:
 *
 *   java -cp 'target/classes:target/lib/*' Driver ADDRESS [MS]
 *
 * ADDRESS is redis://HOST:PORT, redis+cluster://HOST:PORT,... or redis+sentinel://HOST:PORT,.../MASTER, or several of
 * these in one argument, separated by blanks, for a RedissonRedLock. A lock that its owner does not renew lasts for
 * MS; the default is 30 s. The driver prints {"event":"ready","version":...}, and then reads commands from standard
 * input, one a line, with words separated by one blank:
 *
 *   THREAD COMMAND NAME [ARG ...]
 *
 * A label THREAD stands for one Java thread, the owner of its locks, which runs its commands in order. The commands are
 *
 *   lock, lock-lease NAME MS, trylock NAME WAITMS LEASEMS (LEASEMS -1: renewed), unlock, force-unlock, is-locked, ttl,
 *   holds (of this thread)
 *   sections NAME COUNT FILE       adds 1 to the number in FILE under the lock, COUNT times
 *   compete NAME MS LOG END        takes the lock for MS over and over until a file END exists, and writes into LOG how
 *                                  long it waited each time, in ms
 *   all of these with a prefix     fair-, spin-, nonreentrant- or nonreentrant-fair-; read- or write-, for a read-write
 *                                  lock; multi- or multi-write-, where NAME is several names separated by commas; red-,
 *                                  on all addresses; group-, where NAME is GROUP,VALUE,...; mapped- or mapped-fair-, of
 *                                  a client whose name mapper puts app: before each name
 *   fenced-lock, token, mapped-fenced-lock
 *   permit-lock, which returns the permit's id, permit-lock-lease NAME MS, permit-trylock NAME WAITMS LEASEMS,
 *   permit-unlock NAME [ID] (without ID, this thread's last one), try-release-permit NAME ID, try-set-permits NAME N,
 *   set-permits NAME N, available-permits (free ones), all-permits
 *   set-semaphore NAME N, try-semaphore, set-latch NAME N, count-down, which are not locks
 *   is-waiting THREAD              whether that thread sleeps until a message wakes it. Before that, it may miss one.
 *
 * The driver answers each with one JSON object on a line: thread, command, name, owner (the thread's field in the
 * lock), ok, value (Redisson's result), or error and message (its exception), and waited_ms. "quit" or the end of the
 * input ends the driver, which does not release anything. To add a command, add a verb to the table below.
 */
public final class Driver {

    /** A command: gets the lock's name and what follows it on the line. What it returns is the reply's "value". */
    private interface Verb {
        Object run(String name, String[] args) throws Exception;
    }

    private static final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** What the name mapper of the commands with "mapped-" puts before each name. */
    private static final String PREFIX = "app:";

    private final RedissonClient redisson;
    private RedissonClient mapped;
    private final Map<String, Verb> verbs = new HashMap<>();
    /** Locks belong to threads, so each label has a thread of its own, which runs its commands in order. */
    private final Map<String, ExecutorService> threads = new HashMap<>();
    /** The id of the last permit that the thread has asked for. */
    private final ThreadLocal<String> permit = ThreadLocal.withInitial(() -> "none");

    /** The first server has all locks but those of a RedLock, which are on all of them. */
    private Driver(List<String> addresses, String watchdog) throws Exception {
        List<RedissonClient> servers = new ArrayList<>();
        for (String address : addresses) {
            servers.add(Redisson.create(config(address, watchdog)));
        }
        redisson = servers.get(0);
        lockVerbs("mapped-", name -> mapped(addresses.get(0), watchdog).getLock(name));
        lockVerbs("mapped-fair-", name -> mapped(addresses.get(0), watchdog).getFairLock(name));
        verbs.put("mapped-fenced-lock", (name, args) ->
                newer(newer(mapped(addresses.get(0), watchdog), "getFencedLock", name), "lockAndGetToken"));
        lockVerbs("", redisson::getLock);
        lockVerbs("fair-", redisson::getFairLock);
        lockVerbs("spin-", redisson::getSpinLock);
        lockVerbs("nonreentrant-", name -> (RLock) newer(redisson, "getNonReentrantLock", name));
        lockVerbs("nonreentrant-fair-", name -> (RLock) newer(redisson, "getNonReentrantFairLock", name));
        lockVerbs("read-", name -> redisson.getReadWriteLock(name).readLock());
        lockVerbs("write-", name -> redisson.getReadWriteLock(name).writeLock());
        lockVerbs("multi-", names -> new RedissonMultiLock(Arrays.stream(names.split(","))
                .map(redisson::getLock).toArray(RLock[]::new)));
        lockVerbs("multi-write-", names -> new RedissonMultiLock(Arrays.stream(names.split(","))
                .map(name -> redisson.getReadWriteLock(name).writeLock()).toArray(RLock[]::new)));
        lockVerbs("red-", name -> new RedissonRedLock(servers.stream()
                .map(server -> server.getLock(name)).toArray(RLock[]::new)));
        lockVerbs("group-", names -> {
            List<Object> values = new ArrayList<>(List.of(names.split(",")));
            return (RLock) newer(redisson, "getMultiLock", values.remove(0), values);
        });
        verbs.put("fenced-lock", (name, args) -> newer(newer(redisson, "getFencedLock", name), "lockAndGetToken"));
        verbs.put("token", (name, args) -> newer(newer(redisson, "getFencedLock", name), "getToken"));
        verbs.put("is-waiting", (label, args) -> isWaiting(label));
        permitVerbs();
        numberVerbs();
    }

    /** A second client, with a NameMapper. That interface has moved to another package, so it is not named here. */
    private synchronized RedissonClient mapped(String address, String watchdog) {
        if (mapped == null) {
            Config config = config(address, watchdog);
            Object server = config.useSingleServer();
            try {
                Method set = Arrays.stream(server.getClass().getMethods())
                        .filter(method -> method.getName().equals("setNameMapper")).findFirst().orElseThrow();
                Class<?> type = set.getParameterTypes()[0];
                set.invoke(server, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                        (proxy, method, args) -> method.getName().equals("map") ? PREFIX + args[0]
                                : args[0].toString().substring(PREFIX.length())));
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
            mapped = Redisson.create(config);
        }
        return mapped;
    }

    /** Calls a method that old versions of Redisson, for which this is compiled, too, do not have. */
    private static Object newer(Object object, String method, Object... args) {
        for (Class<?> type : object.getClass().getInterfaces()) {
            for (Method found : type.getMethods()) {
                if (found.getName().equals(method) && takes(found, args)) {
                    try {
                        return found.invoke(object, args);
                    } catch (ReflectiveOperationException e) {
                        throw new IllegalStateException(e.getCause() == null ? e : e.getCause());
                    }
                }
            }
        }
        throw new UnsupportedOperationException("this version of Redisson has no " + method);
    }

    private static boolean takes(Method method, Object[] args) {
        Class<?>[] types = method.getParameterTypes();
        return types.length == args.length
                && IntStream.range(0, args.length).allMatch(i -> types[i].isInstance(args[i]) || types[i] == int.class);
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
        verbs.put(prefix + "sections", (name, args) ->
                Work.sections(named.apply(name), Integer.parseInt(args[0]), Path.of(args[1])));
        verbs.put(prefix + "compete", (name, args) ->
                Work.compete(named.apply(name), Long.parseLong(args[0]), Path.of(args[1]), Path.of(args[2])));
    }

    /** Redisson's objects that are numbers, and no locks. */
    private void numberVerbs() {
        verbs.put("set-semaphore", (name, args) -> redisson.getSemaphore(name).trySetPermits(Integer.parseInt(args[0])));
        verbs.put("try-semaphore", (name, args) -> redisson.getSemaphore(name).tryAcquire());
        verbs.put("set-latch", (name, args) -> redisson.getCountDownLatch(name).trySetCount(Long.parseLong(args[0])));
        verbs.put("count-down", (name, args) -> {
            redisson.getCountDownLatch(name).countDown();
            return redisson.getCountDownLatch(name).getCount();
        });
    }

    private void permitVerbs() {
        verbs.put("try-set-permits", (name, args) -> permits(name).trySetPermits(Integer.parseInt(args[0])));
        verbs.put("set-permits", (name, args) -> newer(permits(name), "setPermits", Integer.parseInt(args[0])));
        verbs.put("permit-lock", (name, args) -> own(permits(name).acquire()));
        verbs.put("permit-lock-lease", (name, args) ->
                own(permits(name).acquire(Long.parseLong(args[0]), TimeUnit.MILLISECONDS)));
        verbs.put("permit-trylock", (name, args) ->
                own(permits(name).tryAcquire(Long.parseLong(args[0]), Long.parseLong(args[1]), TimeUnit.MILLISECONDS)));
        verbs.put("permit-unlock", (name, args) -> {
            permits(name).release(args.length == 0 ? permit.get() : args[0]);
            return null;
        });
        verbs.put("try-release-permit", (name, args) -> permits(name).tryRelease(args[0]));
        verbs.put("available-permits", (name, args) -> permits(name).availablePermits());
        verbs.put("all-permits", (name, args) -> newer(permits(name), "getPermits"));
    }

    private Object own(String id) {
        permit.set(id);
        return id;
    }

    private RPermitExpirableSemaphore permits(String name) {
        return redisson.getPermitExpirableSemaphore(name);
    }

    private void readCommands() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null && !line.equals("quit")) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[0], label -> Executors.newSingleThreadExecutor(task -> new Thread(task, label)))
                    .execute(() -> print(run(words)));
        }
    }

    private static boolean isWaiting(String label) {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(entry -> entry.getKey().getName().equals(label))
                .map(entry -> Arrays.stream(entry.getValue()).map(StackTraceElement::getClassName).toList())
                .anyMatch(classes -> classes.contains(Semaphore.class.getName())
                        && classes.contains(LockSupport.class.getName()));
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

    /** ADDRESS: redis://HOST:PORT, redis+cluster://HOST:PORT,... or redis+sentinel://HOST:PORT,.../MASTER. */
    private static Config config(String address, String watchdog) {
        Config config = new Config();
        String[] hosts = address.replaceFirst(".*://", "").replaceFirst("/.*", "").split(",");
        String[] nodes = Arrays.stream(hosts).map("redis://"::concat).toArray(String[]::new);
        if (address.startsWith("redis+cluster:")) {
            config.useClusterServers().addNodeAddress(nodes).setMasterConnectionMinimumIdleSize(1)
                    .setSlaveConnectionMinimumIdleSize(1);
        } else if (address.startsWith("redis+sentinel:")) {
            config.useSentinelServers().addSentinelAddress(nodes)
                    .setMasterName(address.substring(address.lastIndexOf('/') + 1))
                    .setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
        } else {
            config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(1);
        }
        if (watchdog != null) {
            config.setLockWatchdogTimeout(Long.parseLong(watchdog));
        }
        // The usual codec of old versions does not run on a JDK of today; locks use none.
        config.setCodec(StringCodec.INSTANCE);
        return config;
    }

    public static void main(String[] args) throws Exception {
        String watchdog = args.length > 1 ? args[1] : null;
        Driver driver = new Driver(List.of(args[0].split(" ")), watchdog);
        Map<String, Object> ready = new LinkedHashMap<>();
        ready.put("event", "ready");
        ready.put("version", Redisson.class.getPackage().getImplementationVersion());
        print(ready);
        driver.readCommands();
        // Nothing is released, as in a crash: a thread may be waiting for a lock that nobody will give back.
        System.exit(0);
    }
}

// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.redisson.api.RLock;

/** What a thread does under a lock while others want it, too. */
final class Work {

    private Work() {
    }

    /** Adds 1 to the number in the file, so many times. Without the lock some would be lost. */
    static Object sections(RLock lock, int count, Path file) throws IOException, InterruptedException {
        for (int i = 0; i < count; i++) {
            lock.lock();
            try {
                int number = Integer.parseInt(Files.readString(file).strip());
                Thread.sleep(1);
                Files.writeString(file, Integer.toString(number + 1));
            } finally {
                lock.unlock();
            }
        }
        return count;
    }

    /** Takes the lock for so long again and again until the file `end` is there; writes into `log` how long each wait was. */
    static Object compete(RLock lock, long holdMs, Path log, Path end) throws IOException, InterruptedException {
        int grants = 0;
        while (!Files.exists(end)) {
            long asked = System.nanoTime();
            lock.lock();
            long waited = (System.nanoTime() - asked) / 1_000_000;
            try {
                Files.writeString(log, waited + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                grants++;
                Thread.sleep(holdMs);
            } finally {
                lock.unlock();
            }
        }
        return grants;
    }
}

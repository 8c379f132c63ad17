// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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

    /** Takes the lock again and again until the file is there. Returns "GRANTS LONGEST", the longest wait in ms. */
    static Object compete(RLock lock, Path end, long holdMs) throws InterruptedException {
        long longest = 0;
        int grants = 0;
        while (!Files.exists(end)) {
            long asked = System.nanoTime();
            lock.lock();
            longest = Math.max(longest, System.nanoTime() - asked);
            try {
                // The last one is granted when the others have gone: it counts for the wait alone.
                grants += Files.exists(end) ? 0 : 1;
                Thread.sleep(holdMs);
            } finally {
                lock.unlock();
            }
        }
        return grants + " " + longest / 1_000_000;
    }
}

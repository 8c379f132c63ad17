<?php
// Locks of PHP libraries behind the line protocol of tests/interop/README.md: php driver.php LIBRARY URL
// The libraries are packages of Debian and Ubuntu.

require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Symfony/Component/Lock/autoload.php';

const PACKAGES = ['laravel' => 'php-illuminate-cache', 'symfony' => 'php-symfony-lock'];
// The prefixes of an application that is called Laravel.
const DATABASE_PREFIX = 'laravel_database_', CACHE_PREFIX = 'laravel_cache';

// [host, port], as phpredis takes a Unix socket, too.
function address(string $url): array
{
    $parts = parse_url(str_replace('unix://', 'file://', $url));
    return isset($parts['port']) ? [$parts['host'], $parts['port']] : [$parts['path'], 0];
}

class Laravel
{
    private $lock;

    public function __construct(string $url, string $name, int $ttl, bool $prefixed = true)
    {
        [$host, $port] = address($url);
        $manager = new Illuminate\Redis\RedisManager(null, 'phpredis', [
            'options' => ['prefix' => $prefixed ? DATABASE_PREFIX : ''],
            'default' => ['host' => $host, 'port' => $port, 'database' => 0],
        ]);
        $store = new Illuminate\Cache\RedisStore($manager, $prefixed ? CACHE_PREFIX : '');
        $this->lock = $store->lock($name, max(1, intdiv($ttl, 1000)));
    }

    public function take(bool $waits): bool
    {
        return $waits ? $this->lock->block(PHP_INT_MAX >> 1) : $this->lock->get();
    }

    public function often(): void
    {
        $this->lock->betweenBlockedAttemptsSleepFor(50);
    }

    public function extend(int $ttl): bool
    {
        throw new Exception('it has none');
    }

    public function unlock(): bool
    {
        return $this->lock->release();
    }

    public function force(): bool
    {
        $this->lock->forceRelease();
        return true;
    }
}

class Symfony
{
    private $lock;

    public function __construct(string $url, string $name, int $ttl)
    {
        $redis = new Redis();
        $redis->connect(...address($url));
        $factory = new Symfony\Component\Lock\LockFactory(new Symfony\Component\Lock\Store\RedisStore($redis));
        $this->lock = $factory->createLock($name, $ttl / 1000);
    }

    public function take(bool $waits): bool
    {
        return $this->lock->acquire($waits);
    }

    public function often(): void
    {
    }

    public function read(): bool
    {
        return $this->lock->acquireRead();
    }

    public function extend(int $ttl): bool
    {
        $this->lock->refresh($ttl / 1000);
        return true;
    }

    public function unlock(): bool
    {
        $this->lock->release(); // without a result
        return true;
    }

    public function force(): bool
    {
        throw new Exception('it has none');
    }
}

function sections(string $name, int $count, string $file, int $ttl): bool
{
    global $class, $url;
    $lock = new $class($url, $name, $ttl, false);
    $lock->often();
    for ($i = 0; $i < $count; $i++) {
        $lock->take(true);
        $number = (int) file_get_contents($file);
        usleep(1000);
        file_put_contents($file, $number + 1);
        $lock->unlock();
    }
    return true;
}

function perform(string $command, array $words): bool
{
    global $class, $url, $current;
    switch ($command) {
        case 'try':
        case 'lock':
        case 'read':
            $lock = new $class($url, $words[0], (int) $words[1]);
            $taken = $command === 'read' ? $lock->read() : $lock->take($command === 'lock');
            if ($taken) {
                $current = $lock;
            }
            return $taken;
        case 'force':
            return (new $class($url, $words[0], 600000))->force();
        case 'sections':
            return sections($words[0], (int) $words[1], $words[2], (int) $words[3]);
        case 'extend':
            return $current->extend((int) $words[0]);
        default:
            return $current->unlock();
    }
}

function say(array $words): void
{
    echo json_encode($words), "\n";
}

[, $library, $url] = $argv;
$class = ucfirst($library);
$current = null;
say(['event' => 'ready', 'version' => strtok(shell_exec('dpkg-query -Wf \'${Version}\' ' . PACKAGES[$library]), '+-')]);
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    $command = array_shift($words);
    if ($command === 'quit') {
        break;
    }
    try {
        [$ok, $error] = [perform($command, $words), ''];
    } catch (Throwable $thrown) {
        [$ok, $error] = [false, get_class($thrown) . ': ' . $thrown->getMessage()];
    }
    say(['command' => $command, 'ok' => $ok, 'error' => $error, 'at' => microtime(true) * 1000]);
}

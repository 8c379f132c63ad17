// Locks of Node libraries behind the line protocol of tests/interop/README.md: node driver.js LIBRARY URL [URL ...]
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');
// They are installed elsewhere: this folder holds only what is committed.
const load = (name) => require(require.resolve(name, { paths: [process.env.NODE_CLIENTS || __dirname] }));
const Redis = load('ioredis');

const [library, ...urls] = process.argv.slice(2);
const servers = urls.map((url) => new Redis(url.replace(/^unix:\/\//, '')));
const FOR_EVER = 1e9;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// A lock as each library has it: take(waits) says whether it was taken, and throws what the library throws.
const redlock = (version) => (name, ttl) => {
  const module = load('redlock' + version);
  const Redlock = module.default || module;
  const manager = new Redlock(servers, { retryCount: 0 });
  manager.on(version === 4 ? 'clientError' : 'error', () => {});
  let lock;
  return {
    async take(waits) {
      // Each attempt by a call of its own: version 5 gives back what a minority has granted only after its last attempt.
      for (;;) {
        try {
          lock = await manager.acquire(version === 4 ? name : [name], ttl);
          return true;
        } catch (error) {
          if (!waits) throw error;
          await pause(100 + 200 * Math.random());
        }
      }
    },
    async extend(time) { lock = await manager.extend(lock, time); return true; },
    async unlock() { await (version === 4 ? lock.unlock() : manager.release(lock)); return true; },
  };
};
const libraries = {
  redlock4: redlock(4),
  redlock5: redlock(5),
  'ioredis-lock': (name, ttl) => {
    let lock;
    return {
      async take(waits) {
        lock = load('ioredis-lock').createLock(servers[0], { timeout: ttl, retries: waits ? FOR_EVER : 0, delay: 50 });
        await lock.acquire(name);
        return true;
      },
      async extend(time) { await lock.extend(time); return true; },
      async unlock() { await lock.release(); return true; },
    };
  },
  'redis-semaphore': (name, ttl) => {
    const { Mutex, RedlockMutex } = load('redis-semaphore');
    const made = (more) => {
      const options = { lockTimeout: ttl, refreshInterval: 0, ...more };
      return servers.length > 1 ? new RedlockMutex(servers, name, options) : new Mutex(servers[0], name, options);
    };
    let lock;
    return {
      async take(waits) {
        lock = made(waits ? { acquireTimeout: FOR_EVER, retryInterval: 10 } : { acquireAttemptsLimit: 1 });
        return lock.tryAcquire();
      },
      // It renews by itself; a time of its own has only a new Mutex with the same identifier.
      async extend(time) {
        const again = made({ lockTimeout: time, identifier: lock.identifier, acquiredExternally: true, acquireAttemptsLimit: 1 });
        const extended = await again.tryAcquire();
        if (extended) lock = again;
        return extended;
      },
      async unlock() { await lock.release(); return true; },
    };
  },
};

let current;

async function sections(name, count, file, ttl) {
  for (let i = 0; i < Number(count); i++) {
    const lock = libraries[library](name, Number(ttl));
    await lock.take(true);
    const number = Number(fs.readFileSync(file, 'utf8'));
    await pause(1);
    fs.writeFileSync(file, String(number + 1));
    await lock.unlock();
  }
  return true;
}

async function perform(command, words) {
  if (command === 'try' || command === 'lock') {
    const lock = libraries[library](words[0], Number(words[1]));
    const ok = await lock.take(command === 'lock');
    if (ok) current = lock;
    return ok;
  }
  if (command === 'sections') return sections(...words);
  if (command === 'force') throw new Error('it has none');
  return command === 'extend' ? current.extend(Number(words[0])) : current.unlock();
}

const say = (words) => process.stdout.write(JSON.stringify(words) + '\n');

async function main() {
  const manifest = path.join(process.env.NODE_CLIENTS || __dirname, 'node_modules', library, 'package.json');
  const version = JSON.parse(fs.readFileSync(manifest)).version.replace(/^v/, '');
  say({ event: 'ready', version });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.trim().split(/ +/);
    if (command === 'quit') break;
    let ok = false, error = '';
    try {
      ok = Boolean(await perform(command, words));
    } catch (thrown) {
      error = `${thrown.name}: ${thrown.message}`;
    }
    say({ command, ok, error, at: performance.timeOrigin + performance.now() });
  }
  process.exit(0);
}
main();

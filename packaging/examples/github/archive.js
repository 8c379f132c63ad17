// Gets the program from an archive of a release, for runners that do not have it. It needs node and tar.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { createHash } = require('crypto');
const { spawnSync } = require('child_process');
const { fail } = require('./rlock.js');

const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');

const download = async (address) => {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(120000) });
    if (answer.ok) return Buffer.from(await answer.arrayBuffer());
    return fail(`the archive cannot be downloaded: status ${answer.status}`, 69);
  } catch (error) {
    // The address may contain a password.
    return fail(`the archive cannot be downloaded: ${(error.cause || error).message.replaceAll(address, 'its address')}`, 69);
  }
};

// Later jobs of the same runner find it in the tool cache, if there is one. Other jobs can write there, so it is checked
// there as well.
const archive = async (address, sha256) => {
  const cache = process.env.RUNNER_TOOL_CACHE;
  const kept = cache ? path.join(cache, 'rlock', `${sha256}.tar.gz`) : '';
  try {
    const bytes = fs.readFileSync(kept);
    if (sum(bytes) === sha256) return bytes;
  } catch { /* not there */ }
  const bytes = await download(address);
  if (sum(bytes) !== sha256) fail(`the archive is not the one you meant: its SHA-256 is ${sum(bytes)}. Nothing was unpacked`, 76);
  if (!kept) return bytes;
  try {
    fs.mkdirSync(path.dirname(kept), { recursive: true });
    fs.writeFileSync(`${kept}.${process.pid}`, bytes, { flag: 'wx' });
    fs.renameSync(`${kept}.${process.pid}`, kept);
  } catch { /* the next job downloads it again */ }
  return bytes;
};

// Unpacks it into a folder of this job. Returns the program's path.
exports.unpack = async (address, sha256) => {
  if (!/^[0-9a-f]{64}$/.test(sha256)) fail('the input `archive` needs the input `sha256`: its checksum, 64 digits in lower case, as SHA256SUMS of the release has it', 64);
  const input = await archive(address, sha256);
  const folder = fs.mkdtempSync(path.join(process.env.RUNNER_TEMP || os.tmpdir(), 'rlock-'));
  const done = spawnSync('tar', ['-xzf', '-', '--strip-components=1', '-C', folder], { input, stdio: ['pipe', 'inherit', 'inherit'] });
  if (done.status !== 0) fail('the archive cannot be unpacked: is there tar, with gzip?', 71);
  return path.join(folder, 'bin', 'rlock');
};

// Runs rlock, and talks to the runner. It needs nothing but node itself.
'use strict';
const fs = require('fs');
const { spawnSync } = require('child_process');

// The runner gives the input `name` as INPUT_NAME.
exports.input = (name) => (process.env[`INPUT_${name.toUpperCase()}`] || '').trim();

// Messages of rlock go to the log. The address may contain a password, so it is not an argument, which `ps` would show.
exports.rlock = (args) => {
  const env = { ...process.env };
  const url = exports.input('url');
  if (url) env.RLOCK_URL = url;
  const done = spawnSync('rlock', args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  if (done.error) exports.fail(`rlock cannot be started (${done.error.code}): install it on the runner first`, 127);
  // A signal that ends rlock is a failure, too.
  return { status: done.status === null ? 1 : done.status, stdout: done.stdout };
};

// A line of text in a workflow command.
const escaped = (text) => text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A');

exports.fail = (message, status) => {
  process.stdout.write(`::error title=rlock::${escaped(message)}\n`);
  process.exit(status);
};

// GITHUB_OUTPUT and GITHUB_STATE name files with lines NAME=VALUE. None of our values has a line break: rlock refuses names
// with control characters, and owner ids and tokens have none. Returns why that failed, or ''. Without values, only tries.
exports.tell = (file, values) => {
  if (!process.env[file]) return `${file} is not set`;
  try {
    fs.appendFileSync(process.env[file], Object.entries(values).map(([name, value]) => `${name}=${value}\n`).join(''));
  } catch (error) {
    return `${file} cannot be written (${error.code})`;
  }
  return '';
};

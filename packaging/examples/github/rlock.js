// Runs rlock, and talks to the runner. It needs nothing but node itself.
'use strict';
const fs = require('fs');
const { spawnSync } = require('child_process');

// Set by main.js if it has unpacked an archive; post.js gets it as state.
exports.program = process.env.STATE_program || 'rlock';

// The runner gives the input `name` as INPUT_NAME.
exports.input = (name) => (process.env[`INPUT_${name.toUpperCase()}`] || '').trim();

// The address may contain a password, so it is not an argument, which `ps` would show.
const run = (args, stderr) => {
  const env = { ...process.env };
  const url = exports.input('url');
  if (url) env.RLOCK_URL = url;
  return spawnSync(exports.program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', stderr] });
};

// Messages of rlock go to the log. In what others have written, rlock escapes what would be a command to the runner.
exports.rlock = (args) => {
  const done = run(args, 'inherit');
  if (done.error) exports.fail(`rlock cannot be started (${done.error.code}): install it on the runner, or give an archive for its processor`, 127);
  // A signal that ends rlock is a failure, too.
  return { status: done.status === null ? 1 : done.status, stdout: done.stdout };
};

// Who holds the lock and who waits for it, as text; empty if the server cannot say.
exports.status = (name) => run(['status', '--', name], 'ignore').stdout || '';

// A line of text in a workflow command.
const escaped = (text) => text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A');

exports.fail = (message, status) => {
  process.stdout.write(`::error title=rlock::${escaped(message)}\n`);
  process.exit(status);
};

// Appends to the file of that variable. Returns why that failed, or ''. An empty text only tries.
exports.append = (file, text) => {
  if (!process.env[file]) return `${file} is not set`;
  try {
    fs.appendFileSync(process.env[file], text);
  } catch (error) {
    return `${file} cannot be written (${error.code})`;
  }
  return '';
};

// GITHUB_OUTPUT and GITHUB_STATE name files with lines NAME=VALUE. None of our values has a line break: rlock refuses names
// with control characters, owner ids and tokens have none, and the program's path is our own.
exports.tell = (file, values) => exports.append(file, Object.entries(values).map(([name, value]) => `${name}=${value}\n`).join(''));

// Adds to the job's summary. Others choose names and reasons, but every line of `rlock status` begins with a word or blanks
// of its own and none has a control character, so none ends the block. Older servers have no summary.
exports.summary = (what, title, status) => {
  const block = status && ` ${title}\n\n\`\`\`text\n${status.slice(0, 50000).trimEnd()}\n\`\`\``;
  return exports.append('GITHUB_STEP_SUMMARY', `${what}${block}\n`);
};

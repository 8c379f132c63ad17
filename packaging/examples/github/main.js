// Takes the lock. A keeper in the background renews it as long as our parent lives, the runner's process for this job.
'use strict';
const { input, rlock, fail, tell } = require('./rlock.js');

const name = input('name');
if (!name) fail('the input `name` is missing', 64);
// In a container job our parent is outside the container, and has no pid in it. The first process ends with the job.
const runner = process.ppid || 1;
const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run } = process.env;
const reason = input('reason') || (run ? `${server}/${repository}/actions/runs/${run}` : '');

// If the post step did not learn of the lock, it would stay as long as the runner lives.
let untold = tell('GITHUB_OUTPUT', {}) || tell('GITHUB_STATE', {});
if (untold) fail(`${untold}: no lock is taken`, 1);

const args = ['acquire', '--json', '--for-pid', String(runner)];
for (const option of ['wait', 'lease', 'slots']) if (input(option)) args.push(`--${option}`, input(option));
if (reason) args.push('--reason', reason);
const { status, stdout } = rlock([...args, '--', name]);
if (status === 75) fail(`${name}: not acquired: another job has it, and the wait is over`, status);
if (status !== 0) fail(`${name}: not acquired, status ${status}`, status);

const { owner, token } = JSON.parse(stdout);
// The state comes last: with it the post step releases the lock.
untold = tell('GITHUB_OUTPUT', { owner, token }) || tell('GITHUB_STATE', { name, owner });
if (untold) {
  rlock(['release', '--owner', owner, '--', name]);
  fail(`${untold}: the lock ${name} is released again`, 1);
}
process.stdout.write(`The job has the lock ${name}, fencing token ${token}\n`);

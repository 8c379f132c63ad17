// Takes the lock. A keeper in the background renews it as long as our parent lives, the runner's process for this job.
'use strict';
const path = require('path');
const runner = require('./rlock.js');
const { unpack } = require('./archive.js');
const { input, rlock, status, fail, append, tell, summary } = runner;

// The options of acquire that the inputs give.
const options = () => {
  // In a container job our parent is outside the container, and has no pid in it. The first process ends with the job.
  const given = ['--for-pid', String(process.ppid || 1)];
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: run } = process.env;
  const reason = input('reason') || (run ? `${server}/${repository}/actions/runs/${run}` : '');
  for (const option of ['wait', 'lease', 'slots', 'from']) if (input(option)) given.push(`--${option}`, input(option));
  return reason ? [...given, '--reason', reason] : given;
};

const main = async () => {
  const name = input('name');
  if (!name) fail('the input `name` is missing', 64);

  // If the post step did not learn of the lock, the lock would stay as long as the runner lives.
  let untold = tell('GITHUB_OUTPUT', {}) || tell('GITHUB_STATE', {});
  if (untold) fail(`${untold}: no lock is taken`, 1);

  if (input('archive')) {
    runner.program = await unpack(input('archive'), input('sha256'));
    append('GITHUB_PATH', `${path.dirname(runner.program)}\n`); // for the steps
  }

  const before = status(name), began = Date.now();
  const acquired = rlock(['acquire', '--json', ...options(), '--', name]);
  const waited = Math.round((Date.now() - began) / 1000);
  if (acquired.status !== 0) summary(`The job did not get its lock, after ${waited} s.`, 'Who has it now:', status(name));
  if (acquired.status === 75) fail(`${name}: not acquired: another job has it, and the wait is over`, 75);
  if (acquired.status !== 0) fail(`${name}: not acquired, status ${acquired.status}`, acquired.status);
  summary(`The job waited ${waited} s for its lock.`, 'When it began to wait:', before);

  const { owner, token, resources: [resource = ''] = [] } = JSON.parse(acquired.stdout);
  // The state comes last: with it the post step releases the lock.
  untold = tell('GITHUB_OUTPUT', { owner, token, resource }) || tell('GITHUB_STATE', { name, owner, program: runner.program });
  if (untold) {
    rlock(['release', '--owner', owner, '--', name]);
    fail(`${untold}: the lock ${name} was released`, 1);
  }
  // Without the name, which may come from somebody else: a line of the log can be a command to the runner.
  process.stdout.write(`The job has its lock, fencing token ${token}\n`);
};

main();

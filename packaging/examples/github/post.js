// Releases the lock after the last step of the job, whether or not the steps have failed.
'use strict';
const { rlock, status: who, fail, summary } = require('./rlock.js');

const { STATE_name: name, STATE_owner: owner } = process.env;
// Without an owner, main.js has not taken the lock.
if (owner) {
  const before = who(name);
  const { status } = rlock(['release', '--owner', owner, '--', name]);
  if (status === 76) {
    summary('The job lost its lock.', 'Who has it now:', before);
    fail(`${name}: the lock was lost during the job: another job may have run beside it`, status);
  }
  if (status !== 0) fail(`${name}: not released, status ${status}; it is free when its lease has ended`, status);
  summary('The job has released its lock.', 'Just before that:', before);
  process.stdout.write('The job has released its lock\n');
}

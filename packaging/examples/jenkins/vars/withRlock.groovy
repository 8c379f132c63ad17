// Runs steps under a lock, across controllers and jobs:
//
//   withRlock(name: 'deploy', wait: '30m', lease: '1h') {
//     sh './deploy.sh'
//   }
//
// Put vars/ into a repository, and add that as a global library in the settings of Jenkins. The server is in RLOCK_URL.
// Further settings: slots; reason (by default the address of the build); and, for agents that do not have rlock, archive (the
// address of an archive of a release for their processor) and sha256 (its checksum).
//
// Nobody renews the lock during the block, so give a lease that is longer than all its steps take. A step can also run its
// command under the same hold; then rlock renews the lock, and stops the command if the lock is lost:
//
//   sh 'rlock run --owner "$RLOCK_OWNER" "$RLOCK_NAME" -- ./deploy.sh'
//
// The end of the block releases the lock, and fails with 76 if it was lost. If Jenkins itself dies, the lock is free when the
// lease expires. With an archive, all steps must be on one agent. The log shows who had the lock and who waited for it; the
// description of the build says for whom it waited.
def call(Map given, Closure steps) {
  if (!given.name) error('withRlock: the name of the lock is missing')
  Map lock = [wait: '30m', lease: '1h', slots: '', reason: env.BUILD_URL ?: 'a build', archive: '', sha256: ''] + given
  withEnv(variables(lock)) {
    String folder = lock.archive ? unpacked() : ''
    withEnv((folder ? ["PATH+RLOCK=${folder}/bin"] : []) + ["LOCK_FOLDER=${folder}"]) {
      try {
        String owner = acquired()
        withEnv(["RLOCK_OWNER=${owner}"]) { held(steps) }
      } finally {
        try {
          if (folder) sh 'rm -rf "$LOCK_FOLDER"'
        } catch (ignored) {
          echo 'The unpacked archive stays on the agent'
        }
      }
    }
  }
}

// Runs the steps, and releases the lock. If both fail, the failure of the steps counts.
private void held(Closure steps) {
  def why = null
  try {
    steps()
  } catch (Throwable failed) {
    why = failed
    throw failed
  } finally {
    try {
      echo 'Before the release:\n' + status()
      sh 'rlock release -- "$RLOCK_NAME"'
    } catch (lost) {
      if (!why) throw lost
    }
  }
}

// The shell gets the settings as variables, never as part of its text: a name may come from a branch. withEnv would replace
// $WORD, and reads $$ as a dollar sign.
@NonCPS
private List variables(Map lock) {
  Map words = [RLOCK_NAME: lock.name, LOCK_WAIT: lock.wait, LOCK_LEASE: lock.lease, LOCK_SLOTS: lock.slots,
               LOCK_REASON: lock.reason, LOCK_ARCHIVE: lock.archive, LOCK_SHA256: lock.sha256]
  words.collect { name, value -> name + '=' + value.toString().replace('$', '$$') }
}

// The folder of the archive, unpacked.
private String unpacked() {
  sh(returnStdout: true, label: 'Get rlock', script: '''#!/bin/sh -e
lock_folder=$(mktemp -d)
trap 'rm -rf "$lock_folder"' EXIT
if command -v curl >/dev/null; then curl -fsSL "$LOCK_ARCHIVE"; else wget -qO- "$LOCK_ARCHIVE"; fi >"$lock_folder/archive"
echo "$LOCK_SHA256  $lock_folder/archive" | sha256sum -c - >&2
tar -xzf "$lock_folder/archive" --strip-components=1 -C "$lock_folder"
trap - EXIT
echo "$lock_folder"
''').trim()
}

// The owner id.
private String acquired() {
  String before = status()
  long began = System.currentTimeMillis()
  try {
    String owner = sh(returnStdout: true, label: 'Take the lock', script: '''#!/bin/sh -e
rlock acquire --wait "$LOCK_WAIT" --lease "$LOCK_LEASE" ${LOCK_SLOTS:+--slots "$LOCK_SLOTS"} --reason "$LOCK_REASON" -- "$RLOCK_NAME"
''').trim()
    describe("waited ${(System.currentTimeMillis() - began).intdiv(1000)} s for its lock", before)
    return owner
  } catch (failed) {
    describe('did not get its lock', status())
    throw failed
  }
}

private String status() {
  sh(returnStdout: true, label: 'Who has the lock', script: 'rlock status -- "$RLOCK_NAME" 2>&1 || true').trim()
}

private void describe(String result, String status) {
  echo "The build ${result}:\n${status}"
  // Others choose names and reasons, and Jenkins may show a description as HTML.
  String line = "The build ${result}" + holder(status).replaceAll('[<>&]', '?')
  currentBuild.description = currentBuild.description ? currentBuild.description + '\n' + line : line
}

// Who has the lock, and why.
@NonCPS
private String holder(String status) {
  List words = status.readLines().findAll { it ==~ /(holder|reason) .*/ }.collect { it.replaceFirst(/\w+ +/, '') }
  words ? '; it was held by ' + words.join(', ') : ''
}

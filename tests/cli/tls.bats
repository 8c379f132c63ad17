# rediss:// addresses: the server is verified before it gets any data, and everything else is the same as without TLS.

load ../lib/job
load ../lib/odd

setup_file() {
  source "$TESTS_DIR/lib/tls.bash"
  export TLS_DIR=$BATS_FILE_TMPDIR/tls
  tls_authority ca
  tls_authority stranger
  tls_certificate server ca DNS:localhost,DNS:*.wild.example,IP:127.0.0.1,IP:::1
  tls_expired expired ca DNS:localhost,IP:127.0.0.1
  tls_certificate elsewhere ca DNS:elsewhere.example
  tls_certificate unknown stranger DNS:localhost,IP:127.0.0.1
  tls_certificate client ca DNS:client
  tls_certificate strange_client stranger DNS:client
  cp "$TLS_DIR/ca.crt" "$TLS_DIR/alone.crt" && cp "$TLS_DIR/ca.key" "$TLS_DIR/alone.key"
}

setup() {
  source "$TESTS_DIR/lib/tls.bash"
  export RLOCK_TLS_CA=$TLS_DIR/ca.crt
  other=
}

teardown() {
  [[ -z $other ]] || kill "$other"
  redis_stop srv
}

# refused STATUS TEXT [OPTION ...]: a job exits with STATUS and TEXT before it starts.
refused() {
  tells "$1" "$2" rlock run "${@:3}" x -- touch "$BATS_TEST_TMPDIR/ran"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
}

@test "by the host's name, also with the final dot of DNS, and by its address; by a folder of CAs, and by the system's" {
  tls_start srv
  for host in localhost localhost. 127.0.0.1; do
    prints mine rlock run --url "rediss://$host:$srv_tls" x -- echo mine
  done
  mkdir "$BATS_TEST_TMPDIR/authorities"
  cp "$TLS_DIR/ca.crt" "$BATS_TEST_TMPDIR/authorities/$(openssl x509 -hash -noout -in "$TLS_DIR/ca.crt").0"
  rlock run --url "rediss://localhost:$srv_tls" --tls-ca "$BATS_TEST_TMPDIR/authorities" x -- true
  unset RLOCK_TLS_CA
  refused 69 'not trusted' --url "rediss://localhost:$srv_tls"
  SSL_CERT_FILE=$TLS_DIR/ca.crt rlock run --url "rediss://localhost:$srv_tls" x -- true
}

@test "--tls-server-name: the name in the certificate, if the address is that of a tunnel" {
  TLS_CERTIFICATE=elsewhere tls_start srv
  local url=rediss://127.0.0.1:$srv_tls name
  refused 69 'name it (--tls-server-name)' --url "$url"
  run -0 --separate-stderr rlock run --url "$url" --tls-server-name elsewhere.example x -- \
    "$RLOCK" run y -- sh -c 'echo "$RLOCK_TLS_SERVER_NAME"'
  [[ $output == elsewhere.example && -z $stderr ]]
  RLOCK_TLS_SERVER_NAME=elsewhere.example. run -0 rlock status --url "$url" x
  # OpenSSL would take the last two for any name, and for any in that domain.
  for name in other.example elsewhere . .example; do
    run --separate-stderr rlock run --url "$url" --tls-server-name "$name" x -- touch "$BATS_TEST_TMPDIR/ran"
    [[ $status == 69 || $status == 78 ]]
    [[ ! -e $BATS_TEST_TMPDIR/ran ]]
  done
  refused 64 'does not use TLS' --url "redis://127.0.0.1:$srv_tls" --tls-server-name elsewhere.example
}

@test "a name that a certificate has only as its common name does not count" {
  tls_certificate localhost ca DNS:elsewhere.example
  TLS_CERTIFICATE=localhost tls_start srv
  refused 69 'use one of the names in it (subject alternative names)' --url "rediss://localhost:$srv_tls"
  redis_stop srv
  openssl x509 -req -in "$TLS_DIR/localhost.csr" -CA "$TLS_DIR/ca.crt" -CAkey "$TLS_DIR/ca.key" -CAcreateserial -days 2 \
    -out "$TLS_DIR/localhost.crt" 2>/dev/null
  TLS_CERTIFICATE=localhost tls_start srv
  refused 69 'use one of the names in it (subject alternative names)' --url "rediss://localhost:$srv_tls"
}

@test "a keeper trusts the CAs in its caller's variables, continues the session, and receives requests" {
  tls_start srv
  unset RLOCK_TLS_CA
  export SSL_CERT_FILE=$TLS_DIR/ca.crt RLOCK_URL=rediss://localhost:$srv_tls
  sleep 300 3>&- &
  local process=$!
  owner=$(rlock acquire job --for-pid "$process" --lease 3s)
  left=$(redis srv pttl job)
  wait_until renewed_past "$left" job
  rlock release job --owner "$owner"
  assert_clean srv
  rlock acquire --for-pid "$process" --lease 10m x
  rlock force-unlock --yes x
  run -1 rlock status --is-held x
  kill "$process"
}

# certified CERTIFICATE: the server has this one; sets $url.
certified() {
  redis_stop srv
  TLS_CERTIFICATE=$1 tls_start srv
  url=rediss://localhost:$srv_tls
}

@test "a certificate that has expired, is another host's, an unknown CA's or self-signed: 69; --tls-insecure trusts any, and says so" {
  certified expired
  refused 69 'certificate has expired' --url "$url"
  certified elsewhere
  refused 69 'mismatch' --url "$url"
  refused 69 'mismatch' --url "rediss://127.0.0.1:$srv_tls"
  certified alone
  refused 69 'not trusted' --url "$url" --tls-ca "$TLS_DIR/stranger.crt"
  certified unknown
  refused 69 'name the authority that has signed it (--tls-ca)' --url "$url"
  tells 0 'the server is not verified, and may be an impostor' rlock run --url "$url" --tls-insecure x -- true
}

@test "a server that asks for our certificate gets it" {
  tls_start srv --tls-auth-clients yes
  local url=rediss://localhost:$srv_tls
  refused 69 'the server requires a client certificate; give one (--tls-cert, --tls-key)' --url "$url"
  refused 69 'refused us' --url "$url" --tls-cert "$TLS_DIR/strange_client.crt" --tls-key "$TLS_DIR/strange_client.key"
  chmod 600 "$TLS_DIR/client.key"
  run -0 rlock run --url "$url" --tls-cert "$TLS_DIR/client.crt" --tls-key "$TLS_DIR/client.key" x -- echo mine
  run -0 rlock run --url "$url" --tls-cert "$TLS_DIR/client.pem" x -- echo mine
}

@test "login by certificate: the server takes the user's name from it" {
  tls_start srv --tls-auth-clients yes
  [[ $(redis srv config set tls-auth-clients-user CN) == OK ]] || skip 'this server logs nobody in by a certificate'
  local rules url=rediss://localhost:$srv_tls
  rules=$(rlock doctor --acl '')
  (set -f && redis srv acl setuser client ${rules#*rlock } nopass)
  redis srv acl setuser default -eval -evalsha
  chmod 600 "$TLS_DIR"/{client,server}.key
  prints mine rlock run --url "$url" --tls-cert "$TLS_DIR/client.crt" --tls-key "$TLS_DIR/client.key" x -- echo mine
  refused 77 'User default has no permissions' --url "$url" --tls-cert "$TLS_DIR/server.crt" --tls-key "$TLS_DIR/server.key"
}

@test "a server that never completes the handshake: 69 within the time for an exchange; one that speaks neither TLS nor Redis" {
  cd "$BATS_TEST_TMPDIR"
  odd silent
  refused 69 'did not answer in time' --url "rediss://localhost:${url##*:}" --server-timeout 1s
  odd http
  refused 69 'TLS: ' --url "rediss://localhost:${url##*:}"
  end_odd
}

# hears CERTIFICATE OPTION...: a server at $port that records what it reads in the file heard.
hears() {
  port=$(redis_free_port)
  mkfifo "$BATS_TEST_TMPDIR/nothing"
  openssl s_server -quiet -accept 127.0.0.1:"$port" -cert "$TLS_DIR/$1.crt" -key "$TLS_DIR/$1.key" "${@:2}" \
    >"$BATS_TEST_TMPDIR/heard" 2>/dev/null <>"$BATS_TEST_TMPDIR/nothing" 3>&- &
  other=$!
}

# alone NAME KEY...: a certificate that its own key has signed, and that says it is no authority.
alone() {
  openssl req -x509 -newkey "${@:2}" -nodes -subj "/CN=$1" -days 2 -keyout "$TLS_DIR/$1.key" -out "$TLS_DIR/$1.crt" \
    -addext subjectAltName=DNS:localhost -addext keyUsage=digitalSignature 2>/dev/null
}

@test "keys of other kinds; a certificate that is trusted by itself; a key that is short, or has a passphrase" {
  alone rsa rsa:2048
  alone p521 ec -pkeyopt ec_paramgen_curve:P-521
  alone ed25519 ed25519
  for kind in rsa p521 ed25519; do
    certified "$kind"
    prints mine rlock run --url "$url" --tls-ca "$TLS_DIR/$kind.crt" x -- echo mine
  done
  openssl pkey -in "$TLS_DIR/client.key" -aes256 -passout pass:x -out "$TLS_DIR/secret.key"
  chmod 600 "$TLS_DIR/secret.key"
  refused 78 "--tls-key $TLS_DIR/secret.key: " --url "$url" --tls-cert "$TLS_DIR/client.crt" --tls-key "$TLS_DIR/secret.key"
  alone short rsa:1024
  hears short -cipher ALL:@SECLEVEL=0
  too_weak() { rlock run --server-timeout 1s --url "rediss://localhost:$port" --tls-ca "$TLS_DIR/short.crt" x -- true 2>&1 | grep 'key too weak'; }
  wait_until too_weak
}

@test "a server that cannot be verified does not get the password" {
  hears unknown
  reachable() { rlock run --server-timeout 1s --url "rediss://:s3cret@localhost:$port" x -- true 2>&1 | grep -q 'not trusted'; }
  wait_until reachable
  [[ ! -s $BATS_TEST_TMPDIR/heard ]]
  # The same with a known CA: now it receives something.
  run ! rlock run --server-timeout 1s --url "rediss://:s3cret@localhost:$port" --tls-ca "$TLS_DIR/stranger.crt" x -- true
  wait_until grep -q s3cret "$BATS_TEST_TMPDIR/heard"
}

@test "TLS 1.1 and older are refused" {
  hears server -tls1_1 -cipher 'ALL:@SECLEVEL=0'
  spoken() { rlock run --server-timeout 1s --url "rediss://localhost:$port" x -- true 2>&1 | grep -E 'protocol|alert|version'; }
  wait_until spoken
  run ! rlock run --server-timeout 1s --url "rediss://localhost:$port" x -- true
}

@test "files that are missing, invalid, or readable by everyone: 78" {
  tls_start srv
  local url=rediss://localhost:$srv_tls
  refused 78 'No such file' --url "$url" --tls-ca /nonexistent/ca.crt
  echo nonsense >"$BATS_TEST_TMPDIR/nonsense"
  refused 78 'tls-ca' --url "$url" --tls-ca "$BATS_TEST_TMPDIR/nonsense"
  refused 78 'tls-cert' --url "$url" --tls-cert "$BATS_TEST_TMPDIR/nonsense" --tls-key "$TLS_DIR/client.pem"
  refused 78 '--tls-key needs --tls-cert' --url "$url" --tls-key "$TLS_DIR/client.pem"
  cp "$TLS_DIR/client.key" "$BATS_TEST_TMPDIR/open.key"
  chmod 644 "$BATS_TEST_TMPDIR/open.key"
  refused 78 'others may read the key; run chmod 600' --url "$url" --tls-cert "$TLS_DIR/client.crt" --tls-key "$BATS_TEST_TMPDIR/open.key"
  chmod 600 "$TLS_DIR/strange_client.key"
  refused 78 'tls-key' --url "$url" --tls-cert "$TLS_DIR/client.crt" --tls-key "$TLS_DIR/strange_client.key"
  refused 64 'does not use TLS; write rediss://' --url "redis://localhost:$srv_tls" --tls-ca "$TLS_DIR/ca.crt"
}

@test "a folder of CA certificates that another user owns or may change: 78" {
  [[ $(id -u) == 0 ]] || skip 'ONLY ROOT CAN GIVE FOLDERS TO OTHER USERS: foreign folders of authorities are not tested'
  tls_start srv
  local url=rediss://localhost:$srv_tls folder=$BATS_TEST_TMPDIR/authorities
  mkdir "$folder"
  cp "$TLS_DIR/ca.crt" "$folder/"
  openssl rehash "$folder"
  rlock run --url "$url" --tls-ca "$folder" x -- true
  chmod 777 "$folder"
  refused 78 'chmod go-w' --url "$url" --tls-ca "$folder"
  chmod 755 "$folder"
  chown 65534 "$folder"
  refused 78 'it belongs to another user' --url "$url" --tls-ca "$folder"
  chown 0 "$folder"
  mkdir "$BATS_TEST_TMPDIR/theirs"
  mv "$folder" "$BATS_TEST_TMPDIR/theirs/"
  chown 65534 "$BATS_TEST_TMPDIR/theirs"
  refused 78 'it belongs to another user' --url "$url" --tls-ca "$BATS_TEST_TMPDIR/theirs/authorities"
}

@test "a start without TLS opens no CA file" {
  can_trace
  cd "$BATS_TEST_TMPDIR"
  tls_start srv
  strace -f -qq -o plain "$RLOCK" run --url "unix://$srv_sock" x -- true
  strace -f -qq -o tls "$RLOCK" run --url "rediss://localhost:$srv_tls" --tls-ca "$TLS_DIR/ca.crt" x -- true
  grep -q 'openat.*ca\.crt' tls
  run ! grep -E 'openat.*(ssl|\.crt|\.cnf|\.pem)' plain
}

@test "a nested run finds the server and its CA, regardless of its folder" {
  tls_start srv
  unset RLOCK_TLS_CA
  cd "$TLS_DIR"
  prints both rlock run --url "rediss://localhost:$srv_tls" --tls-ca ca.crt outer -- sh -c "cd / && exec '$RLOCK' run inner -- echo both"
}

@test "a job is renewed and released; if its connection is cut, it continues on another one" {
  tls_start srv
  export RLOCK_URL=rediss://localhost:$srv_tls
  cd "$TLS_DIR"
  RLOCK_TLS_CA=ca.crt job_start --lease 3s job -- bash -c "until [[ -e $BATS_TEST_TMPDIR/go ]]; do sleep 0.1; done; exit 3"
  held() { [[ $(redis srv exists job) == 1 ]]; }
  wait_until held
  for _ in 1 2; do
    redis srv client kill type normal skipme yes
    left=$(redis srv pttl job)
    wait_until renewed_past "$left" job
  done
  touch "$BATS_TEST_TMPDIR/go"
  job_status 3
  not said 'cannot renew'
  assert_clean srv
}

# The monitor of a waiter connects during the wait, so nothing delays the command after the grant.
@test "a hand-off costs as many commands as without TLS, and no connection" {
  not_over sentinel 'a Sentinel connects and listens, too'
  tls_start srv
  export RLOCK_URL=rediss://localhost:$srv_tls
  owner=$(rlock acquire job --lease 60s)
  job_start job -- echo mine
  # The waiter's, the one on which it listens, and its monitor's.
  three() { [[ $(redis srv client list type normal | grep -vc "addr=$srv_sock\|cmd=client") -ge 2 && $(redis srv client list type pubsub | wc -l) == 1 ]]; }
  wait_until three
  redis srv config resetstat
  rlock release job --owner "$owner"
  job_status 0
  connections=$(redis srv info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p')
  redis srv info commandstats | grep -E 'eval'
  # Those of `rlock release` and of redis-cli.
  echo "connections: $connections"
  ((connections <= 2))
  [[ $(redis srv info commandstats | sed -nE 's/^cmdstat_evalsha:calls=([0-9]*),.*/\1/p') == 4 ]] # `rlock release` has looked first
}

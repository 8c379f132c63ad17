# Certificates for tests, by openssl(1). Source it after common.
#
#   tls_authority NAME [DAYS]          a CA, valid for two days or DAYS: $TLS_DIR/NAME.crt and .key
#   tls_certificate NAME AUTHORITY SUBJECT-ALT-NAMES [DAYS]
#                                      a certificate that it has signed, valid for two days or DAYS
#   tls_expired NAME AUTHORITY SUBJECT-ALT-NAMES
#                                      one that was valid in January 2020
#   tls_start NAME [OPTION VALUE ...]  a redis-server with TLS, at 127.0.0.1:$NAME_tls; sets $NAME_tls
#
# Folders belong to the test, or to the file if called from setup_file.

TLS_DIR=${TLS_DIR:-$(redis_folder)/tls}

tls_key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$TLS_DIR/$1.key" 2>/dev/null ||
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$TLS_DIR/$1.key"; }

tls_authority() {
  mkdir -p "$TLS_DIR"
  tls_key "$1"
  openssl req -x509 -new -key "$TLS_DIR/$1.key" -subj "/CN=$1" -days "${2:-2}" -out "$TLS_DIR/$1.crt" \
    -addext 'basicConstraints=critical,CA:TRUE'
}

tls_certificate() {
  local name=$1 authority=$2 names=$3 days=${4:-2}
  tls_key "$name"
  openssl req -new -key "$TLS_DIR/$name.key" -subj "/CN=$name" -out "$TLS_DIR/$name.csr"
  openssl x509 -req -in "$TLS_DIR/$name.csr" -CA "$TLS_DIR/$authority.crt" -CAkey "$TLS_DIR/$authority.key" \
    -CAcreateserial -days "$days" -extfile <(printf 'subjectAltName=%s\n' "$names") -out "$TLS_DIR/$name.crt" 2>/dev/null
  cat "$TLS_DIR/$name.crt" "$TLS_DIR/$name.key" >"$TLS_DIR/$name.pem"
  chmod 600 "$TLS_DIR/$name.pem"
}

tls_expired() {
  tls_certificate "$@"
  : >"$TLS_DIR/index"
  cat >"$TLS_DIR/ca.conf" <<CONF
[ca]
default_ca = any
[any]
database = $TLS_DIR/index
new_certs_dir = $TLS_DIR
rand_serial = yes
default_md = sha256
policy = anything
[anything]
commonName = supplied
CONF
  openssl ca -batch -notext -config "$TLS_DIR/ca.conf" -cert "$TLS_DIR/$2.crt" -keyfile "$TLS_DIR/$2.key" \
    -startdate 20200101000000Z -enddate 20200201000000Z -extfile <(printf 'subjectAltName=%s\n' "$3") \
    -in "$TLS_DIR/$1.csr" -out "$TLS_DIR/$1.crt" 2>/dev/null
}

tls_start() {
  local name=$1 certificate=${TLS_CERTIFICATE:-server} port
  shift
  port=$(redis_free_port)
  redis_start "$name" --tls-port "$port" --tls-cert-file "$TLS_DIR/$certificate.crt" --tls-key-file "$TLS_DIR/$certificate.key" \
    --tls-ca-cert-file "$TLS_DIR/ca.crt" --tls-auth-clients no "$@"
  printf -v "${name}_tls" '%s' "$port"
}

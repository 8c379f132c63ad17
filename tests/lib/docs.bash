# The examples in the documents. Source it after common.

# blocks [DOCUMENT]: its shell blocks that are marked as tested, as block.1, block.2 … in this folder; by default those
# of the README and of guarantees.md.
blocks() {
  local root=$TESTS_DIR/..
  (($#)) || set -- "$root/README.md" "$root/docs/guarantees.md"
  awk '/^```sh$/ { getline line; inside = (line == "# tested"); if (inside) { n++; next } }
       /^```$/ { inside = 0 }
       inside { print > ("block." n) }' "$@"
}

# The examples in the documents. Source it after common.

# blocks [DOCUMENT]: its shell blocks that are marked (the README's), as block.1, block.2 … in this folder
blocks() {
  awk '/^```sh$/ { getline line; inside = (line == "# tested"); if (inside) { n++; next } }
       /^```$/ { inside = 0 }
       inside { print > ("block." n) }' "${1:-$TESTS_DIR/../README.md}"
}

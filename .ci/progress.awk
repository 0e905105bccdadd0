# Reads `go test -json`. While the tests run: one line a package, and the output of what failed. With -v closing=1: the
# tests that were skipped, each with its reason, those that failed, and as the last line how many of each there were.
# Exits with 1 when anything failed.

# field gives the string value of a key, unescaped as far as test output needs it.
function field(key,    at, rest, value, c) {
  at = index($0, "\"" key "\":\"")
  if (!at) return ""
  rest = substr($0, at + length(key) + 4)
  value = ""
  while (rest != "") {
    c = substr(rest, 1, 1)
    if (c == "\"") return value
    if (c == "\\") {
      c = substr(rest, 1, 2)
      if (c == "\\u") { value = value unicode(substr(rest, 3, 4)); rest = substr(rest, 7); continue }
      value = value (c in escapes ? escapes[c] : substr(c, 2))
      rest = substr(rest, 3)
      continue
    }
    match(rest, /^[^"\\]+/)
    value = value substr(rest, 1, RLENGTH)
    rest = substr(rest, RLENGTH + 1)
  }
  return value
}

# unicode knows the three that encoding/json escapes for HTML; others stay as they are.
function unicode(hex) {
  if (hex == "003c") return "<"
  if (hex == "003e") return ">"
  if (hex == "0026") return "&"
  return "\\u" hex
}

BEGIN { escapes["\\n"] = "\n"; escapes["\\t"] = "\t"; escapes["\\r"] = "" }

{
  action = field("Action")
  package = field("Package")
  test = field("Test")
  key = package " " test
}

action == "build-output" && !closing { printf "%s", field("Output") }

action == "output" {
  line = field("Output")
  if (line !~ /^(=== |--- |    --- )/) output[key] = output[key] line
}

action == "pass" && test != "" { passed++; delete output[key] }

action == "skip" && test != "" {
  skipped++
  reason = output[key]
  gsub(/^[ \t\n]+|[ \t\n]+$/, "", reason)
  if (closing) printf "skipped: %s: %s\n", key, reason
}

action == "fail" && test != "" {
  failed++
  broken[package] = 1
  if (closing) printf "failed: %s\n", key
  else printf "FAIL %s\n%s", key, output[key]
}

# A package fails without a test that does when it does not compile, panics, or leaks.
action == "fail" && test == "" {
  if (!(package in broken)) { failed++; if (closing) printf "failed: %s\n", package }
  if (!closing) printf "FAIL %s\n%s", package, output[key]
}

action == "pass" && test == "" && !closing { printf "ok   %s\n", package; fflush() }

END {
  if (closing) printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
  exit failed > 0
}

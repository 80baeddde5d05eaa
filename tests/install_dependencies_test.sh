#!/usr/bin/env bash
# scripts/install_dependencies.sh against a fake Debian: does nothing where all is there, installs what is missing after an
# update, and stops with a remedy where LLVM is in no package source.
set -euo pipefail
script="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/scripts/install_dependencies.sh"
fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT

cat >"$fake/dpkg-query" <<'END'
#!/usr/bin/env bash
for word in "$@"; do [[ $word == -* || " $MISSING " == *" $word "* ]] || echo "installed $word"; done
END
cat >"$fake/apt-get" <<'END'
#!/usr/bin/env bash
echo "apt-get $*" >>"$CALLS"
END
# Writes more than a pipe holds after the line that counts, as apt-cache does for a package of many versions: a reader that
# stops at that line would end it by SIGPIPE.
cat >"$fake/apt-cache" <<'END'
#!/usr/bin/env bash
set -e
[[ " $UNKNOWN " == *" $2 "* ]] && exit
printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n' "$2"
yes '     1.0 500' | head -n 20000
END
printf '#!/usr/bin/env bash\n"$@"\n' >"$fake/sudo"
chmod +x "$fake"/*
export CALLS=$fake/calls PATH=$fake:$PATH

# expect NAME EXIT_CODE PATTERN: runs the script; PATTERN must match the calls of apt-get followed by what was said.
expect() {
  local code=0 said
  : >"$CALLS"
  said=$("$script" 2>&1) || code=$?
  if [[ $code != "$2" || ! "$(tr '\n' ';' <"$CALLS")$said" =~ $3 ]]; then
    echo "FAILED: $1: exit code $code, calls: $(cat "$CALLS"), said: $said" >&2
    exit 1
  fi
}

MISSING="" UNKNOWN="" expect "all is there" 0 '^$'
MISSING="ccache" UNKNOWN="" expect "missing optional packages are no reason to act" 0 '^$'
MISSING="libcli11-dev" UNKNOWN="" expect "one is missing" 0 '^apt-get update -qq;apt-get install .*libcli11-dev;'
MISSING="libcli11-dev ccache" UNKNOWN="" expect "optional ones come along" 0 'install .*libcli11-dev ccache;'
MISSING="llvm-22-dev" UNKNOWN="llvm-22-dev" expect "LLVM is unknown" 1 '^apt-get update -qq;laneshift: missing.*apt repository'

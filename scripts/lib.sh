# What the shell scripts share: sourced, never run. Leaves the caller in the repository root.
# shellcheck shell=bash
set -euo pipefail
if [[ -n ${TANDEM_MODELS:-} && $TANDEM_MODELS != /* ]]; then
  export TANDEM_MODELS="$PWD/$TANDEM_MODELS"  # the tests run in other folders
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# stage TEXT: a headline with the minutes and seconds since the script began.
stage() {
  printf '\n== %02d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
}

die() {
  printf '%s: %s\n' "scripts/$(basename "$0")" "$*" >&2
  exit 1
}

# configure PRESET: once; afterwards ninja itself notices what changed. A cache from another place is thrown away.
configure() {
  local build="build/$1"
  if [[ -f $build/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$build/CMakeCache.txt"; then
    rm -rf "$build"
  fi
  if [[ ! -f $build/build.ninja ]]; then
    cmake --preset "$1"
  fi
}

# The folder for caches. Sourced by setup.sh, which defines fail.
# shellcheck shell=bash

home_folder() { printf '%s\n' "${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"; }

can_be_used() { mkdir -p "$1/plait" 2>/dev/null && [ -w "$1/plait" ]; }

# choose_cache FALLBACK: prints XDG_CACHE_HOME, else the one in the home folder, else FALLBACK, where there is no home that
# can be written. A relative XDG_CACHE_HOME does not count, as for the programs (base/path.cc).
choose_cache() {
  local home
  if [[ "${XDG_CACHE_HOME:-}" == /* ]]; then
    can_be_used "$XDG_CACHE_HOME" || fail "cannot write in $XDG_CACHE_HOME/plait: set XDG_CACHE_HOME to a folder of yours"
    printf '%s\n' "$XDG_CACHE_HOME"
    return
  fi
  home="$(home_folder)"
  if [ "${home#/}" != "$home" ] && can_be_used "$home/.cache"; then
    printf '%s\n' "$home/.cache"
    return
  fi
  (umask 077 && mkdir -p "$1/plait") 2>/dev/null ||
    fail "cannot write in $home/.cache nor in $1: set XDG_CACHE_HOME"
  [ -O "$1" ] || fail "$1 belongs to somebody else: set XDG_CACHE_HOME to a folder of yours"
  printf '%s\n' "$1"
}

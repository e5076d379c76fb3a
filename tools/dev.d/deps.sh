# tools/dev deps

deps_help() {
  cat <<'END'
usage: tools/dev deps
Installs the Debian packages of tools/dev.d/packages.list that are missing. Needs root only if
one is missing.
END
}

deps_missing() {
  local wanted installed
  wanted=$(grep -vE '^[[:space:]]*(#|$)' tools/dev.d/packages.list | sort -u)
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p' | sort -u)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed")
}

# A dead mirror or another apt that holds the lock must not stop a build for ever.
deps_apt() {
  DEBIAN_FRONTEND=noninteractive timeout -k 10 900 apt-get -qq -o DPkg::Lock::Timeout=120 \
    -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@"
}

deps_install() {
  deps_apt update
  deps_apt install -y --no-install-recommends "$@"
}

cmd_deps() {
  case "${1:-}" in
    -h | --help) deps_help; return ;;
    "") ;;
    *) bad_option deps "$1" ;;
  esac
  command -v dpkg-query >/dev/null ||
    die "this is not Debian (no dpkg-query): use Debian 12, or the VM in vagrant/"
  local missing
  mapfile -t missing < <(deps_missing)
  if [[ ${#missing[@]} -eq 0 ]]; then
    printf 'deps: all packages are installed\n'
    return
  fi
  [[ $EUID -eq 0 ]] || die "packages are missing (${missing[*]}): run sudo tools/dev deps" 77
  step "deps: install ${missing[*]}" deps_install "${missing[@]}"
}

# tools/dev ci

# A guard against hangs, not the goal: that is 50 minutes on two cores with a cold compiler cache.
CI_LIMIT_S=4800

ci_help() {
  cat <<'END'
usage: tools/dev ci
Everything that has to pass before a merge, the cheapest first: format and size rules, the tests,
the tests of the kernel here and in both guests, the quick tests under the address sanitizer, the
fuzzers for 20 s each, clang-tidy. Some 45 minutes on two cores with nothing in caches.
END
}

cmd_ci() {
  case "${1:-}" in
    -h | --help) ci_help; return ;;
    "") ;;
    *) bad_option ci "$1" ;;
  esac
  need_root "tools/dev ci"
  local start_us
  start_us=$(now_us)
  CI_DEADLINE_S=$((SECONDS + CI_LIMIT_S))
  ci_part deps
  ci_part lint --fast
  ci_part test
  ci_part vm
  ci_part test --quick --preset asan
  ci_part fuzz
  ci_part lint --product
  printf '%sci: passed in %s%s\n' "$GREEN" "$(seconds_since "$start_us")" "$PLAIN"
}

# Each part gets what is left of the time for all, so that a hang is a failure with a name.
ci_part() {
  local left_s=$((CI_DEADLINE_S - SECONDS)) status=0
  [[ $left_s -gt 0 ]] || die "ci: no time left for $*: $CI_LIMIT_S s are allowed for all" 1
  # In the background, as bash handles a signal only between foreground commands: this way an
  # interrupted run takes the part down with it.
  timeout -k 10 "$left_s" tools/dev "$@" &
  local part=$!
  trap 'kill "$part" 2>/dev/null || true; exit 130' INT TERM
  wait "$part" || status=$?
  trap - INT TERM
  [[ $status -ne 124 ]] || die "ci: $* was stopped: $CI_LIMIT_S s are allowed for all" 1
  [[ $status -eq 0 ]] || die "ci: failed in: tools/dev $*" 1
}

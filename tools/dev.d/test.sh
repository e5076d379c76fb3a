# tools/dev test

test_help() {
  cat <<END
usage: tools/dev test [--quick] [--preset PRESET]
Installs what is missing, builds, and runs the tests: those labelled quick first (in parallel),
then all others (one at a time). The others need root.

  --quick          only the quick ones; no root needed
  --preset PRESET  one of: $PRESETS (dev)
END
}

cmd_test() {
  local preset=dev quick_only=no
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --quick) quick_only=yes; shift ;;
      --preset) need_value "$@"; preset=$2; shift 2 ;;
      -h | --help) test_help; return ;;
      *) bad_option test "$1" ;;
    esac
  done
  check_preset "$preset"
  # Said before minutes of compiling, not after.
  [[ $quick_only == yes ]] || need_root "tools/dev test (without --quick)"
  cmd_deps
  if [[ $quick_only == yes ]]; then
    build_configure "$preset"
    step "build: compile the quick tests of $preset" \
      cmake --build --preset "$preset" -j "$JOBS" --target quick_tests
  else
    cmd_build --preset "$preset"
  fi
  test_environment "$preset"

  local status=0
  test_run "$preset" quick -L '^quick$' -j "$JOBS" || status=$?
  if [[ $status -ne 0 ]]; then
    [[ $quick_only == yes ]] || printf 'test: a quick test failed, the others are not run\n'
    test_summary "$preset" quick
    return "$status"
  fi
  if [[ $quick_only == yes ]]; then
    test_summary "$preset" quick
    return
  fi
  test_bpffs
  test_run "$preset" other -LE '^quick$' -j 1 || status=$?
  test_summary "$preset" quick other
  return "$status"
}

test_environment() {
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}
  # The thread sanitizer of g++ 12 cannot lay out its shadow memory where the kernel randomises
  # more than 28 bits of an address, which newer ones do by default.
  CTEST=(ctest)
  if [[ $1 == tsan ]]; then CTEST=(setarch "$(uname -m)" --addr-no-randomize ctest); fi
}

test_bpffs() {
  if [[ $(stat -f -c %T /sys/fs/bpf 2>/dev/null) != bpf_fs ]]; then
    step "test: mount the BPF file system on /sys/fs/bpf" mount -t bpf bpf /sys/fs/bpf
  fi
}

# test_run PRESET NAME CTEST-OPTION...
test_run() {
  local preset=$1 name=$2 start_us status=0
  shift 2
  start_us=$(now_us)
  printf '%s==> test: run the %s tests of %s%s\n' "$BOLD" "$name" "$preset" "$PLAIN"
  # No test with a label is a mistake in the build for `quick`, and normal for a young tree else.
  local none=error
  [[ $name == quick ]] || none=ignore
  "${CTEST[@]}" --preset "$preset" --no-tests="$none" --output-on-failure \
    --output-junit "test-$name.xml" "$@" 2>&1 | tee "build/$preset/test-$name.log" || status=$?
  printf '<== test: %s: %s\n' "$name" "$(seconds_since "$start_us")"
  return "$status"
}

# What ctest itself said at the end of each part, together at the end of all output.
test_summary() {
  local preset=$1 name log
  shift
  for name in "$@"; do
    log=build/$preset/test-$name.log
    printf '\n%s%s tests of %s%s\n' "$BOLD" "$name" "$preset" "$PLAIN"
    sed -n -e '/% tests passed/,$p' -e '/^No tests were found/p' "$log" | grep -v '^$' || true
  done
}

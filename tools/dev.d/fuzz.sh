# tools/dev fuzz

fuzz_help() {
  cat <<'END'
usage: tools/dev fuzz [--seconds N] [--seed N] [TARGET...]
Builds the fuzzers of tests/fuzz with clang, the address and the undefined-behaviour sanitizer, and
runs each from its corpus, two at a time. What they learn beside it stays in build/asan/found.

  --seconds N   time for each target, 1 to 86400 (20)
  --seed N      what chance begins with, 0 to 4294967295 (1): the same, so that CI judges the change
                and not chance; 0 is another each time, as nightly takes
  TARGET        only these, as in tests/fuzz/TARGET_corpus
END
}

cmd_fuzz() {
  local seconds=20 seed=1 targets=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --seconds)
        need_value "$@"
        check_fuzz_seconds fuzz --seconds "$2"
        seconds=$2
        shift 2
        ;;
      --seed)
        need_value "$@"
        [[ $2 =~ ^(0|[1-9][0-9]{0,9})$ && $2 -le 4294967295 ]] ||
          die "fuzz: --seed $2: allowed are 0 to 4294967295"
        seed=$2
        shift 2
        ;;
      -h | --help) fuzz_help; return ;;
      -*) bad_option fuzz "$1" ;;
      *)
        [[ -d tests/fuzz/$1_corpus ]] || die "fuzz: no target '$1': see tests/fuzz"
        targets+=("$1")
        shift
        ;;
    esac
  done
  if [[ ${#targets[@]} -eq 0 ]]; then
    mapfile -t targets < <(cd tests/fuzz && printf '%s\n' *_corpus | sed 's/_corpus$//')
  fi
  need_tool clang++-19
  build_configure asan
  step "fuzz: compile" cmake --build --preset asan -j "$JOBS" --target "${targets[@]/%/_fuzz}"
  mkdir -p build/asan/found
  step "fuzz: ${targets[*]}, $seconds s each" fuzz_run "$seconds" "$seed" "${targets[@]}"
}

# check_fuzz_seconds COMMAND OPTION VALUE
check_fuzz_seconds() {
  [[ $3 =~ ^[1-9][0-9]{0,4}$ && $3 -le 86400 ]] || die "$1: $2 $3: allowed are 1 to 86400"
}

# Two at a time: xargs goes on with the others after a finding, and fails at the end.
fuzz_run() {
  local seconds=$1 seed=$2
  shift 2
  export -f fuzz_one
  printf '%s\n' "$@" | xargs -P 2 -I{} bash -c "fuzz_one {} $seconds $seed"
}

# fuzz_one TARGET SECONDS SEED
fuzz_one() {
  local target=$1 found=build/asan/found/$1 status=0
  mkdir -p "$found"
  timeout -k 10 $(($2 + 120)) "build/asan/tests/fuzz/${target}_fuzz" -max_total_time="$2" \
    -seed="$3" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$found-" \
    "$found" "tests/fuzz/${target}_corpus" >"$found.log" 2>&1 || status=$?
  if [[ $status -eq 0 ]]; then
    sed -n -e "s/^#\([0-9]*\).*DONE *cov: \([0-9]*\) .*/  $target: \1 runs, \2 edges/p" "$found.log"
    return
  fi
  # One write, so that two of them do not mix.
  printf '%s\n' "fuzz: $target failed with status $status, see $found.log
$(grep -a -m 5 -E "^$target: |ERROR: |runtime error: |Test unit written to" "$found.log")
  again: build/asan/tests/fuzz/${target}_fuzz FILE, and when it is repaired
  the file becomes a seed: mv FILE tests/fuzz/${target}_corpus/WHAT_IT_IS" >&2
  return 1
}

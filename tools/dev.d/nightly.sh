# tools/dev nightly

nightly_help() {
  cat <<'END'
usage: tools/dev nightly [--fuzz-seconds N]
What is too long for tools/dev ci: every scenario of the simulator with 16 seeds, the fuzzers, the
thread sanitizer, the full benchmark. About half an hour; needs root.

  --fuzz-seconds N   time for each fuzz target, 1 to 86400 (600)
END
}

cmd_nightly() {
  local fuzz_s=600
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --fuzz-seconds)
        need_value "$@"
        [[ $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le 86400 ]] ||
          die "nightly: --fuzz-seconds $2: allowed are 1 to 86400"
        fuzz_s=$2
        shift 2
        ;;
      -h | --help) nightly_help; return ;;
      *) bad_option nightly "$1" ;;
    esac
  done
  need_root "tools/dev nightly"
  cmd_deps
  cmd_build --preset dev
  step "nightly: every scenario, 16 seeds" \
    timeout -k 10 1800 build/dev/tools/cli/edgeshed sim --all --seeds 16
  nightly_fuzz "$fuzz_s"
  cmd_test --quick --preset tsan
  cmd_bench
}

# Each target from its corpus in the repository; what it finds beside it stays in build/fuzz.
nightly_fuzz() {
  local seconds=$1 target name
  step "nightly: configure the fuzzers" cmake --preset fuzz
  step "nightly: compile the fuzzers" cmake --build --preset fuzz -j "$JOBS" --target fuzzers
  for target in build/fuzz/tests/fuzz/*_fuzz; do
    name=$(basename "$target" _fuzz)
    mkdir -p "build/fuzz/found/$name"
    step "nightly: fuzz $name for $seconds s" timeout -k 10 $((seconds + 120)) \
      "$target" -max_total_time="$seconds" -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="build/fuzz/found/$name-" \
      "build/fuzz/found/$name" "tests/fuzz/${name}_corpus"
  done
}

# tools/dev nightly

nightly_help() {
  cat <<'END'
usage: tools/dev nightly [--fuzz-seconds N]
What is too long for tools/dev ci: every scenario of the simulator with 16 seeds, the demo at three
and at ten times the load, the tests of the kernel and the package's life in guests, the fuzzers, the
thread sanitizer, the full benchmark. About an hour and a half; needs root.

  --fuzz-seconds N   time for each fuzz target, 1 to 86400 (600)
END
}

cmd_nightly() {
  local fuzz_s=600
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --fuzz-seconds)
        need_value "$@"
        check_fuzz_seconds nightly --fuzz-seconds "$2"
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
  cmd_demo --load 3
  cmd_demo --load 10
  cmd_vm
  cmd_package --test
  cmd_fuzz --seconds "$fuzz_s" --seed 0
  cmd_test --quick --preset tsan
  cmd_bench
}

# tools/dev bench

bench_help() {
  cat <<'END'
usage: tools/dev bench [--json FILE] [BENCHMARK-OPTION...]
Builds the release preset and runs its benchmarks. Needs root, as the BPF programs are measured
in the kernel.

  --json FILE   also write the results to FILE, as JSON
  other options go to the benchmark program, such as --benchmark_filter=REGEX
END
}

cmd_bench() {
  local options=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --json)
        need_value "$@"
        options+=("--benchmark_out=$(realpath -m -- "$2")" --benchmark_out_format=json)
        shift 2
        ;;
      -h | --help) bench_help; return ;;
      --*) options+=("$1"); shift ;;
      *) bad_option bench "$1" ;;
    esac
  done
  need_root "tools/dev bench"
  cmd_build --preset release
  local program=build/release/tests/bench/edgeshed_bench
  [[ -x $program ]] || die "$program does not exist: tests/bench has no target edgeshed_bench"
  step "bench: run the benchmarks" timeout -k 10 1200 "$program" "${options[@]}"
}

# tools/dev bench

bench_help() {
  cat <<'END'
usage: tools/dev bench [--json FILE] [--quick]
Builds the release preset and runs its benchmarks: every row with its peer and its goal. Needs root,
as the BPF programs are measured in the kernel. Takes about five minutes.

  --json FILE   also write the rows to FILE, as JSON
  --quick       1 k and 10 k connections only, few rounds: half a minute
END
}

cmd_bench() {
  local options=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --json)
        need_value "$@"
        options+=(--json "$(realpath -m -- "$2")")
        shift 2
        ;;
      -h | --help) bench_help; return ;;
      --quick) options+=("$1"); shift ;;
      *) bad_option bench "$1" ;;
    esac
  done
  need_root "tools/dev bench"
  cmd_build --preset release
  local program=build/release/tests/bench/edgeshed_bench
  [[ -x $program ]] || die "$program does not exist: tests/bench has no target edgeshed_bench"
  step "bench: run the benchmarks" timeout -k 10 1200 "$program" "${options[@]}"
}

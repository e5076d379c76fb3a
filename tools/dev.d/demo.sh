# tools/dev demo

demo_help() {
  cat <<'END'
usage: tools/dev demo [DEMO-OPTION...]
Installs what is missing, builds, then runs tools/demo/demo with the options given.
END
}

cmd_demo() {
  local program=tools/demo/demo
  [[ -x $program ]] || die "$program does not exist: nothing to show yet"
  case "${1:-}" in
    -h | --help) demo_help; exec "$program" --help ;;
  esac
  need_root "tools/dev demo"
  cmd_deps
  cmd_build --preset dev
  step "demo: run $program" "$program" "$@"
}

# tools/dev build

build_help() {
  cat <<END
usage: tools/dev build [--preset PRESET]
Configures and compiles into build/PRESET. PRESET is one of: $PRESETS (dev).
END
}

cmd_build() {
  local preset=dev
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --preset) need_value "$@"; preset=$2; shift 2 ;;
      -h | --help) build_help; return ;;
      *) bad_option build "$1" ;;
    esac
  done
  check_preset "$preset"
  need_tool cmake
  need_tool ninja
  build_configure "$preset"
  step "build: compile $preset" cmake --build --preset "$preset" -j "$JOBS"
}

# Ninja configures again by itself when a CMake file changes; the preset file is not among those.
build_configure() {
  local preset=$1
  if [[ ! -f build/$preset/build.ninja || CMakePresets.json -nt build/$preset/build.ninja ]]; then
    step "build: configure $preset" cmake --preset "$preset" --log-level=WARNING
    touch "build/$preset/build.ninja"
  fi
}

# What all commands share: messages, timed steps, checks. Sourced by tools/dev.

PRESETS="dev release asan tsan"
JOBS=$(nproc)

if [[ -t 1 && -z "${NO_COLOR:-}" ]]; then
  BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
  BOLD="" RED="" GREEN="" PLAIN=""
fi

STEP=""
STEP_START_US=0

now_us() { printf '%s\n' "${EPOCHREALTIME/[.,]/}"; }

seconds_since() {
  local us=$(($(now_us) - $1))
  printf '%d.%d s' $((us / 1000000)) $((us % 1000000 / 100000))
}

# step WHAT COMMAND...: says what it does, runs it, says how long it took.
step() {
  local what=$1 start_us
  shift
  start_us=$(now_us)
  printf '%s==> %s%s\n' "$BOLD" "$what" "$PLAIN"
  STEP=$what STEP_START_US=$start_us
  "$@"
  printf '%s<== %s: %s%s\n' "$GREEN" "$what" "$(seconds_since "$start_us")" "$PLAIN"
  STEP=""
}

# A failing command ends the script by itself (set -e); this says which step that was.
on_exit() {
  local status=$?
  if [[ $status -ne 0 && -n "$STEP" ]]; then
    printf '%stools/dev: failed in "%s" after %s (exit status %d)%s\n' "$RED" "$STEP" \
      "$(seconds_since "$STEP_START_US")" "$status" "$PLAIN" >&2
  fi
}
trap on_exit EXIT

# die MESSAGE [STATUS]
die() {
  STEP=""
  printf '%stools/dev: %s%s\n' "$RED" "$1" "$PLAIN" >&2
  exit "${2:-2}"
}

need_root() {
  [[ $EUID -eq 0 ]] || die "$1 needs root: run it with sudo" 77
}

need_tool() {
  command -v "$1" >/dev/null || die "$1 is not installed: run tools/dev deps"
}

check_preset() {
  [[ " $PRESETS " == *" $1 "* ]] || die "unknown preset '$1': allowed are $PRESETS"
}

# need_value OPTION VALUE...: an option that takes a value got one.
need_value() {
  [[ $# -ge 2 && -n "$2" ]] || die "$1 needs a value"
}

bad_option() {
  die "$1: unknown option '$2': see tools/dev $1 --help"
}

# The project's C and C++ files below the given folders, one a line: what git tracks or would add,
# so that a new file is checked before its first commit.
project_sources() {
  git -c safe.directory="$ROOT" ls-files --cached --others --exclude-standard -- "$@" |
    grep -E '\.(c|h|cc|cpp|hpp)$' | while IFS= read -r file; do
      if [[ -f "$file" ]]; then printf '%s\n' "$file"; fi
    done | sort -u
}

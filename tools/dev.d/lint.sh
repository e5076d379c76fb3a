# tools/dev lint

MAX_FILE_LINES=700
MAX_FUNCTION_LINES=70

lint_help() {
  cat <<END
usage: tools/dev lint [--fast | --product | --deep]
Checks the format (tools/dev fmt repairs it), that no file is over $MAX_FILE_LINES lines and no
function over $MAX_FUNCTION_LINES, and runs clang-tidy-19 with the rules of .clang-tidy.

  --fast     without clang-tidy on C++ files, which takes minutes
  --product  clang-tidy on userspace and tools only: what CI has the time for
  --deep     with the static analyzer too (userspace and tools), which takes tens of minutes
END
}

cmd_lint() {
  local fast=no
  TIDY_FOLDERS=(userspace tools tests)
  DEEP_CHECKS=()
  case "${1:-}" in
    --fast) fast=yes ;;
    --product) TIDY_FOLDERS=(userspace tools) ;;
    # memcpy_s is not in glibc; the kernel and libbpf use enums as bit masks.
    --deep)
      DEEP_CHECKS=("-checks=clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-clang-analyzer-optin.core.EnumCastOutOfRange")
      ;;
    -h | --help) lint_help; return ;;
    "") ;;
    *) bad_option lint "$1" ;;
  esac
  need_tool clang-tidy-19
  cmd_fmt --check
  step "lint: no file over $MAX_FILE_LINES lines" lint_file_lines
  step "lint: no BPF function over $MAX_FUNCTION_LINES lines" lint_bpf_functions
  [[ $fast == yes ]] || lint_tidy
}

lint_file_lines() {
  local file lines status=0
  while IFS= read -r file; do
    lines=$(wc -l <"$file")
    if [[ $lines -gt $MAX_FILE_LINES ]]; then
      printf '%s: %d lines, at most %d are allowed: split it by what its parts do\n' \
        "$file" "$lines" "$MAX_FILE_LINES" >&2
      status=1
    fi
  done < <(project_sources)
  return "$status"
}

# BPF sources are compiled by a custom command, so compile_commands.json does not have them.
lint_bpf_functions() {
  local files
  mapfile -t files < <(project_sources bpf tests | grep '\.bpf\.c$')
  if [[ ${#files[@]} -eq 0 ]]; then
    printf 'lint: no *.bpf.c file in bpf/ yet\n'
    return
  fi
  clang-tidy-19 --quiet --warnings-as-errors='*' \
    --config="{Checks: '-*,readability-function-size', HeaderFilterRegex: '(bpf|maps)/',
      CheckOptions: {readability-function-size.LineThreshold: $MAX_FUNCTION_LINES}}" \
    "${files[@]}" -- -target bpf -O2 -I"$ROOT" \
    -idirafter "/usr/include/$(uname -m)-linux-gnu"
}

lint_tidy() {
  need_tool run-clang-tidy-19
  build_configure lint
  local files units
  # The analyser walks every path through each ASSERT_ and EXPECT_: over a minute for a test file.
  [[ ${#DEEP_CHECKS[@]} -eq 0 ]] || TIDY_FOLDERS=(userspace tools)
  mapfile -t files < <(project_sources "${TIDY_FOLDERS[@]}" | grep -E '\.(cc|cpp)$')
  [[ ${#files[@]} -gt 0 ]] || die "lint: no C++ file in userspace/, tools/ or tests/ to check"
  units=$(lint_units "${files[@]}")
  mapfile -t units < <(sed 's/\./\\./g; s/.*/^&$/' <<<"$units")
  step "lint: clang-tidy on ${#files[@]} files" timeout -k 10 1200 run-clang-tidy-19 -quiet \
    -j "$JOBS" -p build/lint "-warnings-as-errors=*" "${DEEP_CHECKS[@]}" "${units[@]}"
}

# What is compiled of each file, once: what joins the files of its target, or the file. clang-tidy
# looks at the headers of a file for longer than at the files of a target together. A file that is
# in neither would be skipped in silence.
lint_units() {
  local file unit
  for file in "$@"; do
    unit=$(grep -rlF "#include \"$ROOT/$file\"" --include='unity_*.cxx' "$ROOT/build/lint") ||
      unit=$ROOT/$file
    grep -qF "\"file\": \"$unit\"" build/lint/compile_commands.json ||
      die "lint: $file is in no CMake target: add it to one, or delete it" 1
    printf '%s\n' "$unit"
  done | sort -u
}

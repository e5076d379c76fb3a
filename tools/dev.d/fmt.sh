# tools/dev fmt

fmt_help() {
  cat <<'END'
usage: tools/dev fmt [--check]
Formats all C and C++ files of the project with clang-format-19.

  --check   change nothing, fail if a file is not formatted
END
}

cmd_fmt() {
  local check=no
  case "${1:-}" in
    --check) check=yes ;;
    -h | --help) fmt_help; return ;;
    "") ;;
    *) bad_option fmt "$1" ;;
  esac
  need_tool clang-format-19
  local files
  mapfile -t files < <(project_sources)
  [[ ${#files[@]} -gt 0 ]] || die "fmt: no C or C++ file found below $ROOT: is this a git checkout?"
  if [[ $check == yes ]]; then
    step "fmt: check the format of ${#files[@]} files" fmt_check "${files[@]}"
  else
    step "fmt: format ${#files[@]} files" clang-format-19 --style=file -i "${files[@]}"
  fi
}

fmt_check() {
  clang-format-19 --style=file --dry-run --Werror --ferror-limit=1 "$@" ||
    die "fmt: the files above are not formatted: run tools/dev fmt" 1
}

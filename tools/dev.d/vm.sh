# tools/dev vm

vm_help() {
  cat <<'END'
usage: tools/dev vm --smoke [--kernel 6.1|6.12]... [--update] [--object FILE]...
Loads the BPF objects of the dev build on this kernel and in a guest (qemu, without KVM if there
is none), prints what the verifier did for each program, and compares with the committed table
tests/vm/verifier_table.tsv. Needs root for this kernel. A guest kernel is fetched once, into
build/vm/, and not installed.

  --kernel SERIES  guest kernel, may be repeated (6.1)
  --update         write the numbers into the table instead of comparing
  --object FILE    another object, may be repeated (all of build/dev/bpf)
END
}

cmd_vm() {
  local smoke=no options=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --smoke) smoke=yes; shift ;;
      --update) options+=("$1"); shift ;;
      --kernel)
        need_value "$@"
        [[ $2 == 6.1 || $2 == 6.12 ]] || die "vm: unknown kernel '$2': allowed are 6.1 and 6.12"
        options+=("$1" "$2")
        shift 2
        ;;
      --object)
        need_value "$@"
        [[ -f $2 ]] || die "vm: object $2 does not exist"
        options+=("$1" "$2")
        shift 2
        ;;
      -h | --help) vm_help; return ;;
      *) bad_option vm "$1" ;;
    esac
  done
  [[ $smoke == yes ]] || die "vm: say what to do: allowed is --smoke, see tools/dev vm --help"
  need_root "tools/dev vm"
  need_tool qemu-system-x86_64
  cmd_build --preset dev
  step "vm: load the BPF objects here and in guests" python3 -B tests/vm/vm_smoke.py "${options[@]}"
}

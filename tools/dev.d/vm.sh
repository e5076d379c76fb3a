# tools/dev vm

vm_help() {
  cat <<'END'
usage: tools/dev vm [--smoke] [--kernel 6.1|6.12|host]... [--test NAME]... [--json FILE]
                    [--update] [--object FILE]...
Runs the tests that depend on the kernel on this one and in guests with Debian's (qemu, without KVM
if there is none), and prints kernel x test. In a guest: the verifier's work against the table
tests/vm/verifier_table.tsv, packets by PROG_RUN, attaching, traffic between two virtio-net cards,
XDP programs of others, and devices on devices. A guest kernel is fetched once, into build/vm/, and
not installed. Needs root for this kernel. Exits with 0 only if nothing failed.

  --smoke          only the verifier's work (with --kernel: here and there)
  --kernel SERIES  one kernel, may be repeated; host is this one (all)
  --test NAME      one test, may be repeated; a wrong name says which there are
  --json FILE      write rows {"kernel","test","pass","seconds","detail"}; pass is null if skipped
  --update         write the verifier's numbers into the table instead of comparing
  --object FILE    another object for the verifier, may be repeated (all of build/dev/bpf)
END
}

cmd_vm() {
  local options=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --smoke | --update) options+=("$1"); shift ;;
      --kernel)
        need_value "$@"
        [[ $2 == 6.1 || $2 == 6.12 || $2 == host ]] ||
          die "vm: unknown kernel '$2': allowed are 6.1, 6.12 and host"
        options+=("$1" "$2")
        shift 2
        ;;
      --object)
        need_value "$@"
        [[ -f $2 ]] || die "vm: object $2 does not exist"
        options+=("$1" "$2")
        shift 2
        ;;
      --test | --json) need_value "$@"; options+=("$1" "$2"); shift 2 ;;
      -h | --help) vm_help; return ;;
      *) bad_option vm "$1" ;;
    esac
  done
  need_root "tools/dev vm"
  need_tool qemu-system-x86_64
  cmd_build --preset dev
  test_bpffs
  step "vm: the tests of the kernel here and in guests" \
    python3 -B tests/vm/matrix.py "${options[@]}"
}

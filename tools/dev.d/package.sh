# tools/dev package

package_help() {
  cat <<'END'
usage: tools/dev package [--test]
Builds the Debian package, build/package/edgeshed_VERSION_ARCH.deb, and checks what is in it.

  --test   also installs, starts, stops, upgrades and purges it in a guest (qemu, without KVM if
           there is none). Needs root. The guest's file system is made once, into build/vm/.
END
}

cmd_package() {
  local in_guest=no
  case "${1:-}" in
    --test) in_guest=yes ;;
    -h | --help) package_help; return ;;
    "") ;;
    *) bad_option package "$1" ;;
  esac
  need_tool dpkg-shlibdeps
  if [[ $in_guest == yes ]]; then
    need_root "tools/dev package --test"
    need_tool qemu-system-x86_64
    need_tool mmdebstrap
  fi
  build_configure package
  step "package: compile" cmake --build --preset package -j "$JOBS"
  rm -f build/package/*.deb
  step "package: pack" package_pack build/package
  local deb
  deb=$(ls build/package/*.deb)
  step "package: check the contents of $deb" python3 -B packaging/check_deb.py "$deb"
  [[ $in_guest == yes ]] || return 0

  # The same programs as a later version: what dpkg does then is what is tested.
  local later=build/package/later version
  version=$(dpkg-deb -f "$deb" Version)
  rm -rf "$later"
  step "package: pack it again as $version.1" package_pack "$later" \
    -D CPACK_PACKAGE_VERSION="$version.1"
  step "package: its life in a guest" timeout -k 10 1500 python3 -B tests/vm/package_test.py \
    "$deb" "$later"/*.deb
}

# package_pack FOLDER CPACK-OPTION...
package_pack() {
  local folder=$1 log=build/package/cpack.log
  shift
  if ! cpack --config build/package/CPackConfig.cmake -B "$ROOT/$folder" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  rm -rf "$folder/_CPack_Packages"
}

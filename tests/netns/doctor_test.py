"""What `edgeshed doctor` says beforehand is what attach then does, and bad hosts stay as they were.
Usage: edgeshed edgeshedd."""

import array
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import unittest

from bpfcalls import change_map_value, link_xdp, load_passing_xdp, pin_program
from testbed import (DEV, Testbed, deny_io_uring, game_config, in_namespace, run, skip_or_fail,
                     skip_without_root, take_paths)

CONFIG = game_config(dscp='0 = "snapshot"')
CONTROL_BYTES, SCHEMA_AT = 192, 132  # struct es_control of maps/control.h
IN_PRIVATE_MOUNTS = ("unshare", "--mount", "sh", "-c")
WITHOUT_BPFFS = (*IN_PRIVATE_MOUNTS, 'umount -l /sys/fs/bpf && exec "$0" "$@"')
READ_ONLY_BPFFS = (*IN_PRIVATE_MOUNTS, "mount --bind /sys/fs/bpf /sys/fs/bpf && "
                   'mount -o remount,bind,ro /sys/fs/bpf && exec "$0" "$@"')
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def set_gro(namespace, dev, on):
    """What `ethtool -K DEV gro on` does."""
    siocethtool, ethtool_sgro = 0x8946, 0x2C
    value = array.array("B", struct.pack("II", ethtool_sgro, int(on)))
    request = struct.pack("16sP", dev.encode(), value.buffer_info()[0])
    with in_namespace(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        fcntl.ioctl(one, siocethtool, request)


class DoctorTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)

    def doctor(self, *arguments, wrapper=(), before_exec=None):
        """Exit code, and {(check, device): row}."""
        result = subprocess.run(
            self.bed.inside(self.bed.edgeshed_path, "doctor", *arguments, "--json", wrapper=wrapper),
            text=True, capture_output=True, timeout=60, check=False, preexec_fn=before_exec)
        self.assertEqual(result.stderr, "")
        rows = json.loads(result.stdout)
        for row in rows:
            self.assertEqual(set(row), {"check", "device", "level", "found", "command", "advice"})
            remedies = [row[key] for key in ("command", "advice") if row[key]]
            self.assertEqual(len(remedies), int(row["level"] != "ok"), row)
        return result.returncode, {(row["check"], row["device"]): row for row in rows}

    def check(self, name, device="", config="", **more):
        arguments = (("--dev", device) if device else ()) + (("--config", config) if config else ())
        return self.doctor(*arguments, **more)[1][name, device]

    def paste(self, command):
        """Into a shell of root on the host."""
        path = f"{os.path.dirname(self.bed.edgeshed_path)}:{os.environ['PATH']}"
        run(["nsenter", f"--net=/run/netns/{self.bed.server_ns}", "env", f"PATH={path}",
             "sh", "-c", command])

    def attach(self, *more, dev=DEV, **options):
        return self.bed.edgeshed("attach", "--config", self.config, "--dev", dev, *more, **options)

    def host_state(self):
        """What an attach that failed must not have changed."""
        shown = [subprocess.run(["ip", "netns", "exec", self.bed.server_ns, *command], text=True,
                                capture_output=True, check=True).stdout
                 for command in (["ip", "-o", "link"], ["tc", "qdisc", "show"],
                                 ["tc", "filter", "show", "dev", DEV, "egress"])]
        prefix = os.path.basename(self.bed.pin_dir)
        pins = sorted(name for name in os.listdir("/sys/fs/bpf") if name.startswith(prefix))
        return shown, pins

    def assert_refused(self, code, words, **options):
        """attach says one line and changes nothing."""
        before = self.host_state()
        refused = self.attach(check=False, **options)
        self.assertEqual(refused.returncode, code, refused.stderr)
        self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)
        self.assertIn(words, refused.stderr)
        self.assertEqual(self.host_state(), before)

    def test_a_good_host_is_told_and_left_alone(self):
        before = self.host_state()
        code, rows = self.doctor("--dev", DEV, "--config", self.config)
        self.assertEqual(self.host_state(), before)
        fails = [row for row in rows.values() if row["level"] in ("fail", "skipped")]
        self.assertEqual((code, fails), (0, []))
        self.assertIn("the tables take", rows["memory", ""]["found"])
        self.assertEqual(rows["device", DEV]["found"], "up, driver veth, a veth")
        for check in ("bpf", "io_uring", "bpffs", "pins", "attached"):
            self.assertEqual(rows[check, ""]["level"], "ok", rows[check, ""])
        for check in ("native_xdp", "xdp_owner", "tc_owner", "placement", "mtu"):
            self.assertEqual(rows[check, DEV]["level"], "ok", rows[check, DEV])
        self.check_lines_for_people(rows)
        said = self.attach().stdout
        self.assertIn(f"{DEV}: XDP {'native' if rows['freplace', '']['level'] != 'ok' else 'disp'}",
                      said)
        _, rows = self.doctor("--dev", DEV)
        for check, device in (("attached", ""), ("xdp_owner", DEV), ("tc_owner", DEV)):
            self.assertEqual(rows[check, device]["level"], "ok", rows)
        self.assertIn(DEV, rows["attached", ""]["found"])
        self.assertIn("EdgeShed's", rows["xdp_owner", DEV]["found"])
        self.assertIn("EdgeShed's", rows["tc_owner", DEV]["found"])

    def check_lines_for_people(self, rows):
        text = self.bed.edgeshed("doctor", "--dev", DEV, "--config", self.config).stdout
        self.assertNotIn("\033", text)
        lines = text.splitlines()
        for (check, device), row in rows.items():
            start = f"{row['level']:<7}  {(device + ' ' + check).strip()} "
            self.assertEqual(sum(line.startswith(start) for line in lines), 1, (start, text))
        self.assertTrue(lines[-1].endswith(" 0 fail, 0 skipped"), lines[-1])

    def test_devices_of_the_configuration(self):
        self.bed.write("edgeshed.toml", CONFIG + f'[[interface]]\ndev = "{DEV}"\n'
                       '[[interface]]\ndev = "nowhere"\n')
        code, rows = self.doctor("--config", self.config)
        self.assertEqual(code, 1)
        self.assertEqual(rows["device", DEV]["level"], "ok")
        self.assertEqual(rows["device", "nowhere"]["level"], "fail")
        self.assertNotIn(("mtu", "nowhere"), rows)
        usage = self.bed.edgeshed("doctor", "--config", "/nowhere.toml", check=False)
        self.assertEqual(usage.returncode, 2, usage.stderr)
        self.assertEqual(self.bed.edgeshed("doctor", "--sideways", check=False).returncode, 2)

    def test_devices_that_are_odd(self):
        def link(*arguments):
            run(["ip", "-n", self.bed.server_ns, "link", *arguments])
        link("add", "es-br", "type", "bridge")
        self.assertEqual(self.check("device", "es-br")["command"], "ip link set dev es-br up")
        self.paste("ip link set dev es-br up")
        link("set", DEV, "master", "es-br")
        on_others = {"es-br": "a bridge over"}
        try:
            link("add", "link", DEV, "name", "es-vlan", "type", "vlan", "id", "7")
            on_others["es-vlan"] = "a vlan on"
        except subprocess.CalledProcessError:
            pass  # a kernel without VLANs
        row = self.check("native_xdp", "es-br")
        self.assertEqual((row["level"], row["found"]), ("warn", "no native XDP"))
        self.assertIn("XDP generic", self.attach(dev="es-br").stdout.replace("dispatcher (", ""))
        for dev, kind in on_others.items():
            row = self.check("placement", dev)
            self.assertIn(f"{kind} {DEV}", row["found"])
            self.assertEqual(row["level"], "warn")
            self.assertIn(f"attach to {DEV} instead", row["advice"])
            row = self.check("placement", dev, config=self.config)
            mine = "" if dev != "es-br" else (f"edgeshed --pin-dir {self.bed.pin_dir} detach "
                                              "--dev es-br && ")
            self.assertEqual(row["command"], f"{mine}edgeshed --pin-dir {self.bed.pin_dir} attach "
                             f"--config {self.config} --dev {DEV}")
        self.paste(self.check("placement", "es-br", config=self.config)["command"])
        self.assertIn("EdgeShed's", self.check("xdp_owner", DEV)["found"])
        self.assertEqual(self.check("device", "lo")["level"], "fail")

    def test_a_large_mtu_is_told_as_attach_finds_it(self):
        for name, dev in ((self.bed.server_ns, DEV), (self.bed.client_ns, "es-cli")):
            run(["ip", "-n", name, "link", "set", dev, "mtu", "9000"])
        row = self.check("mtu", DEV)
        self.assertIn("9000 bytes", row["found"])
        if row["level"] == "warn":  # kernels before 6.3 do not say what they take
            self.assertEqual(row["command"], f"ip link set dev {DEV} mtu 3498")
        else:
            self.assertIn("in fragments", row["found"])
            self.assertNotIn("generic", self.attach().stdout)

    def test_who_takes_refusals_at_the_other_end(self):
        for gro in (False, True, False):
            set_gro(self.bed.client_ns, "es-cli", gro)
            row = self.check("veth_peer", DEV)
            self.assertEqual(row["level"], "ok" if gro else "warn", row)
        self.assertEqual(row["command"],
                         f"nsenter --net=/run/netns/{self.bed.client_ns} "
                         "ethtool -K es-cli gro on")

    def test_somebody_elses_programs(self):
        program = load_passing_xdp("somebody")
        self.addCleanup(os.close, program)
        for generic in (False, True):
            held = in_namespace(self.bed.server_ns, lambda: link_xdp(
                program, socket.if_nametoindex(DEV), generic))  # pylint: disable=W0640
            try:
                code, rows = self.doctor("--dev", DEV)
                row = rows["xdp_owner", DEV]
                self.assertEqual((code, row["level"]), (1, "fail"), row)
                self.assertIn("somebody (id ", row["found"])
                self.assertRegex(row["command"], "^bpftool link detach id [0-9]+$")
                self.assert_refused(3, "somebody")
                self.paste(row["command"])
                self.assertEqual(self.check("xdp_owner", DEV)["found"], "free")
            finally:
                os.close(held)

    def test_somebody_elses_program_without_a_link(self):
        program = load_passing_xdp("somebody")
        self.addCleanup(os.close, program)
        for mode in ("xdpdrv", "xdpgeneric"):
            pin = f"{self.bed.pin_dir}_somebody"
            pin_program(program, pin)
            try:
                self.paste(f"ip link set dev {DEV} {mode} pinned {pin}")
            finally:
                os.unlink(pin)
            row = self.check("xdp_owner", DEV)
            self.assertEqual(row["command"], f"ip link set dev {DEV} "
                             f"{'xdp' if mode == 'xdpdrv' else mode} off")
            self.paste(row["command"])
            self.assertEqual(self.check("xdp_owner", DEV)["found"], "free")

    def test_another_edgeshed(self):
        self.attach()
        first, second = self.bed.pin_dir, self.bed.pin_dir + "-2"
        self.addCleanup(shutil.rmtree, second, ignore_errors=True)
        self.addCleanup(setattr, self.bed, "pin_dir", first)
        self.bed.pin_dir = second
        code, rows = self.doctor("--dev", DEV)
        self.assertEqual(code, 1)
        for check in ("xdp_owner", "tc_owner"):
            row = rows[check, DEV]
            self.assertEqual((row["level"], f"pins are in {first}:" in row["found"]),
                             ("fail", True), row)
            self.assertEqual(row["command"], f"edgeshed --pin-dir {first} detach --dev {DEV}")
        self.assert_refused(3, row["command"])
        self.paste(row["command"])
        code, rows = self.doctor("--dev", DEV)
        self.assertEqual({rows[check, DEV]["found"] for check in ("xdp_owner", "tc_owner")},
                         {"free"}, rows)

    def test_whose_programs_are_is_not_guessed(self):
        self.attach()
        os.chmod(self.bed.folder, 0o755)
        code, rows = self.doctor("--dev", DEV, wrapper=NOBODY)
        self.assertEqual(code, 4)
        for check in ("xdp_owner", "tc_owner"):
            row = rows[check, DEV]
            self.assertEqual((row["level"], "may not be looked up" in row["found"]),
                             ("skipped", True), row)
            self.assertEqual(row["command"],
                             f"sudo edgeshed --pin-dir {self.bed.pin_dir} doctor --dev {DEV}")

    def test_a_device_above_has_a_program(self):
        def link(*arguments):
            run(["ip", "-n", self.bed.server_ns, "link", *arguments])
        above = "es-mv"
        try:
            link("add", "link", DEV, "name", above, "type", "macvlan")
        except subprocess.CalledProcessError:
            skip_or_fail(self, "this kernel has no macvlan")
        link("set", above, "up")
        self.assertEqual(self.check("xdp_owner", DEV)["found"], "free")
        program = load_passing_xdp("somebody")
        self.addCleanup(os.close, program)
        held = in_namespace(self.bed.server_ns, lambda: link_xdp(
            program, socket.if_nametoindex(above), True))
        try:
            row = self.check("xdp_owner", DEV)
            self.assertEqual((row["level"], f"under {above}, which has an XDP" in row["found"]),
                             ("fail", True), row)
            self.assert_refused(3, f"under {above}")
        finally:
            os.close(held)
        self.attach(dev=above)
        row = self.check("xdp_owner", DEV)
        self.assertEqual((row["level"], f"under {above}, which has EdgeShed's" in row["found"]),
                         ("warn", True), row)
        self.assert_refused(3, f"under {above}")

    def test_filters_at_egress(self):
        def tc(*arguments):
            run(["ip", "netns", "exec", self.bed.server_ns, "tc", *arguments])
        def add(priority, *handle):
            tc("filter", "add", "dev", DEV, "egress", *handle, "pref", str(priority), "bpf", "da",
               "bytecode", "1,6 0 0 0")
        tc("qdisc", "add", "dev", DEV, "clsact")
        add(49000)
        row = self.check("tc_owner", DEV)
        self.assertEqual((row["level"], row["found"]), ("ok", "behind EdgeShed's filter: bpf"))
        add(7)
        row = self.check("tc_owner", DEV)
        self.assertEqual((row["level"], "bpf (priority 7)" in row["found"]), ("warn", True), row)
        add(3798, "handle", "0xed6e")
        row = self.check("tc_owner", DEV)
        self.assertEqual(row["level"], "fail")
        self.assert_refused(3, "not EdgeShed's")
        self.paste(row["command"])
        self.assertEqual(self.check("tc_owner", DEV)["level"], "warn")

    def test_without_bpffs(self):
        code, rows = self.doctor(wrapper=WITHOUT_BPFFS)
        row = rows["bpffs", ""]
        self.assertEqual((code, row["level"]), (1, "fail"), row)
        self.assertEqual(row["command"], "mount -t bpf bpf /sys/fs/bpf")
        self.assert_refused(1, "mount -t bpf", wrapper=WITHOUT_BPFFS)

    def test_a_read_only_bpffs(self):
        code, rows = self.doctor(wrapper=READ_ONLY_BPFFS)
        row = rows["bpffs", ""]
        self.assertEqual((code, row["level"]), (1, "fail"), row)
        self.assertEqual(row["command"], "mount -o remount,rw /sys/fs/bpf")
        self.assert_refused(1, "remount,rw", wrapper=READ_ONLY_BPFFS)

    def test_without_privilege(self):
        os.chmod(self.bed.folder, 0o755)
        code, rows = self.doctor("--dev", DEV, wrapper=NOBODY)
        self.assertEqual(code, 4, rows)
        skipped = {check for (check, _), row in rows.items() if row["level"] == "skipped"}
        self.assertLessEqual({"capabilities", "bpf", "freplace", "attached"}, skipped)
        for check in ("kernel", "io_uring", "clocksource"):
            self.assertNotIn(check, skipped)
        self.assertEqual(rows["bpf", ""]["command"],
                         f"sudo edgeshed --pin-dir {self.bed.pin_dir} doctor")
        self.attach()
        self.assertEqual(self.check("pins", wrapper=NOBODY)["level"], "skipped")

    def test_root_without_capabilities(self):
        code, rows = self.doctor(wrapper=WITHOUT_CAPABILITIES)
        self.assertEqual((code, rows["capabilities", ""]["level"]), (1, "fail"))
        self.assertIn("CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON", rows["capabilities", ""]["found"])
        self.assertEqual(rows["bpf", ""]["level"], "fail")
        self.assert_refused(4, "CAP_NET_ADMIN", wrapper=WITHOUT_CAPABILITIES)

    def test_denied_io_uring(self):
        code, rows = self.doctor(before_exec=deny_io_uring)
        self.assertEqual((code, rows["io_uring", ""]["level"]), (1, "fail"))
        self.assertIn("seccomp", rows["io_uring", ""]["advice"])

    def test_pins_of_another_schema(self):
        self.attach()
        change_map_value(os.path.join(self.bed.pin_dir, "es_control"), CONTROL_BYTES,
                         lambda raw: raw[:SCHEMA_AT] + struct.pack("I", 9999) + raw[SCHEMA_AT + 4:])
        code, rows = self.doctor("--dev", DEV)
        self.assertEqual((code, rows["pins", ""]["level"]), (1, "fail"))
        self.assertIn("schema 9999", rows["pins", ""]["found"])
        self.assert_refused(1, "schema 9999")
        with self.assertRaisesRegex(AssertionError, "(?s)exit 1.*schema 9999"):
            self.bed.start_daemon(self.config)
        self.assertEqual(rows["pins", ""]["command"], f"edgeshed --pin-dir {self.bed.pin_dir} detach")
        self.bed.edgeshed("detach")
        self.assertEqual(self.check("pins")["level"], "ok")
        self.assertFalse(self.bed.has_xdp())

    def test_pins_of_which_some_are_gone(self):
        for pin in ("es_conns", "es_xdp"):
            self.attach()
            os.unlink(os.path.join(self.bed.pin_dir, pin))
            code, rows = self.doctor()
            self.assertEqual((code, rows["pins", ""]["level"]), (1, "fail"), rows)
            self.assertIn(f"/{pin}: ", rows["pins", ""]["found"])
            self.detach_by_hand()
            self.assert_refused(1, f"/{pin}: No such file or directory; some pins are gone")
            self.bed.edgeshed("detach")
            self.assertEqual(self.check("pins")["level"], "ok")

    def detach_by_hand(self):
        run(["ip", "netns", "exec", self.bed.server_ns, "tc", "qdisc", "del", "dev", DEV, "clsact"])
        run(["ip", "-n", self.bed.server_ns, "link", "set", "dev", DEV, "xdp", "off"])

    def test_an_attach_that_was_not_finished(self):
        self.attach()
        run(["ip", "netns", "exec", self.bed.server_ns, "tc", "qdisc", "del", "dev", DEV, "clsact"])
        row = self.check("attached")
        self.assertEqual((row["level"], f"{DEV} has XDP and no TC filter" in row["found"]),
                         ("warn", True), row)
        self.attach()
        self.assertEqual(self.check("attached")["level"], "ok")

        shutil.rmtree(self.bed.pin_dir)
        code, rows = self.doctor()
        self.assertEqual((code, rows["attached", ""]["level"]), (1, "fail"), rows)
        self.bed.edgeshed("detach")
        self.assertFalse(self.bed.has_xdp())
        self.assertEqual(self.check("attached")["level"], "ok")

        # Pins only: the interface went, and took the programs with it.
        self.attach()
        run(["ip", "-n", self.bed.server_ns, "link", "del", DEV])
        self.assertEqual(self.check("attached")["level"], "warn")
        self.bed.edgeshed("detach")
        self.assertEqual(self.check("attached")["level"], "ok")

    def test_what_a_killed_attach_left_in_bpffs(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        stale = f"{self.bed.pin_dir}_new_{gone.pid}"
        os.mkdir(stale)
        self.addCleanup(shutil.rmtree, stale, ignore_errors=True)
        row = self.check("pins")
        self.assertEqual((row["level"], row["command"]), ("warn", f"rm -r {stale}"))
        self.attach()
        self.bed.edgeshed("detach")
        self.assertFalse(os.path.exists(stale))


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)

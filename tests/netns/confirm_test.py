"""`attach --confirm`: all is as before unless somebody confirms. Usage: edgeshed edgeshedd."""

import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from testbed import DEV, Testbed, game_config, run, skip_without_root, take_paths, wait_for

CONFIG = game_config(dscp='0 = "snapshot"')
SECOND = "es-two"


class ConfirmTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.addCleanup(self.end_watcher)
        self.config = self.bed.write("edgeshed.toml", CONFIG)
        run(["ip", "link", "add", SECOND, "netns", self.bed.server_ns, "type", "veth",
             "peer", "name", "es-cli2", "netns", self.bed.client_ns])
        self.before = self.host_state()

    def end_watcher(self):
        waiting = self.confirm()
        if waiting is not None and waiting["watched"]:
            os.kill(self.watcher(), signal.SIGKILL)

    def attach(self, *more, dev=DEV, check=True):
        return self.bed.edgeshed("attach", "--config", self.config, "--dev", dev, *more,
                                 check=check)

    def status(self):
        return self.bed.json("status")

    def confirm(self):
        return self.status()["confirm"]

    def watcher(self):
        with open(self.bed.socket_path + ".confirm", encoding="utf-8") as file:
            return json.load(file)["watcher_pid"]

    def host_state(self):
        shown = [subprocess.run(["ip", "netns", "exec", self.bed.server_ns, *command], text=True,
                                capture_output=True, check=True).stdout
                 for command in (["ip", "-o", "link"], ["tc", "qdisc", "show"])]
        prefix = os.path.basename(self.bed.pin_dir)
        return shown, sorted(name for name in os.listdir("/sys/fs/bpf") if name.startswith(prefix))

    def program(self, dev=DEV):
        shown = subprocess.run(["ip", "-n", self.bed.server_ns, "-j", "-d", "link", "show", dev],
                               text=True, capture_output=True, check=True).stdout
        return json.loads(shown)[0].get("xdp", {}).get("prog", {}).get("id")

    def assert_rolled_back(self, timeout_s=20.0):
        wait_for(lambda: self.confirm()["state"] != "waiting", "the rollback", timeout_s)
        self.assertEqual(self.confirm()["state"], "rolled_back", self.confirm())
        self.assertEqual(self.host_state(), self.before)

    def assert_no_process(self, pid):
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"), f"process {pid} ends")

    def test_nobody_confirms(self):
        begin = time.monotonic()
        said = self.attach("--confirm", "10s").stdout
        self.assertRegex(said, "rolls back in (9|10) s unless `edgeshed confirm`")
        watcher = self.watcher()
        self.assertTrue(self.bed.has_xdp())
        waiting = self.confirm()
        self.assertEqual((waiting["state"], waiting["watched"], waiting["devices"]),
                         ("waiting", True, [DEV]))
        self.assertLessEqual(waiting["rolls_back_in_s"], 10)
        self.assertRegex(self.bed.edgeshed("status").stdout,
                         "rolls back in [0-9]+ s unless `edgeshed confirm`")
        self.assert_rolled_back()
        self.assertGreater(time.monotonic() - begin, 9.9)
        self.assert_no_process(watcher)
        self.assertIn("nobody said", self.bed.edgeshed("status").stdout)
        late = self.bed.edgeshed("confirm", check=False)
        self.assertEqual((late.returncode, late.stdout), (1, ""))
        self.assertIn("too late", late.stderr)
        self.attach()
        self.assertIsNone(self.confirm())

    def test_confirmed_in_time(self):
        self.attach("--confirm", "30s")
        watcher = self.watcher()
        said = self.bed.json("confirm")
        self.assertEqual(said, {"state": "kept", "devices": [DEV]})
        self.assert_no_process(watcher)
        self.assertIsNone(self.confirm())
        self.assertTrue(self.bed.has_xdp())
        again = self.bed.edgeshed("confirm", check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("nothing waits", again.stderr)

    def test_the_operators_terminal_goes(self):
        """The session of a terminal that is hung up: what `sshd` does when the line breaks."""
        command = self.bed.inside(self.bed.edgeshed_path, "attach", "--config", self.config,
                                  "--dev", DEV, "--confirm", "15s")
        shell, terminal = pty.fork()
        if shell == 0:
            os.execvp("sh", ["sh", "-c", '"$@"; sleep 600', "sh", *command])
        try:
            wait_for(lambda: self.confirm() is not None and self.bed.has_xdp(), "it is attached")
        finally:
            os.close(terminal)
        wait_for(lambda: os.waitpid(shell, os.WNOHANG)[0] == shell, "the shell is hung up")
        self.assertTrue(self.confirm()["watched"])
        self.assert_rolled_back(40)

    def test_the_caller_is_killed_half_way(self):
        for delay_s in (0, 0.02, 0.1):
            caller = subprocess.Popen(
                self.bed.inside(self.bed.edgeshed_path, "attach", "--config", self.config,
                                "--dev", DEV, "--confirm", "5s"), stdout=subprocess.DEVNULL)
            wait_for(lambda: os.path.exists(self.bed.socket_path + ".confirm"), "the state")
            time.sleep(delay_s)
            caller.kill()
            caller.wait()
            os.kill(self.watcher(), signal.SIGTERM)
            self.assert_rolled_back()
            os.unlink(self.bed.socket_path + ".confirm")

    def test_a_second_attach_is_refused(self):
        self.attach("--confirm", "30s")
        held = self.host_state()
        for more in ((), ("--confirm", "30s"), ("--idle",)):
            refused = self.attach(*more, dev=SECOND, check=False)
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)
            self.assertIn("edgeshed confirm first", refused.stderr)
        self.assertEqual(self.host_state(), held)
        os.kill(self.watcher(), signal.SIGTERM)  # at once
        self.assert_rolled_back(5)

    def test_what_was_attached_before_stays(self):
        self.attach()
        program, self.before = self.program(), self.host_state()
        self.attach("--enforce", "--confirm", "30s", dev=SECOND)
        self.assertTrue(self.bed.has_xdp(SECOND))
        said = self.bed.edgeshed("confirm", "--rollback").stdout
        self.assertEqual(said, f"{SECOND}: rolled back\n")
        self.assertEqual(self.host_state(), self.before)
        self.assertEqual(self.program(), program)
        self.assertIn("say nothing: shadow", self.attach().stdout)

        # Faces that were turned are turned back.
        self.attach("--faces", "servers", "--confirm", "30s")
        self.assertEqual(self.status()["interfaces"][0]["faces"], "servers")
        self.bed.edgeshed("confirm", "--rollback")
        self.assertEqual(self.status()["interfaces"][0]["faces"], "clients")
        self.assertEqual(self.program(), program)

    def test_the_watcher_dies(self):
        self.attach("--confirm", "30s")
        watcher = self.watcher()
        os.kill(watcher, signal.SIGKILL)
        wait_for(lambda: not self.confirm()["watched"], "the loss is seen")
        self.assertIn(f"(process {watcher}) died", self.bed.edgeshed("status").stdout)
        self.assertEqual(self.attach(check=False).returncode, 3)
        self.assertEqual(self.bed.json("confirm", "--rollback"),
                         {"state": "rolled_back", "devices": [DEV]})
        self.assertEqual(self.host_state(), self.before)
        self.assertIsNone(self.confirm())

    def test_run_ends_with_its_rollback(self):
        daemon = subprocess.Popen(
            self.bed.inside(self.bed.edgeshed_path, "run", "--config", self.config, "--dev", DEV,
                            "--confirm", "12s"),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.bed.daemons.append(daemon)
        wait_for(lambda: self.status()["daemon"]["running"], "the daemon answers")
        self.assertTrue(self.confirm()["watched"])
        said, _ = daemon.communicate(timeout=40)
        self.assertEqual(daemon.returncode, 0, said)
        self.assertIn("stopping", said)
        self.assert_rolled_back()

    def test_detach_while_it_waits(self):
        self.attach("--confirm", "30s")
        watcher = self.watcher()
        self.bed.edgeshed("detach")
        self.assertEqual(self.host_state(), self.before)
        self.attach()
        self.assert_no_process(watcher)
        self.assertTrue(self.bed.has_xdp())

    def test_a_runtime_folder_that_is_cleaned_up_confirms_nothing(self):
        self.attach("--confirm", "15s")
        os.unlink(self.bed.socket_path + ".confirm")
        time.sleep(1)
        self.assertTrue(self.bed.has_xdp())
        self.assertTrue(self.confirm()["watched"], "the watcher has written it again")
        self.assertEqual(self.attach(dev=SECOND, check=False).returncode, 3)
        self.assert_rolled_back(40)

    def test_a_detach_of_other_pins_confirms_nothing(self):
        self.attach("--confirm", "30s")
        watcher = self.watcher()
        for namespace in (self.bed.server_ns, self.bed.client_ns):
            run(["nsenter", f"--net=/run/netns/{namespace}", self.bed.edgeshed_path,
                 "--pin-dir", self.bed.pin_dir + "-other", "--socket", self.bed.socket_path,
                 "detach"])
        time.sleep(0.5)
        waiting = self.confirm()
        self.assertEqual((waiting["state"], waiting["watched"]), ("waiting", True))
        os.kill(watcher, signal.SIGTERM)
        self.assert_rolled_back(5)

    def test_what_a_killed_attach_left_goes_with_detach(self):
        caller = subprocess.Popen(["true"])
        caller.wait()
        left = f"{self.bed.pin_dir}_new_{caller.pid}"
        os.mkdir(left)
        self.bed.edgeshed("detach")
        self.assertFalse(os.path.exists(left))

    def test_a_state_of_somebody_else_is_not_believed(self):
        self.attach("--confirm", "30s")
        path = self.bed.socket_path + ".confirm"
        os.chown(path, 65534, 65534)
        self.assertIsNone(self.confirm())
        for refused in (self.bed.edgeshed("confirm", "--rollback", check=False),
                        self.bed.edgeshed("confirm", check=False), self.attach(check=False),
                        self.bed.edgeshed("upgrade", "--again", check=False)):
            self.assertEqual(refused.returncode, 3, refused)
            self.assertIn("belongs to another user", refused.stderr)
        # As the line says.
        os.unlink(path)
        wait_for(lambda: self.confirm() is not None, "it is there again")
        self.assertEqual((self.confirm()["state"], self.confirm()["watched"]), ("waiting", True))
        self.bed.edgeshed("confirm", "--rollback")
        self.assertEqual(self.host_state(), self.before)

    def test_durations(self):
        for wrong in ("1s", "2h", "soon", "-5s", ""):
            refused = self.attach(f"--confirm={wrong}", check=False)
            self.assertEqual(refused.returncode, 2, (wrong, refused.stderr))
        self.assertEqual(self.host_state(), self.before)
        self.assertFalse(os.path.exists(self.bed.socket_path + ".confirm"))

    def test_an_attach_that_fails_leaves_no_watcher(self):
        self.bed.write("edgeshed.toml", CONFIG + f'[[interface]]\ndev = "{DEV}"\n'
                       '[[interface]]\ndev = "nowhere"\n')
        def fails(*more):
            refused = self.bed.edgeshed("attach", "--config", self.config, *more, check=False)
            self.assertEqual((refused.returncode, "nowhere" in refused.stderr), (1, True),
                             refused.stderr)
        fails("--confirm", "30s")
        self.assertEqual(self.host_state(), self.before)
        self.assertIsNone(self.confirm())

        # On maps that were there before: the first interface does not stay, nor the mode.
        self.attach(dev=SECOND)
        self.before = self.host_state()
        for more in (("--enforce",), ("--enforce", "--confirm", "30s")):
            fails(*more)
            self.assertEqual(self.host_state(), self.before)
            self.assertIn("say nothing: shadow", self.attach(dev=SECOND).stdout)

    def test_half_an_attach_is_not_begun_upon(self):
        self.attach()
        shutil.rmtree(self.bed.pin_dir)
        half = self.host_state()
        refused = self.attach("--confirm", "30s", check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn(f"edgeshed --pin-dir {self.bed.pin_dir} detach first", refused.stderr)
        self.assertEqual(self.host_state(), half)
        self.bed.edgeshed("detach")
        self.assertEqual(self.host_state(), self.before)

    def test_a_state_that_is_none(self):
        for text in ("", "{", "[]", '{"state":"waiting"}', "x" * 100000):
            self.bed.write("control.sock.confirm", text)
            self.assertIsNone(self.confirm())
            self.assertEqual(self.bed.edgeshed("confirm", check=False).returncode, 1)
        self.attach("--confirm", "30s")
        self.bed.edgeshed("confirm", "--rollback")
        self.assertEqual(self.host_state(), self.before)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)

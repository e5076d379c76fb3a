"""Another build in the place of the one that is attached, under traffic.
Usage: edgeshed edgeshedd next.bpf.o edgeshed_next edgeshedd_next refuse_tc.so."""

import glob
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Pace, Testbed, game_config,
                     skip_without_root, take_paths, wait_for)

PORT, PLAYER_PORT = 7777, 40000
CONFIG = game_config(host='mode = "enforce"', tables='[[class]]\nname = "player"')
EVENT_TOS, SNAPSHOT_TOS = 46 << 2, 0
RATE_PER_S = 400
SECOND = "es-two"
# In a guest, under emulation and in a dispatcher, one takes some fifteen seconds.
TIMES, KILLS = (2, 4) if os.environ.get("EDGESHED_IN_GUEST") else (6, 25)


class Traffic:
    """A player's events and snapshots at RATE_PER_S each; its server answers every event."""

    def __init__(self, bed):
        self.player = {tos: bed.udp(bed.client_ns, CLIENT_ADDRESS, PLAYER_PORT + number, tos)
                       for number, tos in enumerate((EVENT_TOS, SNAPSHOT_TOS))}
        self.server = bed.udp(bed.server_ns, SERVER_ADDRESS, PORT, EVENT_TOS)
        self.sent = self.received = self.answered = self.answers = 0
        self.stopping = threading.Event()
        self.server.settimeout(0.3)
        self.player[EVENT_TOS].settimeout(0.3)
        self.threads = [threading.Thread(target=part)
                        for part in (self._send, self._serve, self._listen)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        pace = Pace(RATE_PER_S)
        while not self.stopping.is_set():
            for tos, one in self.player.items():
                one.sendto(bytes([tos]) * 60, (SERVER_ADDRESS, PORT))
                self.sent += 1
            pace.wait()

    def _serve(self):
        while True:
            try:
                data, sender = self.server.recvfrom(128)
            except TimeoutError:
                if self.stopping.is_set():
                    return
                continue
            self.received += 1
            if data[0] == EVENT_TOS:
                self.server.sendto(data, sender)
                self.answered += 1

    def _listen(self):
        while True:
            try:
                self.player[EVENT_TOS].recv(128)
                self.answers += 1
            except TimeoutError:
                if self.stopping.is_set():
                    return

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class UpgradeTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)

    def attach_and_start(self):
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        self.in_dispatcher = self.bed.json("status")["interfaces"][0]["mode"] == "dispatcher"
        return self.bed.start_daemon(self.config)

    def upgrade(self, to=None, *more, check=True):
        """`edgeshed upgrade` to an object file; None: the one of this build."""
        return self.bed.edgeshed("upgrade", *more, check=check, wrapper=self.with_object(to))

    def with_object(self, path):
        return ("env", f"EDGESHED_OBJECT={path}") if path else ()

    def is_current(self, build):
        """Whether the programs are those of a build's object file; half-way they are nobody's."""
        shown = self.bed.edgeshed("status", "--json", wrapper=self.with_object(build)).stdout
        return json.loads(shown)["programs_current"]

    def next_build(self, program, *arguments):
        return subprocess.run(self.bed.inside(program, *arguments), text=True, capture_output=True,
                              timeout=60, check=False)

    def standing(self):
        """All that an operator could miss: ids of programs, of maps, and what status says."""
        status = self.bed.json("status")
        shown = self.tool("bpftool", "net", "show")
        return (shown, sorted(os.listdir(self.bed.pin_dir)), status["interfaces"],
                status["programs_current"], self.connections())

    def tool(self, *command):
        return subprocess.run(["nsenter", f"--net=/run/netns/{self.bed.server_ns}", *command],
                              text=True, capture_output=True, check=True).stdout

    def connections(self):
        return len(self.bed.json("dump", "connections"))

    def counted(self, way):
        """Packets by verdict; in all they are what the packet path has seen."""
        found = {"pass": 0, "drop": 0}
        for cell in self.bed.cells(way):
            found[cell["verdict"]] = found.get(cell["verdict"], 0) + cell["packets"]
        return found

    def check_all_adds_up(self, traffic):
        came, went = self.counted("in"), self.counted("out")
        arrived = traffic.sent - self.bed.lost_by_veth()
        if self.in_dispatcher:
            # The new one joins before the old one leaves: for a moment both count what passes.
            self.assertGreaterEqual(sum(came.values()), arrived, came)
        else:
            self.assertEqual(sum(came.values()), arrived, came)
        self.assertEqual(traffic.received, arrived - came["drop"], came)
        self.assertEqual(sum(went.values()), traffic.answered, went)
        self.assertEqual(traffic.answers,
                         traffic.answered - went["drop"] - self.bed.lost_by_veth("out"), went)
        # Snapshots were shed all the time, events never.
        self.assertGreater(came["drop"], traffic.sent * 0.4, came)
        self.assertGreaterEqual(traffic.received, traffic.sent // 2)

    def traffic_under_rung_5(self):
        for number in (0, 1):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{PLAYER_PORT + number}", "--endpoint",
                              "game", "--class", "player")
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "300s")
        time.sleep(0.5)
        traffic = Traffic(self.bed)
        self.addCleanup(traffic.stop)
        time.sleep(0.5)
        return traffic

    def test_there_and_back_under_traffic(self):
        daemon = self.attach_and_start()
        traffic = self.traffic_under_rung_5()
        for number in range(TIMES):
            done = self.upgrade(NEXT_OBJECT if number % 2 == 0 else None)
            self.assertRegex(done.stdout, f"{DEV}: XDP (native|dispatcher), TC egress")
            current = self.bed.json("status")["programs_current"]
            self.assertEqual(current, number % 2 == 1)
            self.assertEqual(self.connections(), 2)
            time.sleep(0.2)
        self.assertIn("left alone", self.upgrade().stdout)
        time.sleep(0.3)
        traffic.stop()
        self.check_all_adds_up(traffic)
        self.assertIsNone(daemon.poll())
        self.assertTrue(self.bed.json("status")["ledger_exact"])

    def upgrade_for(self, seconds, to=None):
        """Starts an upgrade and kills it so long after its first pin; None: lets it end. Returns how
        long it went on from there."""
        upgrade = subprocess.Popen(
            self.bed.inside(EDGESHED, "upgrade", "--again", wrapper=self.with_object(to)),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pins = f"{self.bed.pin_dir}_new_{upgrade.pid}"
        while not os.path.exists(pins) and upgrade.poll() is None:
            time.sleep(0.0005)
        begin = time.monotonic()
        if seconds is not None:
            time.sleep(seconds)
            upgrade.kill()
        upgrade.wait()
        return time.monotonic() - begin

    def test_killed_at_any_moment_under_traffic(self):
        self.attach_and_start()
        traffic = self.traffic_under_rung_5()
        random.seed(1)
        # From its first pin on.
        changing_s = self.upgrade_for(None)
        half_way = 0
        for number in range(KILLS):
            self.upgrade_for(random.uniform(0, changing_s), NEXT_OBJECT if number % 2 else None)
            self.assertTrue(self.bed.has_xdp())
            half_way += not any(self.is_current(build) for build in (None, NEXT_OBJECT))
        self.assertGreater(half_way, 0, "none was killed while it changed something")
        self.upgrade(None, "--again")
        self.assertTrue(self.bed.json("status")["programs_current"])
        time.sleep(0.3)
        traffic.stop()
        self.check_all_adds_up(traffic)
        self.bed.edgeshed("detach")
        self.assertEqual(glob.glob(self.bed.pin_dir + "*"), [])

    def test_status_says_that_there_is_something_to_do(self):
        self.attach_and_start()
        said = f"another build's: `edgeshed --pin-dir {self.bed.pin_dir} upgrade`"
        self.assertNotIn(said, self.bed.edgeshed("status").stdout)
        self.upgrade(NEXT_OBJECT)
        self.assertIn(said, self.bed.edgeshed("status").stdout)
        # An attach changes no program that works.
        self.assertIn("another build's", self.bed.edgeshed("attach", "--config", self.config,
                                                           "--dev", DEV).stdout)
        self.assertFalse(self.bed.json("status")["programs_current"])
        self.upgrade()
        self.assertNotIn(said, self.bed.edgeshed("status").stdout)

    def test_what_cannot_be_loaded_changes_nothing(self):
        self.attach_and_start()
        before = self.standing()
        broken = self.bed.write("broken.bpf.o", "no object")
        for path, line in ((broken, "cannot open the BPF object"),
                           (self.bed.folder + "/none.bpf.o", "no BPF object at")):
            refused = self.upgrade(path, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(line, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
            self.assertEqual(self.standing(), before)

    def test_a_device_that_refuses_leaves_all_with_their_old_programs(self):
        self.bed.add_pair(SECOND, "es-cli2")
        daemon = self.attach_and_start()
        self.bed.edgeshed("attach", "--config", self.config, "--dev", SECOND)
        before = self.standing()
        refused = self.bed.edgeshed(
            "upgrade", check=False, wrapper=(*self.with_object(NEXT_OBJECT),
                                             f"LD_PRELOAD={REFUSE_TC}",
                                             f"EDGESHED_REFUSE_TC={SECOND}"))
        self.assertEqual(refused.returncode, 1, refused)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        self.assertNotIn("could not be put back", refused.stderr)
        if self.in_dispatcher:  # which keeps the new one, and so it is told
            self.assertFalse(self.bed.json("status")["programs_current"])
        else:
            self.assertEqual(self.standing(), before)
        self.assertIsNone(daemon.poll())
        self.upgrade(None, "--again")
        self.assertTrue(self.bed.json("status")["programs_current"])

    def test_who_cannot_see_the_programs_changes_nothing(self):
        self.attach_and_start()
        before = self.standing()
        refused = self.bed.edgeshed(
            "upgrade", check=False, wrapper=("setpriv", "--bounding-set=-sys_admin",
                                             *self.with_object(NEXT_OBJECT)))
        self.assertEqual(refused.returncode, 4, refused)
        self.assertIn("CAP_SYS_ADMIN", refused.stderr)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        self.assertEqual(self.standing(), before)

    def test_half_of_a_device_stays_half(self):
        self.attach_and_start()
        self.tool("ip", "link", "set", DEV, "xdp", "off")
        self.upgrade(NEXT_OBJECT)
        self.assertFalse(self.bed.has_xdp())
        self.assertTrue(self.bed.json("status")["interfaces"][0]["egress"])
        self.upgrade()
        self.assertTrue(self.bed.json("status")["programs_current"])

    def test_without_an_attach(self):
        refused = self.upgrade(check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("edgeshed attach comes first", refused.stderr)

    def test_another_schema_refuses_and_changes_nothing(self):
        daemon = self.attach_and_start()
        before = self.standing()
        for words in (("upgrade",), ("attach", "--config", self.config, "--dev", DEV),
                      ("dump", "plan")):
            refused = self.next_build(NEXT, *words)
            self.assertEqual(refused.returncode, 1, refused)
            self.assertRegex(refused.stderr, r"have schema \d+, this program knows schema \d+")
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
            self.assertEqual(self.standing(), before)
        self.assertIsNone(daemon.poll())
        self.bed.stop_daemon(daemon)
        refused = self.next_build(NEXT_DAEMON, "--config", self.config)
        self.assertEqual(refused.returncode, 1, refused)
        self.assertRegex(refused.stderr + refused.stdout, "have schema")
        self.assertEqual(self.standing(), before)
        # The old one takes over again, or one detach makes way for the new one.
        again = self.bed.start_daemon(self.config)
        wait_for(lambda: self.bed.json("status")["daemon"]["running"], "the old daemon")
        self.bed.stop_daemon(again, signal.SIGTERM)
        self.assertEqual(self.next_build(NEXT, "detach").returncode, 0)
        attached = self.next_build(NEXT, "attach", "--config", self.config, "--dev", DEV)
        self.assertEqual(attached.returncode, 0, attached)
        refused = self.upgrade(check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("have schema", refused.stderr)
        self.assertEqual(self.next_build(NEXT, "detach").returncode, 0)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, NEXT_OBJECT, NEXT, NEXT_DAEMON, REFUSE_TC = take_paths(6)
    unittest.main(verbosity=2)

"""A daemon that is killed under traffic, and one that comes back. Usage: edgeshed edgeshedd."""

import itertools
import json
import random
import signal
import struct
import threading
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Pace, Testbed, game_config,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
TICK_HZ = 60
CONFIG = game_config(host=f'mode = "enforce"\ntick_hz = {TICK_HZ}', tables="""
[[class]]
name = "player"
[class.critical]
packets_per_s = 2000
[class.standard]
packets_per_s = 50
burst_s = 0.1
""", dscp='0 = "snapshot", 46 = "event", 8 = "command"')
# What each kind of packet says in its first byte, and its TOS.
KINDS = {b"e": 46 << 2, b"s": 0, b"c": 8 << 2}
RATE_PER_S = 500
STANDARD_PER_S = 2 * 50  # what passes of it while the plan sheds
TRIES = 3


class Traffic:
    """Three senders at RATE_PER_S each, and a receiver that remembers when what arrived was sent:
    neither a sender nor a receiver that the machine kept waiting then looks like shedding."""

    def __init__(self, bed):
        self.senders = {}
        for number, (kind, tos) in enumerate(KINDS.items()):
            sender = bed.udp(bed.client_ns, CLIENT_ADDRESS, 40000 + number, tos)
            self.senders[kind] = sender
            bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{40000 + number}", "--endpoint", "game",
                         "--class", "player")
        self.server = bed.udp(bed.server_ns, SERVER_ADDRESS, PORT)
        self.server.settimeout(0.05)
        self.sent = {kind: [] for kind in KINDS}
        self.received = {kind: [] for kind in KINDS}
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        pace = Pace(RATE_PER_S)
        while not self.stopping.is_set():
            for kind, sender in self.senders.items():
                now = time.monotonic()
                sender.sendto(kind + struct.pack("d", now) + b"x" * 52, (SERVER_ADDRESS, PORT))
                self.sent[kind].append(now)
            pace.wait()

    def _receive(self):
        last = None
        while True:
            try:
                data = self.server.recv(128)
                self.received[data[:1]].append(*struct.unpack_from("d", data, 1))
                last = time.monotonic()
            except TimeoutError:
                if self.stopping.is_set() and (last is None or time.monotonic() > last + 0.2):
                    return

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def received_between(self, kind, begin, end):
        return sum(begin <= at < end for at in self.received[kind])

    def share_between(self, kind, begin, end):
        """Of what was sent then, the share that was received."""
        sent = sum(begin <= at < end for at in self.sent[kind])
        return self.received_between(kind, begin, end) / max(1, sent)

    def silent_between(self, kind, begin, end):
        """Seconds that the sender itself was kept waiting: what a rate did not pass for want of it."""
        times = [begin, *(at for at in self.sent[kind] if begin <= at < end), end]
        return sum(max(0, after - before - 0.05) for before, after in zip(times, times[1:]))


class SurvivalTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        self.daemon = self.bed.start_daemon(self.config)

    def seen(self):
        return sum(cell["packets"] for cell in self.bed.cells())

    def ticks(self):
        """How many ran, how many were skipped, and the moments that this was asked between."""
        begin = time.monotonic()
        daemon = self.bed.json("status")["daemon"]
        return daemon["generation"], daemon["ticks_skipped"], (begin, time.monotonic())

    def check_standard(self, traffic, begin, end, delta):
        """The contract of standard, and of standard alone: what passed in between."""
        passed = traffic.received_between(b"c", begin, end)
        due = STANDARD_PER_S * (end - begin)
        self.assertLessEqual(passed, due + delta)
        silent_s = traffic.silent_between(b"c", begin, end)
        self.assertGreaterEqual(passed, due - delta - STANDARD_PER_S * silent_s)

    def check_no_event_was_lost(self, traffic):
        """From the first packet to the last, but for what never came to the packet path."""
        lost = self.bed.lost_by_veth()
        cells = {}
        for cell in self.bed.cells():
            if cell["lane"] == "event":
                cells[cell["verdict"]] = cells.get(cell["verdict"], 0) + cell["packets"]
        received, sent = len(traffic.received[b"e"]), len(traffic.sent[b"e"])
        self.assertEqual(cells, {"pass": received})
        self.assertIn(received, range(sent - lost, sent + 1))
        self.assertEqual(self.seen(), sum(len(sent) for sent in traffic.sent.values()) - lost)

    # Rule: B9
    def test_killed_under_traffic(self):
        traffic = Traffic(self.bed)
        self.addCleanup(traffic.stop)
        self.bed.hold_rung(5, 300)
        time.sleep(1.2)
        before_kill = time.monotonic()
        self.bed.stop_daemon(self.daemon, signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(3.1)
        # Shed while it lived: at rung 5 a snapshot per quarter of a second passes.
        shed = traffic.received_between(b"s", before_kill - 1, before_kill)
        self.assertLess(shed, 20)
        # Open 1.2 s after the plan's expiry, 150 ms after its last tick.
        opened = traffic.share_between(b"s", killed + 1.35, killed + 2.35)
        self.assertGreater(opened, 0.95)
        # And not at once: it is a ramp. In its first half less than half has come back.
        early = traffic.share_between(b"s", before_kill + 0.15, before_kill + 0.65)
        self.assertLess(early, 0.5)
        # The contract of standard, while the plan was shedding, holds without a daemon.
        self.check_standard(traffic, killed + 1, killed + 3, 8)

        # A restart goes on from there: counters, connections, and a plan within a tick or so.
        counted = self.seen()
        generation = self.bed.json("status")["daemon"]["generation"]
        self.bed.start_daemon(self.config)
        status = self.bed.json("status")
        self.assertFalse(status["daemon"]["expired"])
        self.assertGreater(status["daemon"]["generation"], generation)
        self.assertGreaterEqual(self.seen(), counted)
        self.assertEqual(len(self.bed.json("dump", "connections")), 3)
        time.sleep(0.5)
        traffic.stop()
        # In-contract critical: not one was lost.
        self.assertGreater(len(traffic.sent[b"e"]), 2000)
        self.check_no_event_was_lost(traffic)

    # Rule: B9
    def test_a_daemon_for_which_the_clock_jumps(self):
        """Stopped for two seconds, as by a machine that was suspended: its plan expires, and the
        clock has jumped when it goes on."""
        traffic = Traffic(self.bed)
        self.addCleanup(traffic.stop)
        self.bed.hold_rung(5, 300)
        time.sleep(0.5)
        ran, skipped, asked = self.ticks()
        stopped = time.monotonic()
        self.daemon.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.send_signal, signal.SIGCONT)
        time.sleep(2)
        woke = time.monotonic()
        self.daemon.send_signal(signal.SIGCONT)
        time.sleep(1.5)
        self.assertFalse(self.bed.json("status")["daemon"]["expired"])
        ran_now, skipped_now, asked_now = self.ticks()
        traffic.stop()
        # 120 ticks of 60 Hz are told, and not made up for: the first one is of now. A busy machine
        # has it skip some more, but one that ran or was skipped there was every 60th of a second.
        ran, skipped = ran_now - ran, skipped_now - skipped
        self.assertGreaterEqual(skipped, TICK_HZ * (woke - stopped) - 3)
        self.assertGreaterEqual(ran + skipped, TICK_HZ * (asked_now[0] - asked[1]) - 3)
        self.assertLessEqual(ran + skipped, TICK_HZ * (asked_now[1] - asked[0]) + 3)
        opened = traffic.share_between(b"s", woke - 0.5, woke)
        self.assertGreater(opened, 0.9)
        again = traffic.received_between(b"s", woke + 0.3, woke + 1.3)
        self.assertLess(again, 20, "the rung that is held is in force again at once")
        self.check_standard(traffic, woke - 1, woke + 1, 12)  # the contract ran on evenly
        self.check_no_event_was_lost(traffic)

    def test_adopts_within_a_tick(self):
        """From the restart's first look at the maps to its first plan: read in its own log. A machine
        that runs something else meanwhile does so once or twice, and not each time."""
        took_s = []
        while not took_s or min(took_s) >= 1 / 60 + 0.02:
            self.assertLess(len(took_s), TRIES, took_s)
            self.bed.stop_daemon(self.daemon, signal.SIGKILL)
            self.daemon = self.bed.start_daemon(self.config)
            took_s.append(self.adopted_s(self.daemon.log_path))

    @staticmethod
    def adopted_s(log_path):
        with open(log_path, encoding="utf-8") as log:
            lines = log.read().splitlines()

        def at(text):
            line = next(line for line in lines if text in line)
            hours, minutes, seconds = line[1:].split("]")[0].split(" ")[1].split(":")
            return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        return (at("ready: plan generation") - at("connections adopted")) % 86400

    def test_decision_to_first_enforced_packet(self):
        """A forced rung until the first packet that it sheds, 40 times. CLI start-up not included:
        the report goes over a socket that is open already."""
        # Standard of a low priority: rung 5 refuses it at once, and gives it back in half a second.
        sender = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 41000, KINDS[b"c"])
        self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:41000", "--endpoint", "game",
                          "--priority", "10")
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.settimeout(0.05)  # of what is shed, and of what a busy machine brings later
        control = self.bed.control_socket()
        numbers = itertools.count()

        def say(message):
            control.send(message)
            answer = json.loads(control.recv(1 << 20))
            self.assertTrue(answer["ok"], answer)
            return answer

        def skipped():
            return say(b'{"command":"status"}')["daemon"]["ticks_skipped"]

        def arrives():
            """Sends one packet; XDP has decided by the time sendto() returns."""
            mine = struct.pack("q", next(numbers)) + b"s" * 56
            sender.sendto(mine, (SERVER_ADDRESS, PORT))
            try:
                while server.recv(128) != mine:
                    pass  # one that was waited for too briefly
                return True
            except TimeoutError:
                return False

        latencies_ms = []
        for _ in range(40):
            say(b'{"command":"set","kind":"shard","name":"arena","rung":0,"for_s":60}')
            wait_for(lambda: all(arrives() for _ in range(20)), "open again", 10)
            time.sleep(random.uniform(0.05, 0.1))  # anywhere in a tick
            skipped_before = skipped()
            begin = time.monotonic()
            say(b'{"command":"set","kind":"shard","name":"arena","rung":5,"for_s":60}')
            asked, kept_waiting_s = time.monotonic(), 0
            while arrives():
                last, asked = asked, time.monotonic()
                kept_waiting_s = max(kept_waiting_s, asked - last)
                self.assertLess(asked - begin, 1)
            # Not those in which the machine let the daemon miss a tick, or this process wait.
            if skipped() == skipped_before and kept_waiting_s < 0.01:
                latencies_ms.append((asked - begin) * 1000)
        latencies_ms.sort()
        self.assertGreaterEqual(len(latencies_ms), 10, "a machine too busy to say")
        median, longest = latencies_ms[len(latencies_ms) // 2], latencies_ms[-1]
        print(f"decision to first enforced packet, {len(latencies_ms)} times: median {median:.1f} ms, "
              f"longest {longest:.1f} ms", flush=True)
        # One tick of 60 Hz, the message and the probe. The limit leaves room for a busy machine.
        self.assertLess(median, 25)
        self.assertLess(longest, 60)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)

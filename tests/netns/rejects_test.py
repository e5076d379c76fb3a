"""Refusals of protocol `lane` on the wire: what the host answers by itself, and who is left alone.
Usage: edgeshed edgeshedd."""

import json
import os
import socket
import struct
import time
import unittest

from bpfcalls import link_xdp, load_passing_xdp
from testbed import (CLIENT_ADDRESS, CLIENT_DEV, DEV, SERVER_ADDRESS, Testbed, drain, game_config,
                     in_namespace, skip_without_root, take_paths, wait_for)

PORT = 7777
PLAYER, UNLOVED, STRANGER = 40000, 40001, 50000
CONFIG = game_config(
    host="tick_hz = 60", protocol="lane",
    endpoint="rejects = true\nstranger = { handshakes_per_s = 2000 }")
# maps/lane_header.h
HEADER = struct.Struct("!BBBBHHHH")
MAGIC, VERSION, JOIN, REJECT = 0xE5, 1, 1, 8
LANES = {"join": 1, "command": 2, "event": 3}
TIERS = {"join": 0, "command": 1, "event": 0}
STREAM = 77


class RejectsTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", config, "--dev", DEV, "--enforce")
        self.bed.start_daemon(config)
        # What XDP sends back, a veth takes only while it has GRO or a program of its own.
        program = load_passing_xdp("client")
        self.addCleanup(os.close, program)
        held = in_namespace(self.bed.client_ns, lambda: link_xdp(
            program, socket.if_nametoindex(CLIENT_DEV)))
        self.addCleanup(os.close, held)
        self.reasons = [one["name"] for one in
                        json.loads(self.bed.edgeshed("reasons", "--json").stdout)]
        self.server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        self.server.setblocking(False)
        self.player, self.unloved, self.stranger = (
            self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, port)
            for port in (PLAYER, UNLOVED, STRANGER))
        for port, priority in ((PLAYER, "200"), (UNLOVED, "10")):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{port}", "--endpoint", "game",
                              "--priority", priority)
        self.sequence = 0x1234

    def say(self, client, lane):
        self.sequence += 1
        flags = JOIN if lane == "join" else 0
        client.sendto(HEADER.pack(MAGIC, VERSION << 4 | TIERS[lane], flags << 4 | LANES[lane], 0,
                                  STREAM, self.sequence, 0, 0) + b"x" * 40, (SERVER_ADDRESS, PORT))

    def check_refused(self, client, lane, reasons, retry_ms):
        """The answer, field by field; the time to retry is within retry_ms."""
        self.say(client, lane)
        client.settimeout(2)
        answer, sender = client.recvfrom(2048)
        self.assertEqual((sender, len(answer)), ((SERVER_ADDRESS, PORT), HEADER.size))
        magic, version, lane_flags, code, stream, sequence, ack, retry_10ms = HEADER.unpack(answer)
        self.assertEqual((magic, version >> 4, lane_flags), (MAGIC, VERSION, REJECT << 4 | LANES[lane]))
        self.assertIn(self.reasons[code], reasons)
        self.assertEqual((stream, sequence, ack), (STREAM, 0, self.sequence))
        self.assertGreaterEqual(10 * retry_10ms, retry_ms[0])
        self.assertLessEqual(10 * retry_10ms, retry_ms[1])

    def check_passes(self, client, lane, count=20):
        """All of it reaches the server, and nothing comes back."""
        drain(self.server)
        arrived = 0
        for _ in range(count):
            self.say(client, lane)
            time.sleep(0.002)

        def all_there():
            nonlocal arrived
            arrived += drain(self.server)
            return arrived >= count
        wait_for(all_there, f"all {count} of lane {lane}", 2)
        self.assertEqual(arrived, count)
        client.setblocking(False)
        self.assertEqual(drain(client), 0)

    def rejected(self):
        return self.bed.json("dump", "counters")["endpoints"][0]["in"]["rejected"]

    # Rule: A7, A8, B4
    def test_who_is_refused_is_told_why_and_when_to_come_back(self):
        joins, commands = ("join_refused",), ("priority", "slot_priority")  # by its record, or before
        for rung, refused in (
                (3, ()),
                (4, ((self.stranger, "join", joins, (5000, 10000)),)),
                (5, ((self.stranger, "join", joins, (15000, 30000)),
                     (self.stranger, "command", commands, (1000, 30000)),
                     (self.unloved, "command", commands, (1000, 30000))))):
            self.bed.hold_rung(rung)
            for one in refused:
                before = self.rejected()
                self.check_refused(*one)
                self.assertEqual(self.rejected(), before + 1)
            self.assertEqual(drain(self.server), 0, "what is refused is not delivered")
            # Who plays hears nothing of all this, and loses nothing.
            self.check_passes(self.player, "event")
            self.check_passes(self.player, "command")
            self.check_passes(self.unloved, "event")
            if not refused:
                self.check_passes(self.stranger, "join", 5)

    # Rule: A8
    def test_nobody_is_answered_more_than_ten_times_a_second(self):
        self.bed.hold_rung(5)
        begin = time.monotonic()
        for _ in range(100):
            self.say(self.unloved, "command")
            time.sleep(0.005)
        took_s = time.monotonic() - begin
        self.unloved.setblocking(False)
        answers = 0

        def come():
            nonlocal answers
            answers += drain(self.unloved)
            return answers >= self.rejected()
        wait_for(come, "every answer that was counted", 2)
        self.assertLessEqual(answers, 10 * took_s + 1)
        self.assertGreaterEqual(answers, 4)
        self.assertEqual(drain(self.server), 0)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)

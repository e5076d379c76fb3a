"""A thousand rooms and a hundred thousand connections, registered by sessions, with reports 30 times
a second: what a tick takes, and how late it begins. Usage: edgeshed edgeshedd libedgeshed.so."""

import os
import time
import unittest

from libedgeshed import Session
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, skip_without_root, take_paths,
                     wait_for)

SHARDS, ROOMS_PER_SHARD, PEERS_PER_SHARD = 10, 100, 10_000
CONNECTIONS = SHARDS * PEERS_PER_SHARD


def config():
    text = f"""
[host]
connections_max = {CONNECTIONS + 1000}
rooms_max = 1024
endpoints_max = 16
mode = "enforce"
[placement]
host_rooms_max = 1024
host_players_max = {CONNECTIONS}
shard_players_max = {PEERS_PER_SHARD}
[[class]]
name = "player"
[class.best_effort]
packets_per_s = 100
"""
    for shard in range(SHARDS):
        text += f'[[shard]]\nname = "s{shard}"\nroom_capacity = 128\nframe_budget_ms = 33\n'
        rooms = [f"s{shard}-r{room}" for room in range(ROOMS_PER_SHARD)]
        for room in rooms:
            text += f'[[room]]\nname = "{room}"\nshard = "s{shard}"\n'
        names = ", ".join(f'"{room}"' for room in rooms)
        text += (f'[[endpoint]]\nname = "e{shard}"\naddress = "any"\nport = {7000 + shard}\n'
                 f'protocol = "dscp"\nrooms = [{names}]\ndscp = {{ 0 = "snapshot" }}\n')
    return text


class ScaleTest(unittest.TestCase):
    def test_a_thousand_rooms(self):
        bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(bed.close)
        path = bed.write("edgeshed.toml", config())
        bed.edgeshed("attach", "--config", path, "--dev", DEV)
        bed.start_daemon(path)
        session_path = os.path.join(bed.folder, "session.sock")
        began = time.monotonic()
        sessions = []
        for shard in range(SHARDS):
            session = Session(LIBRARY, session_path, f"s{shard}", peers_max=PEERS_PER_SHARD)
            self.addCleanup(session.close)
            self.assertTrue(session.connected, session.problem)
            rooms = [session.room_open(f"s{shard}-r{room}", PEERS_PER_SHARD // ROOMS_PER_SHARD)
                     for room in range(ROOMS_PER_SHARD)]
            self.assertNotIn(-1, rooms)
            for peer in range(PEERS_PER_SHARD):
                address = f"10.{shard}.{peer >> 8}.{peer & 255}"
                session.connect(rooms[peer % ROOMS_PER_SHARD], address, 40000,
                                contract_class=b"player")
            sessions.append(session)

        def registered():
            for session in sessions:
                session.report(tick_p99_ms=5)
                self.assertEqual([e for e in session.events() if e[0] == 3], [])
            return bed.json("status")["daemon"]["connections"] == CONNECTIONS
        wait_for(registered, "all connections are known", 90)
        registered_s = time.monotonic() - began

        # Two windows of 256 ticks with reports and some traffic.
        senders = [bed.udp(bed.client_ns, CLIENT_ADDRESS, 42000 + i, 0) for i in range(SHARDS)]
        end = time.monotonic() + 9.5
        while time.monotonic() < end:
            for shard, session in enumerate(sessions):
                session.report(tick_p99_ms=5)
                senders[shard].sendto(b"x" * 64, (SERVER_ADDRESS, 7000 + shard))
            time.sleep(1 / 30)
        daemon = bed.json("status")["daemon"]
        print(f"{CONNECTIONS} connections registered in {registered_s:.1f} s; tick median "
              f"{daemon['tick_us_p50']} us, p99 {daemon['tick_us_p99']} us; late median "
              f"{daemon['late_us_p50']} us, p99 {daemon['late_us_p99']} us", flush=True)
        self.assertLessEqual(daemon["tick_us_p50"], 1000)
        self.assertEqual(daemon["reports_refused"], 0)

        # Status of it all, by pages; then one session ends and the others notice nothing.
        self.assertEqual(len(bed.json("status")["rooms"]), SHARDS * ROOMS_PER_SHARD)
        self.assertIn("normal rooms", bed.edgeshed("status").stdout)
        sessions[0].close()
        wait_for(lambda: len(bed.json("status")["sessions"]) == SHARDS - 1, "one is gone")
        for session in sessions[1:]:
            session.report(tick_p99_ms=5)
            self.assertTrue(session.connected)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, LIBRARY = take_paths(3)
    unittest.main(verbosity=2)

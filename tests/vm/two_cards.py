#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays traffic.py in a guest: its two cards, each in a namespace of its own, are one the server
and one the client. Usage: edgeshed edgeshedd."""

import pathlib
import subprocess
import sys

TRAFFIC = str(pathlib.Path(__file__).resolve().parent / "traffic.py")
SERVER, CLIENT = ("server", "eth0", "10.99.3.1"), ("client", "eth1", "10.99.3.2")
LIMIT_S = 110


def cpus(which):
    """How many CPUs are "possible" or "online"; the kernel says a range from 0 on."""
    return int(pathlib.Path("/sys/devices/system/cpu", which).read_text().strip().split("-")[-1])


def main():
    edgeshed, edgeshedd = sys.argv[1:3]
    if cpus("possible") <= cpus("online"):
        sys.exit("two_cards: no more CPUs are possible than online: per-CPU maps would not show it")
    for namespace, dev, address in (SERVER, CLIENT):
        for command in (["addr", "replace", f"{address}/24", "dev", dev],
                        ["link", "set", dev, "up"], ["link", "set", "lo", "up"]):
            subprocess.run(["ip", "-n", namespace, *command], check=True, timeout=10)

    def inside(namespace, *arguments):
        # Not `ip netns exec`, which hides bpffs.
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{namespace}", sys.executable, "-B",
                                 TRAFFIC, *arguments])

    server = inside("server", "server", "--dev", SERVER[1], "--address", SERVER[2],
                    "--edgeshed", edgeshed, "--edgeshedd", edgeshedd)
    client = inside("client", "client", "--server", SERVER[2])
    try:
        return server.wait(timeout=LIMIT_S)
    finally:
        for one in (client, server):
            one.kill()
            one.wait(timeout=10)


if __name__ == "__main__":
    sys.exit(main())

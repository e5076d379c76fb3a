# SPDX-License-Identifier: Apache-2.0
"""The life of the Debian package, inside of a guest that is thrown away afterwards: installed,
configured, started, stopped, upgraded, removed, purged. Started by package_test.py as a service of
the guest; prints one line a step and ends with the mark that package_test.py reads.

Usage: package_guest.py OLD.deb NEW.deb MARK"""

import json
import os
import pathlib
import pwd
import re
import socket
import subprocess
import sys
import time
import traceback

CONFIG = pathlib.Path("/etc/edgeshed/edgeshed.toml")
PINS = pathlib.Path("/sys/fs/bpf/edgeshed")
SOCKET = pathlib.Path("/run/edgeshed/control.sock")
DEFAULTS = pathlib.Path("/etc/default/edgeshed")
EXAMPLE = pathlib.Path("/usr/share/doc/edgeshed/examples/edgeshed.toml")
DEV = "game0"
PORT = 7777
PACKETS = 40
# CAP_NET_ADMIN 12, CAP_SYS_NICE 23, CAP_BPF 39
CAPABILITIES = 1 << 12 | 1 << 23 | 1 << 39
# What changes by itself, or whenever any package comes or goes.
NOT_COMPARED = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/var/log/journal", "/var/log/dpkg.log",
                "/var/lib/dpkg", "/var/lib/systemd", "/var/cache", "/etc/ld.so.cache",
                "/guest")
# Users stay, and so does what passwd keeps of the file before.
USER_FILES = {"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/passwd-",
              "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock"}
STEP_TIMEOUT_S = 180


def run(*command, check=True, user=None):
    if user:
        command = ("runuser", "-u", user, "--", *command)
    result = subprocess.run(command, text=True, capture_output=True, timeout=STEP_TIMEOUT_S,
                            stdin=subprocess.DEVNULL, check=False)
    if check and result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {result.returncode}: "
                             f"{result.stdout}{result.stderr}")
    return result


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what}: {found!r}, expected {wanted!r}")


def wait_for(condition, what, limit_s=90):
    deadline = time.monotonic() + limit_s
    while not condition():
        expect(time.monotonic() < deadline, f"not within {limit_s} s: {what}")
        time.sleep(0.2)


def state():
    return run("systemctl", "is-active", "edgeshed", check=False).stdout.strip()


def main_pid():
    return int(run("systemctl", "show", "-P", "MainPID", "edgeshed").stdout)


def status(user=None):
    return json.loads(run("edgeshed", "status", "--json", user=user).stdout)


def ready():
    return SOCKET.exists() and run("edgeshed", "status", "--json", user="keeper",
                                   check=False).returncode == 0


def has_xdp(dev=DEV):
    return "xdp" in run("ip", "-details", "link", "show", dev).stdout


def xdp_id(dev=DEV):
    """Of the program on the interface, or none."""
    found = re.search(r"prog/xdp id (\d+)", run("ip", "-details", "link", "show", dev).stdout)
    return int(found[1]) if found else None


def processes_of(uid):
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == uid:
                found.append(folder.name)
        except FileNotFoundError:
            pass
    return found


def files():
    """Every path of the guest but those that change by themselves."""
    found = set()
    for folder, names, leaves in os.walk("/"):
        names[:] = [name for name in names
                    if not os.path.join(folder, name).startswith(NOT_COMPARED)]
        found.update(os.path.join(folder, name) for name in names + leaves)
    return {path for path in found if not path.startswith(NOT_COMPARED)} - USER_FILES


def make_interface():
    run("ip", "link", "add", DEV, "type", "veth", "peer", "name", "player0", "netns", "players")
    run("ip", "addr", "add", "10.99.1.1/24", "dev", DEV)
    run("ip", "link", "set", DEV, "up")
    run("ip", "-n", "players", "addr", "add", "10.99.1.2/24", "dev", "player0")
    run("ip", "-n", "players", "link", "set", "player0", "up")


def play():
    """PACKETS datagrams of a player."""
    run("ip", "netns", "exec", "players", "python3", "-c",
        "import socket, time\n"
        "player = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "player.bind(('10.99.1.2', 40000))\n"
        f"for _ in range({PACKETS}):\n"
        f"    player.sendto(b'x' * 64, ('10.99.1.1', {PORT}))\n"
        "    time.sleep(0.002)\n")


def seen():
    tiers = status()["endpoints"][0]["tiers"]["in"]
    return sum(row["seen"] for row in tiers.values())


def dpkg(*words):
    return run("dpkg", "--force-confold", *words)


# --- steps, in their order -------------------------------------------------------------------


class Life:
    def __init__(self, old, new):
        self.old = old
        self.new = new
        self.before = set()
        self.pins_before = set()
        self.vanished_ifindex = 0

    def prepare(self):
        run("useradd", "-m", "keeper")
        run("useradd", "-m", "stranger")
        run("ip", "netns", "add", "players")
        run("ip", "link", "set", "lo", "up")
        make_interface()
        self.before = files()
        self.pins_before = set(os.listdir("/sys/fs/bpf"))

    def install_starts_nothing(self):
        dpkg("-i", self.old)
        expect_equal(state(), "inactive", "the service after installation")
        expect_equal(run("systemctl", "is-enabled", "edgeshed").stdout.strip(), "enabled",
                     "the service at boot")
        expect(not PINS.exists() and not has_xdp(), "something is attached after installation")
        expect(not CONFIG.exists(), f"the package brings {CONFIG}")
        run("systemctl", "start", "edgeshed")  # without a configuration: not an error, and nothing
        expect_equal(state(), "inactive", "the service without a configuration")
        expect(not PINS.exists(), "attached without a configuration")
        uid = pwd.getpwnam("edgeshed").pw_uid
        expect_equal(processes_of(uid), [], "processes of the daemon's user")

    def configure_and_start(self):
        run("usermod", "-aG", "edgeshed", "keeper")
        text = EXAMPLE.read_text().replace('protocol = "enet"', 'protocol = "opaque"')
        # Without hardware support for a guest, 60 ticks a second are most of a CPU.
        text = text.replace("tick_hz = 60", "tick_hz = 10")
        text = text.replace("[host]\n", f'[[interface]]\ndev = "{DEV}"\n\n[host]\n'
                            'audit_log = "/var/log/edgeshed/audit.jsonl"\n', 1)
        CONFIG.write_text(text)
        run("edgeshed", "check", str(CONFIG))
        run("systemctl", "start", "edgeshed")
        wait_for(ready, "the daemon answers")
        interface = status()["interfaces"][0]
        # The daemon may not look into a dispatcher, so this is the harder one of both.
        expect_equal((interface["dev"], interface["mode"], interface["egress"]),
                     (DEV, "dispatcher", True), "the interface")
        expect(has_xdp(), f"no XDP program on {DEV}")
        play()
        expect(seen() >= PACKETS, f"{PACKETS} packets were sent, {seen()} counted")

    def group_may_command_and_others_not(self):
        told = status(user="keeper")
        expect(told["daemon"]["running"], "no status for a member of the group")
        expect_equal([shard["name"] for shard in told["shards"]], ["main"], "a member's shards")
        expect_equal([(one["dev"], one["mode"]) for one in told["interfaces"]],
                     [(DEV, "attached")], "what the daemon says of the interface")
        run("edgeshed", "drain", "main", user="keeper")
        run("edgeshed", "drain", "main", "--off", user="keeper")
        line = json.loads(
            pathlib.Path("/var/log/edgeshed/audit.jsonl").read_text().splitlines()[0])
        expect_equal((line["command"], line["uid"]),
                     ("drain", pwd.getpwnam("keeper").pw_uid), "the audit log's first line")
        for words in (("status", "--json"), ("drain", "main")):
            refused = run("edgeshed", *words, user="stranger", check=False)
            expect_equal(refused.returncode, 4, f"a stranger's edgeshed {words[0]}")
            expect_equal(len(refused.stderr.splitlines()), 1, f"lines of {refused.stderr!r}")

    def daemon_is_confined(self):
        pid = main_pid()
        fields = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        uid = str(pwd.getpwnam("edgeshed").pw_uid)
        expect_equal(fields["Uid"].split(), [uid] * 4, "the daemon's user")
        for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
            expect_equal(int(fields[name], 16), CAPABILITIES, name)
        expect_equal(fields["NoNewPrivs"].strip(), "1", "NoNewPrivs")
        expect_equal(fields["Seccomp"].strip(), "2", "Seccomp")
        root = f"/proc/{pid}/root"
        expect_equal(os.listdir(f"{root}/sys/fs/bpf"), [], "what it sees of the BPF file system")
        expect_equal(sorted(os.listdir(f"{root}/run/edgeshed/pins")), sorted(os.listdir(PINS)),
                     "pins that it sees")
        writable = [line.split()[4] for line in
                    pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
                    if line.split()[4] in ("/", "/home", "/etc", "/usr", "/sys/fs/cgroup")
                    and line.split()[5].split(",")[0] == "rw"]
        expect_equal(writable, [], "folders that the daemon may write")
        expect_equal(oct(SOCKET.stat().st_mode & 0o777), "0o660", "mode of the control socket")
        expect_equal(SOCKET.group(), "edgeshed", "group of the control socket")

    def interface_comes_back(self):
        self.vanished_ifindex = socket.if_nametoindex(DEV)
        run("ip", "link", "del", DEV)
        make_interface()
        wait_for(has_xdp, f"the confined daemon puts XDP on the new {DEV}")
        wait_for(lambda: [one["mode"] for one in status(user="keeper")["interfaces"]]
                 == ["attached"], "the daemon says attached")
        before = seen()
        play()
        expect(seen() >= before + PACKETS, "packets on the new interface are not counted")

    def reload_is_whole_or_nothing(self):
        text = CONFIG.read_text()
        CONFIG.write_text(text.replace("port = 7777", "port = 77777"))
        refused = run("systemctl", "reload", "edgeshed", check=False)
        expect(refused.returncode != 0, "a wrong configuration was reloaded")
        expect_equal(state(), "active", "the service after a refused reload")
        CONFIG.write_text(text)
        run("systemctl", "reload", "edgeshed")

    def stop_leaves_contracts(self):
        pid = main_pid()
        run("edgeshed", "connect", "10.99.1.2:40000", "--endpoint", "game", "--class", "player")
        run("systemctl", "stop", "edgeshed")
        expect(not pathlib.Path(f"/proc/{pid}").exists(), "the daemon runs after stop")
        expect(not SOCKET.exists(), "the control socket is there after stop")
        expect(has_xdp() and PINS.exists(), "stop took the packet path off")
        left = status()
        expect_equal((left["attached"], left["daemon"]["running"]), (True, False), "after stop")
        run("systemctl", "start", "edgeshed")
        wait_for(ready, "the daemon answers again")
        expect("10.99.1.2:40000" in run("edgeshed", "dump", "connections").stdout,
               "the connection is gone after stop and start")

    def upgrade_keeps_running(self):
        pid = main_pid()
        pins = {path.name: path.stat().st_ino for path in PINS.iterdir()}
        packets = seen()
        DEFAULTS.write_text('EDGESHEDD_OPTIONS="--fifo"\n')
        dpkg("-i", self.new)
        expect_equal(state(), "active", "the service after an upgrade")
        wait_for(ready, "the daemon answers after the upgrade")
        expect(main_pid() != pid, "the old daemon runs on")
        expect_equal({path.name: path.stat().st_ino for path in PINS.iterdir()}, pins,
                     "pins after the upgrade")
        expect(seen() >= packets, "counters began anew")
        expect("10.99.1.2:40000" in run("edgeshed", "dump", "connections").stdout,
               "the connection is gone after the upgrade")
        expect_equal(DEFAULTS.read_text(), 'EDGESHEDD_OPTIONS="--fifo"\n', "the changed conffile")
        expect("SCHED_FIFO" not in run("journalctl", "-u", "edgeshed", "--no-pager").stdout,
               "--fifo was refused")
        classes = run("ps", "-L", "-o", "cls=", "-p", str(main_pid())).stdout.split()
        expect("FF" in classes, f"no thread runs SCHED_FIFO: {classes}")

    def programs_are_replaced_in_place(self):
        owners = {path.name: (path.stat().st_uid, path.stat().st_mode) for path in PINS.iterdir()}
        packets = seen()
        run("edgeshed", "upgrade", "--again")
        play()
        expect_equal(seen(), packets + PACKETS, "packets counted over an upgrade in place")
        expect_equal({path.name: (path.stat().st_uid, path.stat().st_mode)
                      for path in PINS.iterdir()}, owners, "owners and modes of the pins")
        expect_equal([one["mode"] for one in status(user="keeper")["interfaces"]], ["attached"],
                     "what the confined daemon says")

    def upgrade_leaves_a_stopped_one_stopped(self):
        run("systemctl", "stop", "edgeshed")
        dpkg("-i", self.new)
        expect_equal(state(), "inactive", "a stopped service after an upgrade")
        run("systemctl", "start", "edgeshed")
        wait_for(ready, "the daemon answers")

    def attach_that_waits_keeps_the_service_off(self):
        run("systemctl", "stop", "edgeshed")
        run("edgeshed", "detach")
        run("edgeshed", "attach", "--config", str(CONFIG), "--confirm", "300s")
        expect(run("systemctl", "start", "edgeshed", check=False).returncode != 0,
               "the service started over an attach that waits to be confirmed")
        # The service manager may have taken the state's folder; who watches makes it anew.
        wait_for(lambda: (status()["confirm"] or {}).get("state") == "waiting", "it waits on")
        run("edgeshed", "confirm")
        run("systemctl", "reset-failed", "edgeshed", check=False)
        run("systemctl", "start", "edgeshed")
        wait_for(ready, "the daemon answers")

    def armed_early_the_link_stays_as_it_is(self):
        run("systemctl", "stop", "edgeshed")
        run("edgeshed", "detach")
        expect_equal(run("systemctl", "is-enabled", "edgeshed-arm", check=False).stdout.strip(),
                     "disabled", "arming at boot after installation")
        run("systemctl", "enable", "--now", "edgeshed-arm")
        expect(status()["armed"], "armed by the unit")
        armed = xdp_id()
        expect(armed, "an idle program is on the interface")
        run("systemctl", "start", "edgeshed")
        wait_for(ready, "the daemon answers")
        expect(not status()["armed"], "in force by the service")
        expect_equal(xdp_id(), armed, "the program on the interface")
        dpkg("-i", self.new)
        expect_equal(run("systemctl", "is-enabled", "edgeshed-arm").stdout.strip(), "enabled",
                     "arming at boot after an upgrade")
        wait_for(ready, "the daemon answers after the upgrade")

    def remove_takes_everything_off(self):
        dpkg("-r", "edgeshed")
        expect_equal(processes_of(pwd.getpwnam("edgeshed").pw_uid), [], "processes after removal")
        expect(not has_xdp(), "XDP after removal")
        expect("clsact" not in run("tc", "qdisc", "show", "dev", DEV).stdout, "TC after removal")
        expect(not PINS.exists(), "pins after removal")
        expect(CONFIG.exists() and DEFAULTS.exists(), "removal took the configuration")

    def purge_leaves_nothing(self):
        dpkg("-P", "edgeshed")
        expect_equal(sorted(files() - self.before), [], "files after purge")
        expect_equal(sorted(self.before - files()), [], "files of others that purge took")
        expect(not pathlib.Path("/run/edgeshed").exists(), "/run/edgeshed after purge")
        # libxdp keeps its folder, and in it that of a dispatcher whose interface vanished: it cannot
        # be told from one in another network namespace.
        expect_equal(set(os.listdir("/sys/fs/bpf")) - self.pins_before - {"xdp"}, set(),
                     "pins after purge")
        left = [name for name in os.listdir("/sys/fs/bpf/xdp")
                if not name.startswith(f"dispatch-{self.vanished_ifindex}-")]
        expect_equal(left, [], "dispatchers after purge")
        uid = pwd.getpwnam("edgeshed").pw_uid
        owned = run("find", "/", "/run", "-xdev", "-user", str(uid)).stdout.split()
        expect_equal(owned, [], "files of the daemon's user")
        expect_equal(run("systemctl", "show", "-P", "LoadState", "edgeshed").stdout.strip(),
                     "not-found", "the unit after purge")


STEPS = ("prepare", "install_starts_nothing", "configure_and_start",
         "group_may_command_and_others_not", "daemon_is_confined", "interface_comes_back",
         "reload_is_whole_or_nothing", "stop_leaves_contracts", "upgrade_keeps_running",
         "programs_are_replaced_in_place", "upgrade_leaves_a_stopped_one_stopped",
         "attach_that_waits_keeps_the_service_off", "armed_early_the_link_stays_as_it_is",
         "remove_takes_everything_off",
         "purge_leaves_nothing")


def main():
    old, new, mark = sys.argv[1:4]
    life = Life(old, new)
    exit_code = 0
    for name in STEPS:
        start = time.monotonic()
        try:
            getattr(life, name)()
        except Exception:  # pylint: disable=broad-except
            exit_code = 1
            traceback.print_exc(file=sys.stdout)
            print(f"package: FAILED {name}", flush=True)
            log = run("journalctl", "-u", "edgeshed", "-n", "40", "--no-pager", check=False)
            print(log.stdout, flush=True)
            break
        print(f"package: ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{mark}{exit_code}", flush=True)


if __name__ == "__main__":
    main()

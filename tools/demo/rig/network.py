"""Two namespaces and one veth pair. Traffic exists only inside them: there is no route out."""

from . import options
from .processes import in_namespace, run

# A namespace of its own for each side, and the other side's address, in order of building.
SIDES = (
    (options.SERVER_NAMESPACE, options.SERVER_IFACE, options.SERVER_ADDRESS),
    (options.CLIENTS_NAMESPACE, options.CLIENTS_IFACE, options.CLIENTS_ADDRESS),
)


def build(opts, cleanup):
    for namespace, _, _ in SIDES:
        cleanup.callback(run, ["ip", "netns", "delete", namespace], may_fail=True)
        run(["ip", "netns", "add", namespace])
        # No router solicitations, no duplicate address detection: only the game is on the link.
        sysctl(namespace, "net/ipv6/conf/all/disable_ipv6", "1")
        sysctl(namespace, "net/ipv6/conf/default/disable_ipv6", "1")
    # Both ends are born inside: a killed demo leaves no interface in the host's namespace.
    run(["ip", "link", "add", "name", options.SERVER_IFACE, "netns", options.SERVER_NAMESPACE,
         "type", "veth", "peer", "name", options.CLIENTS_IFACE,
         "netns", options.CLIENTS_NAMESPACE])
    for namespace, iface, address in SIDES:
        run(["ip", "-n", namespace, "address", "add", f"{address}/24", "dev", iface])
        run(["ip", "-n", namespace, "link", "set", "lo", "up"])
        run(["ip", "-n", namespace, "link", "set", iface, "up"])
    if opts.verbose:
        print(f"demo: {options.SERVER_ADDRESS} and {options.CLIENTS_ADDRESS} in "
              f"{options.SERVER_NAMESPACE} and {options.CLIENTS_NAMESPACE}")


def sysctl(namespace, path, value):
    # /proc/sys/net shows the namespace of the process that opens it.
    script = f"[ ! -e /proc/sys/{path} ] || echo {value} > /proc/sys/{path}"
    run(in_namespace(namespace, ["sh", "-c", script]))


def udp_counters(namespace):
    """The kernel's own UDP counters of a namespace: a witness that is neither game nor EdgeShed."""
    text = run(in_namespace(namespace, ["cat", "/proc/net/snmp"]))
    names, values = [line.split()[1:] for line in text.splitlines() if line.startswith("Udp:")]
    return dict(zip(names, map(int, values)))

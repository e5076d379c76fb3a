"""The few bpf(2) calls that tests make themselves: a program of somebody else, a word of a map.

Must not know what a test checks. A descriptor that is closed takes what it attached with it.
"""

import ctypes
import os
import platform
import struct

BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_PROG_LOAD = 1, 2, 5
BPF_OBJ_PIN, BPF_OBJ_GET, BPF_LINK_CREATE = 6, 7, 28
BPF_PROG_TYPE_XDP, BPF_XDP = 6, 37
XDP_FLAGS_SKB_MODE = 2
SYSCALL = {"x86_64": 321, "aarch64": 280}


def bpf_call_number():
    return SYSCALL[platform.machine()]


def _bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"))
    result = libc.syscall(bpf_call_number(), command, buffer, len(buffer))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return result


def load_passing_xdp(name):
    """A descriptor of an XDP program that passes everything."""
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 2, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    return _bpf(BPF_PROG_LOAD, struct.pack(
        "IIQQIIQII16s", BPF_PROG_TYPE_XDP, 2, ctypes.addressof(code), ctypes.addressof(licence),
        0, 0, 0, 0, 0, name.encode()))


def link_xdp(program, ifindex, generic=False):
    """A descriptor that holds `program` on a device of the calling thread's network namespace."""
    flags = XDP_FLAGS_SKB_MODE if generic else 0
    return _bpf(BPF_LINK_CREATE, struct.pack("IIII", program, ifindex, BPF_XDP, flags))


def pin_program(program, pin):
    path = ctypes.create_string_buffer(pin.encode())
    _bpf(BPF_OBJ_PIN, struct.pack("QI", ctypes.addressof(path), program))


def change_map_value(pin, value_bytes, change):
    """Entry 0 of a pinned array becomes change(its bytes)."""
    path = ctypes.create_string_buffer(pin.encode())
    descriptor = _bpf(BPF_OBJ_GET, struct.pack("Q", ctypes.addressof(path)))
    try:
        key = ctypes.create_string_buffer(4)
        value = ctypes.create_string_buffer(value_bytes)
        entry = struct.pack("IxxxxQQQ", descriptor, ctypes.addressof(key), ctypes.addressof(value), 0)
        _bpf(BPF_MAP_LOOKUP_ELEM, entry)
        changed = change(value.raw)
        assert len(changed) == value_bytes
        ctypes.memmove(value, changed, value_bytes)
        _bpf(BPF_MAP_UPDATE_ELEM, entry)
    finally:
        os.close(descriptor)

"""Forbids a network namespace the addresses in its order: told to the kernel by netlink, since images have neither `ip`
nor `nft`. Runs once in a container of its own that shares the box's network and has NET_ADMIN, which the box never has.

Twice, because each alone has gaps. Routing refuses at once (EACCES), but a socket bound to a device passes by it: the
kernel then takes any address for a neighbour's (seen). The filter sees every packet, broadcasts too. It ends TCP with a
reset, and so is quick as well. Neither touches ARP and neighbour discovery.
"""

import errno
import ipaddress
import json
import os
import socket
import struct

NETLINK_ROUTE, NETLINK_NETFILTER = 0, 12
REQUEST, ACK, EXCL, CREATE, APPEND = 0x1, 0x4, 0x200, 0x400, 0x800
TCP, UDP, ICMPV6 = 6, 17, 58
DNS_PORT = 53
LOOPBACK_INDEX = 1


def attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def nested(kind, *parts):
    return attribute(0x8000 | kind, b"".join(parts))


def message(kind, flags, number, body):
    return struct.pack("IHHII", 16 + len(body), kind, REQUEST | flags, number, 0) + body


def exchange(protocol, data):
    """Sends and gives the numbers of the errors that came back, in order; 0 is an acknowledgement."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as netlink:
        netlink.bind((0, 0))
        netlink.send(data)
        found = []
        while True:
            try:
                # Netlink answers before `send` returns.
                answer = netlink.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            while len(answer) >= 20:
                (length,) = struct.unpack_from("I", answer)
                found.append(-struct.unpack_from("i", answer, 16)[0])
                answer = answer[(length + 3) & ~3 :]


# Routing

NEW_ROUTE, NEW_RULE = 24, 32
TABLE, MAIN_TABLE = 7331, 254
# Before the main table (32766), behind the local one (0): a box may speak to its own addresses.
ALLOW_PREFERENCE, BLOCK_PREFERENCE = 100, 200
FROM_ADMINISTRATOR, TO_TABLE, PROHIBIT = 3, 1, 8
# A socket with SO_DONTROUTE looks only at routes of at least link scope (253): this one is seen by all.
SCOPE_HOST = 254
RTA_DST, RTA_TABLE = 1, 15
FRA_DST, FRA_PRIORITY, FRA_TABLE, FRA_PROTOCOL, FRA_PORTS = 1, 6, 15, 22, 24
# TCP, ICMP, DCCP, ICMPv6, SCTP, UDP-Lite, UDP: all that a process without rights can send.
TRANSPORTS = (TCP, 1, 33, ICMPV6, 132, 136, UDP)


def family_of(network):
    return socket.AF_INET if network.version == 4 else socket.AF_INET6


class Routing:
    def __init__(self):
        self.troubles = []

    def tell(self, kind, body):
        for number in exchange(NETLINK_ROUTE, message(kind, ACK | CREATE | EXCL, 1, body)):
            # There already: another worker was quicker.
            if number not in (0, errno.EEXIST):
                self.troubles.append(f"routing: {os.strerror(number)}")

    def prohibit(self, network):
        kinds = (FROM_ADMINISTRATOR, SCOPE_HOST, PROHIBIT)
        head = struct.pack("BBBBBBBBI", family_of(network), network.prefixlen, 0, 0, 0, *kinds, 0)
        table = attribute(RTA_TABLE, struct.pack("I", TABLE))
        self.tell(NEW_ROUTE, head + table + attribute(RTA_DST, network.network_address.packed))

    def look_up(self, family, preference, table, network=None, transport=None, port=None):
        length = network.prefixlen if network else 0
        body = struct.pack("BBBBBBBBI", family, length, 0, 0, 0, 0, 0, TO_TABLE, 0)
        body += attribute(FRA_TABLE, struct.pack("I", table))
        body += attribute(FRA_PRIORITY, struct.pack("I", preference))
        if network:
            body += attribute(FRA_DST, network.network_address.packed)
        if transport:
            body += attribute(FRA_PROTOCOL, bytes([transport]))
        if port:
            body += attribute(FRA_PORTS, struct.pack("HH", port, port))
        self.tell(NEW_RULE, body)

    def put(self, blocked, allowed, servers):
        for network in blocked:
            self.prohibit(network)
        for network in allowed:
            self.look_up(family_of(network), ALLOW_PREFERENCE, MAIN_TABLE, network)
        for server in servers:
            for transport in (UDP, TCP):
                self.look_up(family_of(server), ALLOW_PREFERENCE, MAIN_TABLE, server, transport, DNS_PORT)
        for family in {family_of(network) for network in blocked}:
            for transport in TRANSPORTS:
                self.look_up(family, BLOCK_PREFERENCE, TABLE, None, transport)


# Filtering: nftables, a table for each family

SUBSYSTEM = 10
BATCH_BEGIN, BATCH_END = 0x10, 0x11
NEW_TABLE, NEW_CHAIN, NFT_NEW_RULE = 0, 3, 6
NAME = b"longhaul\0"
HOOK_OUTPUT = 3
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
EQUAL, AT_MOST, AT_LEAST = 0, 3, 5
META_OUT_DEVICE, META_TRANSPORT = 5, 16
DROP, ACCEPT = 0, 1
# Neighbour discovery and group membership, which are the kernel's own.
FIRST_KERNEL_TYPE, LAST_KERNEL_TYPE = 130, 143


def number(value):
    return struct.pack(">I", value)


def expression(name, *parts):
    return nested(1, attribute(1, name + b"\0"), nested(2, *parts))


def load(base, offset, length):
    parts = enumerate((1, base, offset, length), 1)
    return expression(b"payload", *(attribute(kind, number(value)) for kind, value in parts))


def meta(key):
    return expression(b"meta", attribute(1, number(1)), attribute(2, number(key)))


def compare(data, how=EQUAL):
    return expression(b"cmp", attribute(1, number(1)), attribute(2, number(how)), nested(3, attribute(1, data)))


def destination(network):
    length = len(network.network_address.packed)
    mask = nested(4, attribute(1, network.netmask.packed))
    none = nested(5, attribute(1, bytes(length)))
    registers = [attribute(kind, number(value)) for kind, value in ((1, 1), (2, 1), (3, length))]
    return [
        load(NETWORK_HEADER, 16 if network.version == 4 else 24, length),
        expression(b"bitwise", *registers, mask, none),
        compare(network.network_address.packed),
    ]


def transport_is(value):
    return [meta(META_TRANSPORT), compare(bytes([value]))]


def verdict(code):
    return [expression(b"immediate", attribute(1, number(0)), nested(2, nested(2, attribute(1, number(code)))))]


RESET = [expression(b"reject", attribute(1, number(1)), attribute(2, b"\0"))]


def filter_rules(version, blocked, allowed, servers, resets):
    yield [meta(META_OUT_DEVICE), compare(struct.pack("I", LOOPBACK_INDEX)), *verdict(ACCEPT)]
    if version == 6:
        types = [compare(bytes([FIRST_KERNEL_TYPE]), AT_LEAST), compare(bytes([LAST_KERNEL_TYPE]), AT_MOST)]
        yield [*transport_is(ICMPV6), load(TRANSPORT_HEADER, 0, 1), *types, *verdict(ACCEPT)]
    for network in allowed:
        yield [*destination(network), *verdict(ACCEPT)]
    for server in servers:
        for transport in (UDP, TCP):
            port = [load(TRANSPORT_HEADER, 2, 2), compare(struct.pack(">H", DNS_PORT))]
            yield [*destination(server), *transport_is(transport), *port, *verdict(ACCEPT)]
    for network in blocked:
        if resets:
            yield [*destination(network), *transport_is(TCP), *RESET]
        yield [*destination(network), *verdict(DROP)]


def put_filter(version, blocked, allowed, servers, resets=True):
    """All or nothing. @returns what went wrong"""
    family = 2 if version == 4 else 10

    def of_version(networks):
        return [network for network in networks if network.version == version]

    def part(kind, flags, *attributes):
        head = struct.pack(">BBH", family, 0, 0)
        return message(SUBSYSTEM << 8 | kind, flags, 1, head + b"".join(attributes))

    def border(kind):
        return message(kind, 0, 1, struct.pack(">BBH", 0, 0, SUBSYSTEM))

    hook = nested(4, attribute(1, number(HOOK_OUTPUT)), attribute(2, number(0)))
    chain = [attribute(1, NAME), attribute(3, NAME), hook, attribute(5, number(ACCEPT)), attribute(7, b"filter\0")]
    batch = [border(BATCH_BEGIN)]
    batch.append(part(NEW_TABLE, ACK | CREATE | EXCL, attribute(1, NAME)))
    batch.append(part(NEW_CHAIN, CREATE, *chain))
    for rule in filter_rules(version, of_version(blocked), of_version(allowed), of_version(servers), resets):
        flags = CREATE | APPEND
        batch.append(part(NFT_NEW_RULE, flags, attribute(1, NAME), attribute(2, NAME), nested(4, *rule)))
    batch.append(border(BATCH_END))
    answers = exchange(NETLINK_NETFILTER, b"".join(batch))
    wrong = [code for code in answers if code]
    # There already: another worker was quicker.
    if not wrong or errno.EEXIST in wrong:
        return []
    if resets:
        # A kernel without them: then TCP waits in vain instead.
        return put_filter(version, blocked, allowed, servers, resets=False)
    return [f"filter: {os.strerror(wrong[0])}"]


def nameservers():
    """The box's own: often the router or a cloud's metadata address, of which names alone are let through."""
    with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                try:
                    yield ipaddress.ip_network(words[1].partition("%")[0])
                except ValueError:
                    pass


def main(order):
    blocked = [ipaddress.ip_network(text) for text in order["block"]]
    allowed = [ipaddress.ip_network(text) for text in order["allow"]]
    servers = list(nameservers())
    routing = Routing()
    routing.put(blocked, allowed, servers)
    return routing.troubles + put_filter(4, blocked, allowed, servers) + put_filter(6, blocked, allowed, servers)


try:
    troubles = main(json.loads(os.environ["LONGHAUL_ADDRESSES"]))
except OSError as error:
    troubles = [str(error)]
print(json.dumps({"troubles": sorted(set(troubles))}), flush=True)

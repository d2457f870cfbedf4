"""Decides which hosts a sandbox may reach: by name before the look-up, then by all addresses found. Opens no connections."""

from __future__ import annotations

import ipaddress
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# Source: RFC 1035, 2.3.4.
MAX_NAME_CHARS = 253
# The parts of IPv6 that are allowed: the public range, and NAT64's well-known prefix.
PUBLIC6 = [ipaddress.ip_network("2000::/3"), ipaddress.ip_network("64:ff9b::/96")]


class Refused(Exception):
    """`reason` is for programs, the text for people and models."""

    def __init__(self, reason: str, text: str):
        super().__init__(text)
        self.reason = reason


class Rules:
    """The rules of one session. `registries`: allowed ports of single addresses, `named`: allowed single addresses, `protected`:
    the host and metadata services, `allowed`: allowed ranges, `special`: addresses outside the public internet. Evaluated in
    the order of network.nft."""

    def __init__(self, rules: dict[str, Any]):
        # Of a sandbox on the bridge, which reaches every public name without the proxy too.
        self.everything = "*" in rules["domains"]
        self.exact = {name for name in rules["domains"] if not name.startswith("*.")}
        self.below = tuple(name[1:] for name in rules["domains"] if name.startswith("*."))
        self.sets = {name: [ipaddress.ip_network(network) for network in rules[name]] for name in SETS}
        self.registries = {(unmapped(endpoint["address"]), endpoint["port"]) for endpoint in rules["registries"]}

    def check_name(self, text: str):
        """@returns the name in the form that is looked up and compared @raises Refused"""
        address = literal(text)
        if address:
            listed = (
                self.everything
                or str(address) in self.exact
                or self.contains("named", address)
                or self.contains("allowed", address)
            )
            name = str(address)
        else:
            name = normal_name(text)
            listed = self.everything or name in self.exact or name.endswith(self.below)
        if not listed:
            raise Refused("blocked-by-allowlist", f"{name} is not among the names that this sandbox may ask for")
        return name

    def check_addresses(self, name: str, port: int, addresses: list[str]):
        """One forbidden address refuses the name: its owner chooses which address is tried first. @raises Refused"""
        for address in map(unmapped, addresses):
            if not self.is_open(address, port):
                raise Refused("blocked-private-address", f"{name} resolves to {address}, which is not of the public internet")

    def is_open(self, address: Address, port: int):
        """Whether connections to the address and port may be made."""
        # Loopback is the proxy itself: always refused.
        if address.is_loopback:
            return False
        if (address, port) in self.registries:
            return True
        if self.contains("named", address):
            return True
        if self.contains("protected", address):
            return False
        if self.contains("allowed", address):
            return True
        if self.contains("special", address):
            return False
        return address.version == 4 or any(address in network for network in PUBLIC6)

    def contains(self, name: str, address: Address):
        return any(address in network for network in self.sets[name])


SETS = ("named", "protected", "allowed", "special")


def literal(text: str):
    """@returns the text as an address, or None if it is not one"""
    try:
        return unmapped(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def unmapped(text: str):
    """Parses an address; an IPv4-mapped IPv6 address becomes its IPv4 address. @raises ValueError"""
    address = ipaddress.ip_address(text.partition("%")[0])
    return (address.version == 6 and address.ipv4_mapped) or address


def normal_name(text: str):
    """@raises Refused if the text is not a host name: neither are other notations of addresses, such as 0x7f000001 and 127.1"""
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    is_name = len(name) <= MAX_NAME_CHARS and all(LABEL.fullmatch(label) for label in labels)
    if not is_name or re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        raise Refused("invalid-name", "this is not a host name")
    return name

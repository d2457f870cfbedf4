"""Loads the rules (network.nft) into its own network namespace, then probes what must be out of reach. Runs
once, in a container of the operator's image that shares the sandbox's network and has NET_ADMIN, which the sandbox
never has.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess

from .reach import is_reachable

NFT_SECONDS = 20


def nameservers():
    """The sandbox's name servers: often a router or a cloud's metadata service, which may be used for look-ups only."""
    with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                try:
                    yield ipaddress.ip_address(words[1].partition("%")[0])
                except ValueError:
                    pass


def load(rules: str):
    """@returns what went wrong"""
    for server in nameservers():
        rules += f"add element inet longhaul nameservers{server.version} {{ {server} }}\n"
    try:
        nft = subprocess.run(["nft", "-f", "-"], input=rules, capture_output=True, text=True, timeout=NFT_SECONDS)
    except FileNotFoundError:
        return ["its image has no nft (package nftables)"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"nft: {error}"]
    return [f"nft: {nft.stderr.strip()[:300]}"] if nft.returncode else []


def main():
    order = json.loads(os.environ["LONGHAUL_ORDER"])
    troubles = load(order["rules"])
    reachable = [address for address in order["probe"] if is_reachable(address)]
    print(json.dumps({"troubles": troubles, "reachable": reachable}), flush=True)


if __name__ == "__main__":
    main()

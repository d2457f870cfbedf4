"""Makes the certificates that a sandbox trusts for the hosts of its keys. Runs once in a container of the operator's image, whose
memory is the only place where the authority's key ever is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

FOLDER = "/tmp"
DAYS = 30
# Clocks of sandbox and proxy are the same; a program may still round up.
BEFORE_SECONDS = 3600
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256")


def openssl(*arguments: str):
    """@raises SystemExit with what it said"""
    done = subprocess.run(
        ["openssl", *arguments], cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"openssl {arguments[0]}: {done.stderr.strip()[-300:]}")


def request(name: str, subject: str):
    """Makes a key and a request for a certificate."""
    openssl("req", "-new", *EC, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)


def write(name: str, *lines: str):
    with open(os.path.join(FOLDER, name), "w", encoding="ascii") as file:
        file.write("\n".join([*lines, ""]))


def read(name: str):
    with open(os.path.join(FOLDER, name), encoding="ascii") as file:
        return file.read()


def make(hosts: list[str]):
    """@returns the authority's certificate, which may sign for these names only, and a chain with its key for each"""
    # Some programs take two authorities of one name for the same.
    request("authority", f"/CN=Longhaul sandbox {os.urandom(8).hex()}")
    names = [f"permitted;DNS.{at}={host}" for at, host in enumerate(hosts)]
    write(
        "authority.ext",
        "basicConstraints=critical,CA:TRUE,pathlen:0",
        "keyUsage=critical,keyCertSign",
        "subjectKeyIdentifier=hash",
        "nameConstraints=critical,@names",
        "[names]",
        *names,
        "excluded;IP.0=0.0.0.0/0.0.0.0",
        "excluded;IP.1=0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0",
    )
    signed = ("x509", "-req", "-sha256", "-days", str(DAYS))
    openssl(*signed, "-in", "authority.csr", "-key", "authority.key", "-out", "authority.pem", "-extfile", "authority.ext")
    made: dict[str, str] = {}
    for host in hosts:
        request("leaf", "/CN=Longhaul sandbox")
        write(
            "leaf.ext",
            "basicConstraints=critical,CA:FALSE",
            "keyUsage=critical,digitalSignature",
            "extendedKeyUsage=serverAuth",
            f"subjectAltName=DNS:{host}",
            "subjectKeyIdentifier=hash",
            "authorityKeyIdentifier=keyid",
        )
        issuer = ("-CA", "authority.pem", "-CAkey", "authority.key", "-set_serial", f"0x{os.urandom(16).hex()}")
        openssl(*signed, *issuer, "-in", "leaf.csr", "-out", "leaf.pem", "-extfile", "leaf.ext")
        made[host] = read("leaf.pem") + read("leaf.key")
    now = time.time()
    return {"authority": read("authority.pem"), "hosts": made, "made": now, "until": now + DAYS * 86_400 - BEFORE_SECONDS}


def main():
    hosts = json.loads(os.environ["LONGHAUL_ORDER"])["hosts"]
    try:
        print(json.dumps(make(hosts)))
    except FileNotFoundError:
        print(json.dumps({"lacks": "openssl"}))


if __name__ == "__main__":
    main()

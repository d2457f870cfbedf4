"""What the tools run with: the environment, the settings of a session's configuration (variables, system files, certificate
authorities), and what the kernel lets them do."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
import re
import stat
import struct

from .place import TOOL_UID, WORKSPACE
from .process import as_tool
from .usage import status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where images keep the public authorities: Debian and Alpine, Fedora, others.
PUBLIC_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
BUNDLE = "/etc/longhaul/certificates.pem"
# Java does not read PEM.
JAVA_STORE = "/etc/longhaul/certificates.jks"
# The first line of our files in the tools' home folder. Equal to OWN_LINE in key-clients.ts.
OWN_LINE = b"# By longhaul: keys"
JAVA_PASSWORD = "changeit"
TRUST = (
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
)


def apply_settings(settings: dict[str, Any]):
    """Idempotent. @returns variables for commands. @raises OSError if a file cannot be written"""
    variables: dict[str, str] = {}
    for path, text in settings.get("files", {}).items():
        if path.startswith("~/"):
            write_home_file(os.path.join(tool_user()[0], path[2:]), text)
        else:
            write_system_file(path, text)
    certificates = settings.get("certificates")
    if certificates:
        public = next((found for found in map(read_bytes, PUBLIC_BUNDLES) if found), b"")
        text = f"{public.decode('utf-8', 'replace')}\n{certificates}"
        write_system_file(BUNDLE, text)
        variables.update(dict.fromkeys(TRUST, BUNDLE))
        write_system_file(JAVA_STORE, java_store(text))
        trust = f"-Djavax.net.ssl.trustStore={JAVA_STORE}"
        variables["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {trust}".strip()
    return {**variables, **settings.get("env", {})}


def java_store(text: str):
    """The certificates of a PEM text as a Java key store. Its times are fixed, so that the same text gives the same bytes.
    Source: the format as JavaKeyStore of OpenJDK writes it."""
    blocks = re.findall("-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", text, re.S)
    found = dict.fromkeys(filter(None, map(der_of, blocks)))

    def word(value: bytes):
        return struct.pack(">H", len(value)) + value

    entries = [
        struct.pack(">I", 2) + word(b"ca-%d" % at) + struct.pack(">Q", 0) + word(b"X.509") + struct.pack(">I", len(der)) + der
        for at, der in enumerate(found)
    ]
    whole = struct.pack(">III", 0xFEEDFEED, 2, len(entries)) + b"".join(entries)
    return whole + hashlib.sha1(JAVA_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + whole).digest()


def der_of(block: str):
    """None if the block is no base64."""
    try:
        return base64.b64decode(block)
    except ValueError:
        return None


def read_bytes(path: str):
    """Empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def write_system_file(path: str, content: str | bytes):
    """Writes a file that root owns and everyone can read. Skipped if the content is the same: the disk may be full by now."""
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    if read_bytes(path) == data:
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    draft = f"{path}.new"
    with open(draft, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o644)
    os.replace(draft, path)


def write_home_file(path: str, text: str):
    """Writes a file of the tools' user, with that user's rights, unless a file that is not ours is there: its folder is the tools'."""
    draft = f"{path}.longhaul"
    with as_tool():
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                is_file = stat.S_ISREG(os.fstat(file).st_mode)
                found = os.read(file, len(text) + 1) if is_file else b""
            finally:
                os.close(file)
            if not found.startswith(OWN_LINE) or found == text.encode():
                return
        except FileNotFoundError:
            pass
        except OSError:
            # A link, or a folder that nobody can read.
            return
        try:
            if os.path.lexists(draft):
                os.unlink(draft)
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with os.fdopen(file, "wb") as out:
                out.write(text.encode())
            os.replace(draft, path)
        except OSError:
            # Without a home folder, or on a full disk, programs lack the setting and say so themselves.
            pass


def own_isolation():
    """The supervisor's confinement as the kernel reports it; the tools' is at least as strict."""
    status = status_of("/proc/self")
    return {name: status[name] for name in ("Seccomp", "NoNewPrivs", "CapBnd") if name in status}


def tool_user():
    """Home folder and name of the tools' user."""
    try:
        user = pwd.getpwuid(TOOL_UID)
        return user.pw_dir, user.pw_name
    except KeyError:
        return WORKSPACE, "agent"


def tool_environment():
    """The image's own environment and the tools' user, with nothing from the worker's environment."""
    env = {key: value for key, value in os.environ.items() if key not in ("HOSTNAME", "HOME")}
    home, name = tool_user()
    env.setdefault("LANG", "C.UTF-8")
    env.update(HOME=home, USER=name, LOGNAME=name, SHELL="/bin/bash", TERM="dumb", PAGER="cat", GIT_PAGER="cat")
    # On the tools' path only: the supervisor itself, which is root, runs nothing from a folder that they can write to.
    env["PATH"] = f"{home}/.local/bin:{env.get('PATH', os.defpath)}"
    env.update(GIT_TERMINAL_PROMPT="0", GIT_EDITOR="true", DEBIAN_FRONTEND="noninteractive")
    return env

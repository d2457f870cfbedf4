"""What a session's configuration gives its commands: variables, files of the system, certificate authorities. Part of the
supervisor: see sources.ts."""

import os

# Where images keep the public authorities: Debian and Alpine, Fedora, others.
PUBLIC_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
BUNDLE = "/etc/longhaul/certificates.pem"
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


def apply_settings(settings):
    """Idempotent. -> variables for commands. @raises OSError where a file cannot be written"""
    variables = {}
    for path, text in settings.get("files", {}).items():
        write_system_file(path, text)
    certificates = settings.get("certificates")
    if certificates:
        public = next((text for text in map(read_text, PUBLIC_BUNDLES) if text), "")
        write_system_file(BUNDLE, f"{public}\n{certificates}")
        variables.update(dict.fromkeys(TRUST, BUNDLE))
    return {**variables, **settings.get("env", {})}


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write_system_file(path, text):
    """Of root, readable for all. What is there already is not written again: the disk may be full by now."""
    if read_text(path) == text:
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    draft = f"{path}.new"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)
    os.replace(draft, path)

/** One setting for a certificate authority of a company's own: every package manager of a sandbox trusts it. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { issueCertificate } from "../support/private-authority.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
const TIMEOUT_MS = 120_000;

/** A server in the sandbox itself: it answers 404, and prints a line for each request that passed TLS. */
const SERVER = `import http.server, ssl
server = http.server.HTTPServer(("127.0.0.1", 8443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/cert.pem", "/tmp/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()`;
const AT = "https://localhost:8443";
const PROGRAMS: Readonly<Record<string, string>> = {
  npm: `npm view by-npm --registry ${AT}/ --fetch-retries 0`,
  pip: `python3 -m pip download by-pip --index-url ${AT}/ --retries 0 --no-cache-dir`,
  git: `git ls-remote ${AT}/by-git`,
  curl: `curl -sS ${AT}/by-curl`,
  node: `node -e 'fetch("${AT}/by-node").then(() => {}, (error) => console.log(error.cause))'`,
  python: `python3 -c 'import urllib.request; urllib.request.urlopen("${AT}/by-python")'`,
};

describe.each([
  ["with the authority in the session's settings", true],
  ["without it", false],
])("%s", (_, isNamed) => {
  it(`${isNamed ? "all" : "none"} of them reach the server`, { timeout: 2 * TIMEOUT_MS }, async () => {
    const { authority, key, certificate } = issueCertificate();
    const certificates = readFileSync(authority, "utf8");
    const settings = { env: {}, files: {}, registries: [], certificates: isNamed ? certificates : undefined };
    const sandbox = await sandboxes.host.open(sandboxes.spec({ settings }));
    const files = [certificate, key].map((path) => readFileSync(path, "utf8"));
    const script = `cd /tmp
cat > cert.pem <<'END'\n${files[0]}END
cat > key.pem <<'END'\n${files[1]}END
cat > server.py <<'END'\n${SERVER}\nEND
python3 server.py > served 2>&1 &
until grep -q ready served; do sleep 0.1; done
${Object.values(PROGRAMS).join("\n")}
cat served; kill %1`;
    const { out, err } = await bash(sandbox, script, TIMEOUT_MS);
    for (const name of Object.keys(PROGRAMS)) {
      const line = expect(out, `${name}: ${out}\n${err}`);
      if (isNamed) line.toMatch(new RegExp(`GET /by-${name}`));
      else line.not.toMatch(new RegExp(`GET /by-${name}`));
    }
  });
});

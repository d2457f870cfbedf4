/** Private registries, a forge and an interface of a company: one server over TLS that answers nothing without the right header. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as plainRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { AtEnd } from "./empty-folder.ts";
import { issueCertificate } from "./private-authority.ts";
import { type GitServer, makeRemote, serveGit } from "./remotes.ts";

export const ORIGINS = ["npm", "pypi", "crates", "go", "maven", "git", "api"].map((name) => `${name}.test`);

export interface KeyOrigins {
  readonly port: number;
  /** PEM of the authority that signed for the names. */
  readonly authority: string;
  /** `METHOD host/path` of each request, with ` refused` if it lacked the key. */
  readonly seen: string[];
  readonly close: () => Promise<void>;
}

const basic = (user: string, value: string) => `Basic ${Buffer.from(`${user}:${value}`).toString("base64")}`;

/** @param value of all keys, which each registry wants in its own form */
export async function serveOrigins(value: string, end: AtEnd): Promise<KeyOrigins> {
  const { authority, key, certificate } = issueCertificate(ORIGINS, end);
  const remote = makeRemote({ "README.md": "# Private\n" }, { end });
  const git: GitServer = await serveGit(remote, value, undefined, end);
  const seen: string[] = [];
  const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as AddressInfo;
  const wanted: Readonly<Record<string, string>> = {
    "pypi.test": basic("__token__", value),
    "crates.test": value,
    "maven.test": basic("deployer", value),
    "git.test": basic("x-access-token", value),
  };
  const files = privateFiles(port);
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const host = request.headers.host?.replace(/:\d+$/, "") ?? "";
    const isAllowed = request.headers.authorization === (wanted[host] ?? `Bearer ${value}`);
    const path = request.url?.split("?")[0] ?? "";
    seen.push(`${request.method} ${host}${path}${isAllowed ? "" : " refused"}`);
    if (host === "git.test") return forwardTo(git.origin, request, response);
    if (!isAllowed) return void response.writeHead(401, { "www-authenticate": "Bearer" }).end("no key\n");
    if (host === "api.test") return void response.end(JSON.stringify(request.headers));
    const file = files[`${host}${decodeURIComponent(path)}`];
    const type = path.startsWith("/simple/") ? { "content-type": "text/html" } : {};
    return void response.writeHead(file === undefined ? 404 : 200, type).end(file);
  });
  return {
    port,
    authority: readFileSync(authority, "utf8"),
    seen,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await git.close();
    },
  };
}

function forwardTo(origin: string, request: IncomingMessage, response: ServerResponse): void {
  const { method, headers } = request;
  const upstream = plainRequest(new URL(request.url ?? "", origin), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers);
    answer.pipe(response);
  });
  request.pipe(upstream);
}

/** What each registry has, by host and path. */
function privateFiles(port: number): Record<string, string | Buffer> {
  const npm = tar("package", { "package.json": '{"name":"@acme/lib","version":"1.0.0"}', "index.js": "" });
  const crate = tar("acme-lib-1.0.0", {
    "Cargo.toml": '[package]\nname = "acme-lib"\nversion = "1.0.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn lib() {}\n",
  });
  const module = zip({
    "acme.test/lib@v1.0.0/go.mod": "module acme.test/lib\n",
    "acme.test/lib@v1.0.0/lib.go": "package lib\n",
  });
  const info = "acme_lib-1.0.dist-info";
  const wheel = zip({
    "acme_lib.py": "",
    [`${info}/METADATA`]: "Metadata-Version: 2.1\nName: acme-lib\nVersion: 1.0\n",
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/RECORD`]: "",
  });
  const dist = {
    tarball: `https://npm.test:${port}/@acme/lib/-/lib-1.0.0.tgz`,
    integrity: `sha512-${createHash("sha512").update(npm).digest("base64")}`,
  };
  const line = { name: "acme-lib", vers: "1.0.0", deps: [], features: {}, yanked: false };
  const cksum = createHash("sha256").update(crate).digest("hex");
  return {
    "npm.test/@acme/lib": JSON.stringify({
      name: "@acme/lib",
      "dist-tags": { latest: "1.0.0" },
      versions: { "1.0.0": { name: "@acme/lib", version: "1.0.0", dist } },
    }),
    "npm.test/@acme/lib/-/lib-1.0.0.tgz": npm,
    "pypi.test/simple/acme-lib/": '<a href="/packages/acme_lib-1.0-py3-none-any.whl">acme_lib</a>',
    "pypi.test/packages/acme_lib-1.0-py3-none-any.whl": wheel,
    "crates.test/config.json": JSON.stringify({
      dl: `https://crates.test:${port}/dl`,
      api: `https://crates.test:${port}`,
      "auth-required": true,
    }),
    "crates.test/ac/me/acme-lib": JSON.stringify({ ...line, cksum }),
    "crates.test/dl/acme-lib/1.0.0/download": crate,
    "go.test/acme.test/lib/@v/list": "v1.0.0\n",
    "go.test/acme.test/lib/@v/v1.0.0.info": '{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}',
    "go.test/acme.test/lib/@v/v1.0.0.mod": "module acme.test/lib\n",
    "go.test/acme.test/lib/@v/v1.0.0.zip": module,
    "maven.test/acme/parent/1/parent-1.pom":
      "<project><modelVersion>4.0.0</modelVersion><groupId>acme</groupId><artifactId>parent</artifactId><version>1</version><packaging>pom</packaging></project>",
  };
}

function tar(folder: string, files: Readonly<Record<string, string>>): Buffer {
  const root = mkdtempSync(join(tmpdir(), "key-origin-"));
  try {
    return tarOf(root, folder, files);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function tarOf(root: string, folder: string, files: Readonly<Record<string, string>>): Buffer {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, folder, name)), { recursive: true });
    writeFileSync(join(root, folder, name), text);
  }
  return execFileSync("tar", ["-czf", "-", "-C", root, folder]);
}

function zip(files: Readonly<Record<string, string>>): Buffer {
  const program = `import io, json, sys, zipfile
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    for name, text in json.load(sys.stdin).items():
        archive.writestr(name, text)
sys.stdout.buffer.write(out.getvalue())`;
  return execFileSync("python3", ["-c", program], { input: JSON.stringify(files) });
}

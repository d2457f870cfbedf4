/** Keys that a sandbox can use and not read: real package managers against registries that refuse without one. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { keysSchema } from "../../activities/config/key-settings.ts";
import { forwardPort } from "../../activities/sandbox/docker/sandbox-ports.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import type { SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { findOnPath } from "../../client/setup/processes.ts";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { type KeyOrigins, ORIGINS, serveOrigins } from "../support/key-origins.ts";
import { bash, createTestSandboxes, type TestSandboxes } from "../support/test-sandboxes.ts";

const VALUE = `s3cr3t-${randomBytes(12).toString("hex")}`;
const egress = { name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`, hosts: [] as string[] };
const values: Record<string, string | undefined> = {};
const definitions: Record<string, ReturnType<typeof keysSchema.parse>[string]> = {};
let sandboxes: TestSandboxes;
let origins: KeyOrigins;
let gateway: string;
let sandbox: Sandbox;
let spec: SandboxSpec;
const ends: (() => unknown)[] = [];

const specWith = (changes: Partial<SandboxSpec>): SandboxSpec =>
  sandboxes.spec({
    network: "listed",
    allow: [`${gateway}/32`],
    settings: { env: {}, files: {}, registries: [], certificates: origins.authority },
    keys: Object.keys(definitions),
    ...changes,
  });

beforeAll(async () => {
  sandboxes = createTestSandboxes(egress, { definitions, valueOf: (name) => values[name] });
  gateway = await gatewayOf(sandboxes.docker);
  origins = await serveOrigins(VALUE, (end) => ends.push(end));
  for (const name of [...ORIGINS, "public.test"]) egress.hosts.push(`${name}:${gateway}`);
  const at = (name: string) => `${name}.test:${origins.port}`;
  Object.assign(
    definitions,
    keysSchema.parse({
      npm: { registry: "npm", host: at("npm"), scope: "@acme" },
      pypi: { registry: "pip", host: at("pypi"), user: "__token__" },
      crates: { registry: "cargo", name: "acme", host: at("crates") },
      modules: { registry: "go", host: at("go"), modules: ["acme.test/*"] },
      artifacts: { registry: "maven", host: at("maven"), user: "deployer" },
      forge: { git: at("git"), repositories: ["acme/*"] },
      staging: { host: at("api"), header: "Authorization: Bearer {}", methods: ["GET"], paths: ["/v1/**"] },
    }),
  );
  for (const name of Object.keys(definitions)) values[name] = VALUE;
  spec = specWith({});
  sandbox = await sandboxes.host.open(spec);
  await sandbox.egress?.allow([]);
}, 120_000);

afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
  await origins.close();
  for (const end of ends) await end();
});

const since = (count: number) => origins.seen.slice(count);

describe("package managers of the sandbox", () => {
  it("npm installs a private package, and cannot publish one", async () => {
    const before = origins.seen.length;
    const { out, err } = await bash(
      sandbox,
      "mkdir -p /tmp/n && cd /tmp/n && npm init -y >/dev/null && npm install @acme/lib --no-audit --no-fund 2>&1; ls node_modules/@acme/lib; npm publish node_modules/@acme/lib 2>&1 | tail -5; cat ~/.npmrc",
      120_000,
    );
    expect(out + err).toContain("package.json");
    expect(out).toContain("_authToken=longhaul-key-npm");
    expect(since(before)).toContain("GET npm.test/@acme%2flib");
    expect(since(before).filter((line) => line.startsWith("PUT") && !line.endsWith("refused"))).toEqual([]);
  }, 180_000);

  it("pip installs a private package", async () => {
    const { out, err } = await bash(
      sandbox,
      "python3 -m pip install --no-input --target /tmp/p acme-lib 2>&1; ls /tmp/p",
      120_000,
    );
    expect(out + err).toContain("acme_lib.py");
  }, 180_000);

  it("git clones a private repository, and cannot push to it", async () => {
    const { out } = await bash(
      sandbox,
      `cd /tmp && git clone -q https://git.test:${origins.port}/acme/app.git app 2>&1; cat app/README.md; cd app && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git push origin HEAD 2>&1; echo "push $?"`,
      60_000,
    );
    expect(out).toContain("# Private");
    expect(out).toMatch(/push [^0]/);
  }, 90_000);
});

/** Programs of this machine, which reach the proxy of the sandbox as its own programs do. */
async function fromHere(
  argv: readonly [string, ...string[]],
  cwd: string,
  more: Record<string, string> = {},
) {
  const container = sandboxes.docker.getContainer(sandbox.container);
  const forwarded = await forwardPort(container, { port: 3128, localPort: 0 }, () => undefined);
  try {
    const { out } = await bash(sandbox, "env -0 | base64 -w0; echo; cat /etc/longhaul/certificates.pem");
    const [variables = "", ...pem] = out.split("\n");
    const given = Buffer.from(variables, "base64").toString().split("\0");
    const bundle = join(cwd, "bundle.pem");
    writeFileSync(bundle, pem.join("\n"));
    const ours = given.filter((entry) =>
      /^(CARGO_REGISTRIES_|GO|SSL_CERT_FILE|CARGO_HTTP_CAINFO)/.test(entry),
    );
    const at = `http://127.0.0.1:${forwarded.localPort}`;
    const env = {
      ...Object.fromEntries(ours.map((entry) => [entry.split("=")[0], entry.replace(/^[^=]*=/, "")])),
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      HTTPS_PROXY: at,
      HTTP_PROXY: at,
      SSL_CERT_FILE: bundle,
      CARGO_HTTP_CAINFO: bundle,
      ...more,
    };
    const [program, ...args] = argv;
    return await promisify(execFile)(program, args, { cwd, env, timeout: 100_000 }).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
  } finally {
    forwarded.close();
  }
}

const folder = (files: Readonly<Record<string, string>>): string => {
  const path = mkdtempSync(join(tmpdir(), "with-key-"));
  mkdirSync(join(path, "src"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
};

describe("package managers that the sandbox's image may lack", () => {
  it.skipIf(findOnPath("cargo") === undefined)(
    "cargo fetches a private crate",
    async () => {
      const cwd = folder({
        "Cargo.toml":
          '[package]\nname = "app"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\nacme-lib = { version = "1", registry = "acme" }\n',
        "src/lib.rs": "",
      });
      const before = origins.seen.length;
      const { stderr } = await fromHere(["cargo", "fetch"], cwd, {
        CARGO_HOME: join(cwd, "home"),
        RUSTUP_HOME: process.env["RUSTUP_HOME"] ?? join(process.env["HOME"] ?? "", ".rustup"),
      });
      expect(since(before), stderr).toContain("GET crates.test/dl/acme-lib/1.0.0/download");
    },
    120_000,
  );

  it.skipIf(findOnPath("go") === undefined)(
    "go downloads a private module",
    async () => {
      const cwd = folder({ "go.mod": "module app\n\ngo 1.20\n\nrequire acme.test/lib v1.0.0\n" });
      const { stdout, stderr } = await fromHere(["go", "mod", "download", "-json"], cwd, {
        GOMODCACHE: join(cwd, "mods"),
        GOCACHE: join(cwd, "cache"),
        GOFLAGS: "-modcacherw -mod=mod",
        GOTOOLCHAIN: "local",
      });
      expect(`${stdout}${stderr}`).toContain('"Version": "v1.0.0"');
      expect(`${stdout}${stderr}`).not.toContain('"Error"');
    },
    120_000,
  );

  it.skipIf(findOnPath("mvn") === undefined || findOnPath("java") === undefined)(
    "mvn resolves a private artifact",
    async () => {
      const settings = (
        await bash(
          sandbox,
          "cat /etc/longhaul/maven-settings.xml; echo; base64 -w0 /etc/longhaul/certificates.jks",
        )
      ).out;
      const [xml = "", store = ""] = settings.split(/\n+(?=[A-Za-z0-9+/=]+$)/);
      const cwd = folder({
        "settings.xml": xml,
        "pom.xml":
          "<project><modelVersion>4.0.0</modelVersion><parent><groupId>acme</groupId><artifactId>parent</artifactId><version>1</version><relativePath/></parent><artifactId>app</artifactId><packaging>pom</packaging></project>",
      });
      writeFileSync(join(cwd, "trust.jks"), Buffer.from(store, "base64"));
      const container = sandboxes.docker.getContainer(sandbox.container);
      const forwarded = await forwardPort(container, { port: 3128, localPort: 0 }, () => undefined);
      const proxy = `-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=${forwarded.localPort}`;
      const { stdout, stderr } = await fromHere(
        [
          "mvn",
          "-B",
          "-ntp",
          "-N",
          "-s",
          "settings.xml",
          `-Dmaven.repo.local=${join(cwd, "repo")}`,
          "validate",
        ],
        cwd,
        { MAVEN_OPTS: `${proxy} -Djavax.net.ssl.trustStore=${join(cwd, "trust.jks")}` },
      );
      forwarded.close();
      expect(`${stdout}${stderr}`).toContain("BUILD SUCCESS");
    },
    120_000,
  );
});

describe("the value", () => {
  it("is masked where a server echoes it, and another method and path have none", async () => {
    const api = `https://api.test:${origins.port}`;
    const before = origins.seen.length;
    const { out } = await bash(
      sandbox,
      `curl -s ${api}/v1/x; curl -s -X POST ${api}/v1/x; curl -s ${api}/v2; curl -s -H 'Authorization: Bearer mine' ${api}/v1/y`,
    );
    expect(out).toContain("Bearer [key staging]");
    expect(out).not.toContain(VALUE);
    expect(since(before)).toEqual([
      "GET api.test/v1/x",
      "POST api.test/v1/x refused",
      "GET api.test/v2 refused",
      "GET api.test/v1/y",
    ]);
    const uses = (await sandbox.egress?.keyUses()) ?? [];
    expect(uses.filter(({ key }) => key === "staging")).toEqual([
      expect.objectContaining({ what: "used", method: "GET", path: "/v1/x", status: 200, count: 2 }),
      expect.objectContaining({ what: "refused", reason: "method", method: "POST" }),
      expect.objectContaining({ what: "refused", reason: "path", path: "/v2" }),
    ]);
    expect(JSON.stringify(uses)).not.toContain(VALUE);
  });

  it("is nowhere in the sandbox, also for root, nor in what its engine says of it", async () => {
    const inside = await sandboxes.docker.getContainer(sandbox.container).exec({
      Cmd: [
        "bash",
        "-c",
        `grep -rlF --exclude-dir=sys --exclude-dir=proc "${VALUE}" / 2>/dev/null; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -v LONGHAUL | grep -cF "${VALUE}"`,
      ],
      User: "0:0",
      AttachStdout: true,
    });
    const stream = await inside.start({});
    let text = "";
    for await (const piece of stream) text += String(piece);
    expect(text.replaceAll(/[^\x20-\x7e\n]/g, "").trim()).toBe("0");
    for (const name of [sandbox.container, egress.name])
      expect(JSON.stringify(await sandboxes.docker.getContainer(name).inspect())).not.toContain(VALUE);
  }, 120_000);

  it("is another one with the next opening, when the worker has another one", async () => {
    values["staging"] = `${VALUE}-new`;
    const before = origins.seen.length;
    const again = await sandboxes.newHost().open(spec);
    await again.egress?.allow([]);
    await bash(again, `curl -s https://api.test:${origins.port}/v1/rotated`);
    expect(since(before)).toEqual(["GET api.test/v1/rotated refused"]);
    values["staging"] = VALUE;
    await again.egress?.allow([]);
    await bash(again, `curl -s https://api.test:${origins.port}/v1/rotated`);
    expect(since(before + 1)).toEqual(["GET api.test/v1/rotated"]);
  });
});

describe("a sandbox with keys", () => {
  it("trusts the same authority when its worker and the proxy are new", async () => {
    const certificates = "sha256sum /etc/longhaul/certificates.pem";
    const before = (await bash(sandbox, certificates)).out;
    const other = sandboxes.newHost();
    const opened = await other.open(spec);
    expect((await bash(opened, certificates)).out).toBe(before);
    await sandboxes.docker.getContainer(egress.name).kill();
    await opened.egress?.allow([]);
    expect((await bash(opened, `curl -s https://api.test:${origins.port}/v1/z`)).out).toContain(
      "[key staging]",
    );
  }, 60_000);

  it("has them on the bridge too, where a program that ignores the proxy has none", async () => {
    const bridged = await sandboxes.host.open(specWith({ network: "bridge", keys: ["staging"] }));
    await bridged.egress?.allow(["*"]);
    const before = origins.seen.length;
    const at = `https://api.test:${origins.port}/v1/b`;
    const { out } = await bash(
      bridged,
      `curl -s ${at}; curl -sk --noproxy '*' --resolve api.test:${origins.port}:${gateway} ${at}; echo "$STAGING_TOKEN"`,
    );
    expect(out).toContain("[key staging]");
    expect(out).toContain("longhaul-key-staging");
    expect(since(before)).toEqual(["GET api.test/v1/b", "GET api.test/v1/b refused"]);
  }, 60_000);

  it("trusts another authority once its certificates are older than 25 days", async () => {
    const authority = "tail -n 20 /etc/longhaul/certificates.pem | sha256sum";
    const aged = specWith({ keys: ["staging"] });
    const before = (await bash(await sandboxes.host.open(aged), authority)).out;
    expect((await bash(await sandboxes.host.open(aged), authority)).out).toBe(before);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 26 * 86_400_000 });
    try {
      const opened = await sandboxes.host.open(aged);
      expect((await bash(opened, authority)).out).not.toBe(before);
      await opened.egress?.allow([]);
      expect((await bash(opened, `curl -s https://api.test:${origins.port}/v1/x`)).out).toContain(
        "[key staging]",
      );
    } finally {
      vi.useRealTimers();
    }
  }, 60_000);

  it("reaches no host with a key at a private address", async () => {
    const closed = await sandboxes.host.open(specWith({ keys: ["staging"], allow: [] }));
    await closed.egress?.allow([]);
    const before = origins.seen.length;
    await bash(closed, `curl -s https://api.test:${origins.port}/v1/x`);
    expect(since(before)).toEqual([]);
    expect(await closed.egress?.refused()).toMatchObject([
      { host: "api.test", reason: "blocked-private-address" },
    ]);
  }, 60_000);

  it("has its own, whatever another sandbox has for the same host", async () => {
    const none = await sandboxes.host.open(specWith({ keys: [] }));
    await none.egress?.allow(["api.test"]);
    const before = origins.seen.length;
    const { out } = await bash(
      none,
      `curl -sk https://api.test:${origins.port}/v1/none; env | grep -c TOKEN`,
    );
    expect(since(before)).toEqual(["GET api.test/v1/none refused"]);
    expect(out.trim().split("\n").at(-1)).toBe("0");
  }, 60_000);

  it("goes on without a key that the worker does not have any more", async () => {
    const opened = await sandboxes.host.open(specWith({ keys: ["staging", "gone"] }));
    expect(opened.lackingKeys).toEqual(["gone"]);
  }, 60_000);

  it("is not opened if a key has no value: the variable is named, and nothing was run", async () => {
    values["npm"] = undefined;
    try {
      await expect(sandboxes.newHost().open(specWith({ keys: ["npm"] }))).rejects.toMatchObject({
        type: "KeyMissing",
        message: expect.stringContaining(
          "the key npm needs LONGHAUL_KEY_NPM, which is not set. Nothing was run",
        ),
      });
    } finally {
      values["npm"] = VALUE;
    }
  });
});

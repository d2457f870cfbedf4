import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { useAgent } from "../support/agent-harness.ts";

const run = promisify(execFile);

const agent = useAgent();

interface Registries {
  readonly npm: string;
  /** Of npm's and pip's registries: those of a company's mirror, or of a machine like this one, may be private. */
  readonly addresses: readonly string[];
  /** The certificates that this machine trusts, where it names a file of its own. */
  readonly certificates: Buffer | undefined;
}

/** What npm and pip of this machine use. @returns undefined where they do not answer */
async function registries(): Promise<Registries | undefined> {
  try {
    const npm = (await run("npm", ["config", "get", "registry", "--loglevel=silent"])).stdout.trim();
    // pip has its defaults in its own code, which the vendored copy of Debian's Python has too.
    const program =
      "from pip._internal.models.index import PyPI; print(PyPI.url, 'https://' + PyPI.file_storage_domain)";
    const pip = (await run("python3", ["-c", program])).stdout.trim().split(" ");
    const found = await Promise.all([npm, ...pip].map((url) => lookup(new URL(url).hostname, { all: true })));
    if (!(await fetch(npm, { signal: AbortSignal.timeout(5_000) })).ok) return undefined;
    const file = process.env["NODE_EXTRA_CA_CERTS"] ?? "";
    return {
      npm,
      addresses: [...new Set(found.flat().map(({ address }) => address))],
      certificates: existsSync(file) ? readFileSync(file) : undefined,
    };
  } catch {
    return undefined;
  }
}

test(
  "a session installs a dependency with npm and one with pip, and uses both",
  { timeout: 180_000 },
  async ({ skip }) => {
    const found = await registries();
    if (found === undefined) return skip("no package registry answers on this machine");
    const { npm, addresses, certificates } = found;
    const trust =
      certificates === undefined
        ? ""
        : "export NODE_EXTRA_CA_CERTS=$PWD/certificates.pem PIP_CERT=$PWD/certificates.pem; ";
    const script = scriptedModel()
      .calls("bash", {
        command: `${trust}npm install --registry '${npm}' is-number && node -e 'console.log(require("is-number")(7))'`,
        timeout_seconds: 120,
      })
      .calls("bash", {
        command: `${trust}pip install six && python -c 'import six; print(six.__name__, six.__file__)'`,
        timeout_seconds: 120,
      })
      .says("Done.");
    const session = await agent.start(script, {
      config: (config) => ({ ...config, sandbox: { ...config.sandbox, allow: [...addresses] } }),
      workspace:
        certificates === undefined
          ? undefined
          : await packWorkspace([
              { kind: "file", path: "certificates.pem", mode: 0o644, bytes: certificates },
            ]),
    });
    expect((await session.result()).status).toBe("completed");
    const [node = "", python = ""] = await resultTexts(agent.database.store, session.id);
    expect(node).toMatch(/^true$/m);
    expect(python).toMatch(/six .*\/home\/agent\/\.local\/lib\/python3/);
  },
);

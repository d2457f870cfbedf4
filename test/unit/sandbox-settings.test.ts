import { expect, test } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";
import { PUBLIC_REGISTRIES } from "../../activities/config/public-registries.ts";
import { listedRegistries, registrySettings } from "../../activities/config/registry-settings.ts";
import { refusedLately } from "../../activities/sandbox/docker/firewall-rules.ts";
import { networkNote } from "../../activities/tools/bash-result.ts";

const sandboxOf = (sandbox: object) => agentConfigSchema.parse({ sandbox }).sandbox;

test("configured registries are used by their tools, and only they may be reached", () => {
  const { env, files, hosts } = registrySettings(
    sandboxOf({
      registries: {
        npm: "https://npm.example.test/all/",
        pip: ["https://pip.example.test/simple", "http://more.example.test:8080/simple"],
        cargo: "https://cargo.example.test/index/",
        go: ["https://go.example.test", "direct"],
        maven: "https://maven.example.test/m2?a=1&b=2",
      },
    }),
  );
  expect(env).toEqual({
    npm_config_registry: "https://npm.example.test/all/",
    YARN_NPM_REGISTRY_SERVER: "https://npm.example.test/all/",
    COREPACK_NPM_REGISTRY: "https://npm.example.test/all",
    PIP_INDEX_URL: "https://pip.example.test/simple",
    PIP_EXTRA_INDEX_URL: "http://more.example.test:8080/simple",
    UV_DEFAULT_INDEX: "https://pip.example.test/simple",
    UV_INDEX: "http://more.example.test:8080/simple",
    GOPROXY: "https://go.example.test,direct",
    MAVEN_ARGS: "-s /etc/longhaul/maven-settings.xml",
  });
  expect(files["/.cargo/config.toml"]).toContain('registry = "sparse+https://cargo.example.test/index/"');
  expect(files["/etc/longhaul/maven-settings.xml"]).toContain(
    "<url>https://maven.example.test/m2?a=1&amp;b=2</url>",
  );
  expect(hosts).toEqual([
    "npm.example.test:443",
    "pip.example.test:443",
    "more.example.test:8080",
    "cargo.example.test:443",
    "go.example.test:443",
    "maven.example.test:443",
  ]);
});

test("inherited registries include the public names, which may lead into a company's network", () => {
  const inherited = { registries: { npm: ["http://npm.example.test/"] } };
  const { env, hosts } = registrySettings({ ...sandboxOf({}), inherited });
  expect(env).toMatchObject({ npm_config_registry: "http://npm.example.test/" });
  expect(hosts).toEqual(expect.arrayContaining(["npm.example.test:80", `${PUBLIC_REGISTRIES[0]}:443`]));
  for (const closed of [{ registries: "none" }, { network: "none" }])
    expect(registrySettings({ ...sandboxOf(closed), inherited })).toEqual({ env: {}, files: {}, hosts: [] });
});

test.each([
  { registries: { npm: "file:///srv" } },
  { registries: { ruby: "https://gems.example.test" } },
  { env: { "A-B": "1" } },
  { env: { LONGHAUL_X: "1" } },
])("%j is refused", (sandbox) => {
  expect(agentConfigSchema.safeParse({ sandbox }).success).toBe(false);
});

/** As nft 1.1 prints it. */
const LISTED = JSON.stringify({
  nftables: [
    { metainfo: { json_schema_version: 1 } },
    {
      set: {
        name: "refused4",
        timeout: 600,
        elem: [
          { elem: { val: { concat: ["10.1.2.3", 8080] }, expires: 597 } },
          { elem: { val: { concat: ["10.9.9.9", 443] }, expires: 480 } },
        ],
      },
    },
    { set: { name: "special4", elem: [{ prefix: { addr: "10.0.0.0", len: 8 } }] } },
    { set: { name: "refused6" } },
  ],
});

test("only the firewall's refusals during the command count", () => {
  expect(refusedLately(LISTED, 3_000)).toEqual([{ address: "10.1.2.3", port: 8080 }]);
  expect(refusedLately(LISTED, 120_000)).toHaveLength(2);
});

test("a refused address is reported with its setting, and looked for if the output hints at it", async () => {
  let asked = 0;
  const sandbox = { refused: async () => ((asked += 1), [{ address: "10.1.2.3", port: 8080 }]) };
  const facts = { id: "c", startedAtMs: 0, outBytes: 0, errBytes: 0, outKept: 0, errKept: 0 } as const;
  const ended = { ...facts, kind: "exited", exitCode: 7, durationMs: 20 } as const;
  expect(await networkNote(sandbox, ended, "curl: (7) Failed to connect to 10.1.2.3 port 8080")).toMatch(
    /refused 10\.1\.2\.3 port 8080.*sandbox\.allow: \[10\.1\.2\.3\]/,
  );
  expect(await networkNote(sandbox, ended, "1 test failed")).toBeUndefined();
  expect(asked).toBe(1);
  expect(await networkNote({}, ended, "connection refused")).toBeUndefined();
});

test("a set-up is written as its commands alone, or with its other settings", () => {
  const { commands, optional, timeout } = sandboxOf({ setup: ["npm ci"] }).setup;
  expect({ commands, optional, timeout }).toEqual({
    commands: ["npm ci"],
    optional: false,
    timeout: 1_200_000,
  });
  expect(sandboxOf({ setup: { commands: ["make"], optional: true } }).setup).toMatchObject({
    optional: true,
    keep: true,
  });
  // The form of the session's row.
  expect(sandboxOf(sandboxOf({ setup: ["npm ci"] })).setup.commands).toEqual(["npm ci"]);
});

test("with `listed` the machine's private registries are listed, the public ones are not", () => {
  const found = {
    npm: ["https://npm.example.test:8443/all/"],
    pip: [`https://${PUBLIC_REGISTRIES[2]}/simple`],
  };
  const sandbox = { ...sandboxOf({ network: "listed" }), inherited: { registries: found } };
  expect(listedRegistries(sandbox)).toEqual(["npm.example.test"]);
  expect(listedRegistries({ ...sandbox, registries: "none" })).toEqual([]);
});

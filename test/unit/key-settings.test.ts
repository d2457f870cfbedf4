/** Keys: what a policy may define, which requests each recipe is for, and what the sandbox gets instead of a value. */
import { describe, expect, it } from "vitest";
import { keyClients } from "../../activities/config/key-clients.ts";
import { keyRule, keysSchema, keyVariable, valueProblem } from "../../activities/config/key-settings.ts";
import { operatorPolicySchema } from "../../activities/config/operator-policy.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { secretsOf } from "../../activities/redaction/secret-values.ts";
import { sandboxConfigSchema } from "../../activities/config/sandbox-settings.ts";

const NPM = { registry: "npm", host: "npm.acme.test", scope: "@acme" } as const;
const HOST = {
  host: "api.acme.test",
  header: "X-Token: {}",
  methods: ["GET"],
  paths: ["/v1/**"],
};

describe("a policy's keys", () => {
  it.each([
    ["another kind", { file: "x" }, /either `registry`|host|header/],
    ["an unknown registry", { registry: "gem", host: "a.test" }, /registry/],
    ["no host", { registry: "npm" }, /host/],
    ["a pattern of hosts", { ...NPM, host: "*.acme.test" }, /exact host name/],
    ["an address", { ...NPM, host: "10.0.0.1" }, /exact host name/],
    ["an address of the web", { ...NPM, host: "https://npm.acme.test" }, /exact host name/],
    ["a group", { ...NPM, host: "group:packages" }, /exact host name/],
    ["a port that none is", { ...NPM, host: "npm.acme.test:70000" }, /exact host name/],
    ["an unknown field", { ...NPM, token: "x" }, /token/],
    ["a scope without @", { ...NPM, scope: "acme" }, /@acme/],
    ["a header without {}", { ...HOST, header: "X-Token: abc" }, /\{\} once/],
    ["a header on two lines", { ...HOST, header: "X-Token: {}\r\nX: y" }, /header/],
    ["a header without a name", { ...HOST, header: ": {}" }, /header/],
    ["no methods", { ...HOST, methods: [] }, /methods/],
    ["a path without a slash", { ...HOST, paths: ["v1"] }, /path/],
    ["no repositories", { git: "github.test", repositories: [] }, /repositories/],
    ["a repository above", { git: "github.test", repositories: ["acme"] }, /acme\/app/],
  ])("may not have %s", (_what, key, message) => {
    const found = keysSchema.safeParse({ some: key });
    expect(found.success).toBe(false);
    expect(
      found.error?.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"),
    ).toMatch(message);
  });

  it.each(["Npm", "n_pm", "", "-npm", "npm-", "a".repeat(41)])("may not be called %j", (name) => {
    expect(keysSchema.safeParse({ [name]: NPM }).success).toBe(false);
    expect(sandboxConfigSchema.safeParse({ keys: [name] }).success).toBe(false);
  });

  it("are a part of the policy, and a session has names only", () => {
    expect(operatorPolicySchema.parse({ keys: { npm: NPM } }).keys).toEqual({ npm: { ...NPM, path: "/" } });
    expect(sandboxConfigSchema.parse({ keys: ["npm"] }).keys).toEqual(["npm"]);
    expect(sandboxConfigSchema.safeParse({ keys: { npm: NPM } }).success).toBe(false);
  });
});

describe("a recipe", () => {
  const rules = (key: object) => {
    const { some } = keysSchema.parse({ some: key });
    if (some === undefined) throw new Error("no key");
    const { textOf, ...rule } = keyRule(some);
    return { ...rule, text: textOf("value$&") };
  };
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

  it("of a registry is for reading below its path", () => {
    expect(rules({ ...NPM, path: "/repository/npm" })).toEqual({
      host: "npm.acme.test",
      port: 443,
      header: "Authorization",
      text: "Bearer value$&",
      uses: [{ methods: ["GET", "HEAD"], path: "/repository/npm/**" }],
    });
    const pip = rules({ registry: "pip", host: "PyPI.test:8443", user: "__token__", path: "/a/simple" });
    expect(pip).toMatchObject({ host: "pypi.test", port: 8443, text: basic("__token__:value$&") });
    expect(pip.uses).toEqual([{ methods: ["GET", "HEAD"], path: "/a/**" }]);
    expect(rules({ registry: "cargo", name: "acme", host: "c.test" }).text).toBe("value$&");
  });

  it("of a forge is for fetching its repositories", () => {
    const { text, uses } = rules({ git: "github.test", repositories: ["acme/*"] });
    expect(text).toBe(basic("x-access-token:value$&"));
    expect(uses.map(({ methods, path, query }) => `${methods.join()} ${path} ${query ?? "any"}`)).toEqual([
      "GET /acme/*/info/refs service=git-upload-pack",
      "POST /acme/*/git-upload-pack any",
      "GET /acme/* go-get=1",
      "GET /acme/*.git/info/refs service=git-upload-pack",
      "POST /acme/*.git/git-upload-pack any",
      "GET /acme/*.git go-get=1",
    ]);
  });

  it("of a host has its own header, methods and paths", () => {
    expect(rules(HOST)).toMatchObject({
      header: "X-Token",
      text: "value$&",
      uses: [{ methods: ["GET"], path: "/v1/**" }],
    });
  });
});

it("a sandbox has placeholders, addresses and no value", () => {
  const { env, files } = keyClients(
    keysSchema.parse({
      npm: NPM,
      "all-npm": { registry: "npm", host: "npm.test:8443", path: "/all" },
      pypi: { registry: "pip", host: "pypi.test" },
      crates: { registry: "cargo", name: "acme-crates", host: "crates.test" },
      go: { registry: "go", host: "go.test", modules: ["acme.test/*"] },
      forge: { git: "github.test", repositories: ["acme/*"] },
      jars: { registry: "maven", host: "maven.test", mirrorOf: "central" },
    }),
  );
  expect(env).toMatchObject({
    ALL_NPM_TOKEN: "longhaul-key-all-npm",
    PIP_INDEX_URL: "https://pypi.test/simple/",
    CARGO_REGISTRIES_ACME_CRATES_INDEX: "sparse+https://crates.test/",
    CARGO_REGISTRIES_ACME_CRATES_TOKEN: "longhaul-key-crates",
    GOPROXY: "https://go.test/",
    GOPRIVATE: "github.test/acme/*",
    GONOSUMDB: "acme.test/*,github.test/acme/*",
    MAVEN_ARGS: "-s /etc/longhaul/maven-settings.xml",
  });
  expect(files["~/.npmrc"]?.split("\n").slice(1, -1)).toEqual([
    "@acme:registry=https://npm.acme.test/",
    "//npm.acme.test/:_authToken=longhaul-key-npm",
    "registry=https://npm.test:8443/all/",
    "//npm.test:8443/all/:_authToken=longhaul-key-all-npm",
  ]);
  expect(files["/etc/longhaul/maven-settings.xml"]).toContain(
    "<mirrorOf>central</mirrorOf><url>https://maven.test/</url>",
  );
});

it.each([
  [undefined, /the key staging-api needs LONGHAUL_KEY_STAGING_API, which is not set/],
  ["", /not set/],
  ["short", /shorter than 8 characters/],
  ["with a blank in it", /no header can have/],
  ["with\nan-end", /no header can have/],
  ["a-good-value", undefined],
])("the value %j: %s", (value, problem) => {
  expect(keyVariable("staging-api")).toBe("LONGHAUL_KEY_STAGING_API");
  if (problem === undefined) expect(valueProblem("staging-api", value)).toBeUndefined();
  else expect(valueProblem("staging-api", value)).toMatch(problem);
});

it("a value is masked as a secret, also in base64 and where its name says nothing of one", () => {
  const value = "acme-0123456789-value";
  const { clean } = createSanitizer(secretsOf({ LONGHAUL_KEY_STAGING_URL: value }));
  expect(clean(`got ${value} and ${Buffer.from(value).toString("base64")}`)).not.toMatch(
    /0123456789|MDEyMzQ1Njc4/,
  );
});

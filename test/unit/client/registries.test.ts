import { expect, test } from "vitest";
import { onlyCertificates, findRegistries } from "../../../client/registries/machine-registries.ts";

const machine = (files: Record<string, string>, environment: Record<string, string> = {}) =>
  findRegistries({ environment, home: "/home/agent", read: (path) => files[path] });

test("the registries come from the person's npmrc, pip.conf, cargo, Go and Maven settings", () => {
  const { registries, notes } = machine({
    "/home/agent/.npmrc":
      "; mine\nregistry = https://npm.example.test/all/\n@acme:registry=https://other.example.test\n",
    "/home/agent/.config/pip/pip.conf":
      "[install]\nindex-url = https://wrong.example.test\n[global]\nindex-url = https://pip.example.test/simple\nextra-index-url =\n  https://a.example.test/simple\n  https://b.example.test/simple\ntimeout = 3\n",
    "/home/agent/.cargo/config.toml":
      '[source."crates-io"]\nreplace-with = "mirror" # ours\n\n[source.mirror]\nregistry = "sparse+https://cargo.example.test/index/"\n',
    "/home/agent/.config/go/env": "GOFLAGS=-v\nGOPROXY=https://go.example.test,direct\n",
    "/home/agent/.m2/settings.xml":
      "<settings><mirrors><!-- <mirror><mirrorOf>*</mirrorOf><url>https://old.example.test</url></mirror> -->" +
      "<mirror><mirrorOf>jboss</mirrorOf><url>https://jboss.example.test</url></mirror>" +
      "<mirror><id>m</id><mirrorOf>central</mirrorOf><url> https://maven.example.test/m2 </url></mirror></mirrors></settings>",
  });
  expect(registries).toEqual({
    npm: ["https://npm.example.test/all/"],
    pip: [
      "https://pip.example.test/simple",
      "https://a.example.test/simple",
      "https://b.example.test/simple",
    ],
    cargo: ["https://cargo.example.test/index/"],
    go: ["https://go.example.test", "direct"],
    maven: ["https://maven.example.test/m2"],
  });
  expect(notes).toEqual([]);
});

test("variables override files, and a machine without settings has none", () => {
  const environment = { NPM_CONFIG_REGISTRY: "https://n.example.test/", GOPROXY: "off" };
  expect(
    machine({ "/home/agent/.npmrc": "registry=https://npm.example.test/" }, environment).registries,
  ).toEqual({
    npm: ["https://n.example.test/"],
    go: ["off"],
  });
  expect(machine({}).registries).toEqual({});
});

test("npm's variables do not count: the current folder's .npmrc may be a stranger's", () => {
  const byNpm = { npm_config_registry: "http://10.1.2.3/", npm_command: "exec" };
  expect(machine({}, byNpm).registries).toEqual({});
  expect(machine({}, { npm_config_registry: "http://10.1.2.3/" }).registries).toEqual({
    npm: ["http://10.1.2.3/"],
  });
});

test("credentials in an address are dropped and reported; what is no web address is left out", () => {
  const { registries, notes } = machine(
    { "/home/agent/.npmrc": "registry=https://ada:s3cret@npm.example.test/all/" },
    { GOPROXY: "file:///srv/go|https://go.example.test", PIP_INDEX_URL: "nonsense" },
  );
  expect(registries).toEqual({ npm: ["https://npm.example.test/all/"], go: ["https://go.example.test"] });
  expect(notes.join("\n")).toMatch(/npm registry npm\.example\.test contains a name or a password/);
  expect(JSON.stringify({ registries, notes })).not.toContain("s3cret");
});

test("only the certificates of a bundle are used, each once", () => {
  const one = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
  const key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----";
  expect(onlyCertificates(`# Root\n${one}\n${key}\n${one.replaceAll("\n", "\r\n")}\n`)).toBe(`${one}\n`);
  expect(onlyCertificates(key)).toBeUndefined();
});

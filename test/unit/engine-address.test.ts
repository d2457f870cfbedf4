import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { engineAddress } from "../../activities/sandbox/docker/engine-address.ts";
import { emptyFolder } from "../support/empty-folder.ts";

/** A home with Docker's own files. */
function home(files: Readonly<Record<string, string>> = {}): string {
  const folder = emptyFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const idOf = (context: string) => createHash("sha256").update(context).digest("hex");
const metaOf = (context: string, endpoint: object) => ({
  [`.docker/contexts/meta/${idOf(context)}/meta.json`]: JSON.stringify({
    Name: context,
    Endpoints: { docker: endpoint },
  }),
});
const current = (context: string) => ({ ".docker/config.json": JSON.stringify({ currentContext: context }) });

describe("the address of DOCKER_HOST", () => {
  const of = (value: string, more: Record<string, string> = {}) =>
    engineAddress({ HOME: home(), DOCKER_HOST: value, ...more }).client;

  it.each([
    ["unix:///run/a.sock", { socketPath: "/run/a.sock" }],
    ["tcp://10.0.0.7:2375", { protocol: "http", host: "10.0.0.7", port: 2375 }],
    ["10.0.0.7:4243", { protocol: "http", host: "10.0.0.7", port: 4243 }],
    ["tcp://engine", { protocol: "http", host: "engine", port: 2375 }],
    ["http://engine:80", { protocol: "http", host: "engine", port: 80 }],
    ["tcp://[::1]:2375", { protocol: "http", host: "::1", port: 2375 }],
    ["tcp://[fe80::2]", { protocol: "http", host: "fe80::2", port: 2375 }],
    ["tcp://engine:2376", { protocol: "https", host: "engine", port: 2376 }],
    ["https://engine:443", { protocol: "https", host: "engine", port: 443 }],
    ["ssh://me@engine", { protocol: "ssh", host: "engine", port: 22, username: "me" }],
  ])("%s is read as the docker command reads it", (value, client) => {
    expect(of(value)).toEqual(client);
  });

  it.each(["engine one", "ftp://engine", "tcp://", "http:///x"])("%s is refused by name", (value) => {
    expect(() => of(value)).toThrow(/^DOCKER_HOST is ".*", which is no address of an engine/);
  });

  it("takes the certificates of DOCKER_CERT_PATH, verified only with DOCKER_TLS_VERIFY", () => {
    const folder = home({ "ca.pem": "CA", "cert.pem": "CERT", "key.pem": "KEY" });
    const verified = of("tcp://engine:2376", { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: folder });
    expect(verified).toEqual({
      protocol: "https",
      host: "engine",
      port: 2376,
      ca: Buffer.from("CA"),
      cert: Buffer.from("CERT"),
      key: Buffer.from("KEY"),
    });
    const trusting = of("tcp://engine:4000", { DOCKER_CERT_PATH: folder });
    expect(trusting).toMatchObject({ protocol: "https", agent: { options: { rejectUnauthorized: false } } });
  });

  it("trusts any certificate with DOCKER_TLS, as the docker command does", () => {
    const encrypted = { protocol: "https", agent: { options: { rejectUnauthorized: false } } };
    expect(of("tcp://engine:4000", { DOCKER_TLS: "1", HOME: home({}) })).toMatchObject(encrypted);
    const own = { HOME: home({ ".docker/ca.pem": "CA" }) };
    expect(of("tcp://engine:4000", { DOCKER_TLS: "1", ...own })).toMatchObject({
      ...encrypted,
      ca: Buffer.from("CA"),
    });
    const verified = of("tcp://engine:4000", {
      DOCKER_TLS: "1",
      DOCKER_TLS_VERIFY: "1",
      DOCKER_CERT_PATH: home({ "ca.pem": "CA", "cert.pem": "CERT", "key.pem": "KEY" }),
    });
    expect(verified).not.toHaveProperty("agent");
  });

  it("says which certificate is missing", () => {
    const folder = home({ "ca.pem": "CA" });
    expect(() => of("tcp://engine:2376", { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: folder })).toThrow(
      `DOCKER_CERT_PATH is ${folder}, which has no cert.pem`,
    );
  });
});

describe("the context of the person's docker command", () => {
  it("is followed", () => {
    const folder = home({
      ...current("colima"),
      ...metaOf("colima", { Host: "unix:///run/colima.sock" }),
    });
    expect(engineAddress({ HOME: folder })).toEqual({
      client: { socketPath: "/run/colima.sock" },
      shown: "unix:///run/colima.sock",
      from: "docker context colima",
    });
  });

  it("is the one of DOCKER_CONTEXT before the current one, and DOCKER_HOST comes before both", () => {
    const files = {
      ...current("one"),
      ...metaOf("one", { Host: "tcp://one:2375" }),
      ...metaOf("two", { Host: "tcp://two:2375" }),
    };
    const environment = { HOME: home(files), DOCKER_CONTEXT: "two" };
    expect(engineAddress(environment).shown).toBe("tcp://two:2375");
    expect(engineAddress({ ...environment, DOCKER_HOST: "tcp://three:1" })).toMatchObject({
      shown: "tcp://three:1",
      from: "DOCKER_HOST",
    });
    expect(engineAddress({ ...environment, DOCKER_CONTEXT: "default" }).from).toBe("default");
  });

  it("brings its certificates", () => {
    const tls = `.docker/contexts/tls/${idOf("far")}/docker`;
    const folder = home({
      ...current("far"),
      ...metaOf("far", { Host: "tcp://far:2376" }),
      [`${tls}/ca.pem`]: "CA",
    });
    expect(engineAddress({ HOME: folder }).client).toEqual({
      protocol: "https",
      host: "far",
      port: 2376,
      ca: Buffer.from("CA"),
    });
  });

  it("is read from DOCKER_CONFIG, if that is set", () => {
    const folder = home({ ...current("x"), ...metaOf("x", { Host: "tcp://x:1" }) });
    expect(engineAddress({ HOME: home(), DOCKER_CONFIG: join(folder, ".docker") }).shown).toBe("tcp://x:1");
  });

  it("is refused if it is not there, or if its files are broken", () => {
    expect(() => engineAddress({ HOME: home(current("gone")) })).toThrow(
      /^The current Docker context is gone, and there is no such context/,
    );
    expect(() => engineAddress({ HOME: home(), DOCKER_CONTEXT: "gone" })).toThrow(/^DOCKER_CONTEXT is gone/);
    expect(() => engineAddress({ HOME: home({ ".docker/config.json": "{" }) })).toThrow(/is not JSON/);
  });
});

import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { chmodSync, chownSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readWorkerConfig } from "../../../worker/config.ts";
import { dockerMissing, isPermissionDenied, probeDocker } from "../../../temporal/probe.ts";
import { listen } from "../../support/listen.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const denied = Object.assign(new Error("connect EACCES /var/run/docker.sock"), { code: "EACCES" });

it("reports a missing permission for a Docker socket, with the line that grants it", () => {
  const missing = dockerMissing("unix:///var/run/docker.sock", denied);
  expect(missing.message).toBe(
    "Docker engine does not let this user in at unix:///var/run/docker.sock (permission denied). " +
      "Add yourself to the group docker, then log in again: sudo usermod -aG docker $USER",
  );
  expect(isPermissionDenied(missing.cause)).toBe(true);
});

it.runIf(process.getuid?.() === 0 && process.platform === "linux")("says so of a real socket", async () => {
  const folder = emptyFolder();
  const path = join(folder, "docker.sock");
  const server = createServer().listen(path);
  await new Promise((resolve) => server.once("listening", resolve));
  chmodSync(path, 0o600);
  chownSync(folder, 65_534, 65_534);
  process.seteuid?.(65_534);
  try {
    await expect(probeDocker({ DOCKER_HOST: `unix://${path}` })).rejects.toThrow(
      /permission denied.*usermod -aG docker/,
    );
  } finally {
    process.seteuid?.(0);
    server.close();
  }
});

it("reports for other errors that the engine does not answer, and why", () => {
  const { message } = dockerMissing("unix:///x", new Error("connect ENOENT /x"));
  expect(message).toMatch(
    /^Docker engine does not answer at unix:\/\/\/x \(connect ENOENT \/x\)\. Start Docker/,
  );
});

it("reports the cause for a service without an address", () => {
  expect(() => readWorkerConfig({})).toThrow(
    /^Postgres has no address \(DATABASE_URL is not set\)\. Set it to/,
  );
});

it.each([
  [
    { Version: "19.03.1", ApiVersion: "1.40", Os: "linux" },
    /is too old \(Docker 19\.03\.1, API 1\.40; needed: API 1\.41\)/,
  ],
  [{ Version: "28.0.0", ApiVersion: "1.48", Os: "windows" }, /runs windows containers/],
  [{ Version: "4.3.1", Components: [{ Name: "Podman Engine" }] }, /is Podman, which is not supported/],
])(
  "an engine that no sandbox can be made on is refused before anything starts: %o",
  async (version, words) => {
    const server = createHttpServer((_request, response) => response.end(JSON.stringify(version)));
    const port = await listen(server);
    await expect(probeDocker({ DOCKER_HOST: `tcp://127.0.0.1:${port}` })).rejects.toThrow(words);
  },
);

it.each([
  ["a login page", 200, "<html><title>Login</title></html>", "no JSON: <html><title>Login</title></html>"],
  ["a redirect", 302, "", "it answered with 302"],
  ["a proxy that wants a password", 407, "Who are you?", "it answered with 407: Who are you?"],
  ["an empty answer", 200, "", "no JSON: an empty answer"],
  ["another service's JSON", 200, "[]", "its answer names no version"],
  ["JSON that is nothing", 200, "null", "its answer names no version"],
  ["a gateway without its engine", 503, "no upstream", "it answered with 503: no upstream"],
])("what answers in an engine's place is neither one nor silent: %s", async (_what, status, body, reason) => {
  const server = createHttpServer((_request, response) => void response.writeHead(status).end(body));
  const port = await listen(server);
  const { message } = await probeDocker({ DOCKER_HOST: `tcp://127.0.0.1:${port}` }).then(
    (found) => ({ message: `✓ ${found}` }),
    (error: unknown) => error as Error,
  );
  expect(message).toContain(
    `does not answer as one at tcp://127.0.0.1:${port} (${reason}). Check that DOCKER_HOST`,
  );
});

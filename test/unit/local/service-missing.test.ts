import { createServer } from "node:net";
import { chmodSync, chownSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readWorkerConfig } from "../../../worker/config.ts";
import { dockerMissing, isPermissionDenied, probeDocker } from "../../../worker/connect/probe.ts";
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

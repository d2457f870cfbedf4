/** `network: listed` and a private package registry, whose address is not of the public internet. */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { bash, createTestSandboxes, type TestSandboxes } from "../support/test-sandboxes.ts";

const NAME = "registry.test";
const egress = { name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`, hosts: [] as string[] };
const servers = [createServer(), createServer()] as const;
let sandboxes: TestSandboxes;
let gateway: string;

beforeAll(async () => {
  sandboxes = createTestSandboxes(egress);
  gateway = await gatewayOf(sandboxes.docker);
  egress.hosts.push(`${NAME}:${gateway}`);
  for (const server of servers) {
    server.on("request", (_request, response) => response.end("hello"));
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  }
});

afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
  for (const server of servers) server.close();
});

test("the registry is open at its port by name and address, and its host at no other port", async () => {
  const [registry, other] = servers.map((server) => (server.address() as AddressInfo).port);
  const settings = { env: {}, files: {}, registries: [`${gateway}:${registry}`] };
  const sandbox = await sandboxes.host.open(sandboxes.spec({ network: "listed", settings }));
  await sandbox.egress?.allow([NAME, gateway]);
  const places = [`${gateway}:${registry}`, `${NAME}:${registry}`, `${NAME}:${other}`];
  const commands = places.map((place) => `curl -s -m 10 -o /dev/null -w '%{http_code} ' http://${place}/`);
  expect((await bash(sandbox, commands.join("; "))).out).toBe("200 200 403 ");
  expect(await sandbox.egress?.refused()).toMatchObject([
    { host: NAME, port: other, reason: "blocked-private-address" },
  ]);
});

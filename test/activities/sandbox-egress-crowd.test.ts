/** One sandbox's crowd of connections to the egress proxy, which all sandboxes of a host share. */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { eventually } from "../support/eventually.ts";
import { listen } from "../support/listen.ts";
import { bash, createTestSandboxes, type TestSandboxes } from "../support/test-sandboxes.ts";

const egress = { name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`, hosts: [] as string[] };
let sandboxes: TestSandboxes;
let sandbox: Sandbox;
let port: number;
const server = createServer((_request, response) => void response.end("hello"));

beforeAll(async () => {
  sandboxes = createTestSandboxes(egress);
  const gateway = await gatewayOf(sandboxes.docker);
  egress.hosts.push(`good.test:${gateway}`);
  port = await listen(server, { host: "0.0.0.0", end: () => undefined });
  sandbox = await sandboxes.host.open(sandboxes.spec({ network: "listed", allow: [`${gateway}/32`] }));
  await sandbox.egress?.allow(["good.test"]);
}, 60_000);

afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.host.removeUnused();
  server.closeAllConnections();
  server.close();
});

test("another's requests pass while one sandbox holds 1,100 idle connections", async () => {
  const spec = sandboxes.spec({ network: "listed", pids: 512 });
  const crowd = await sandboxes.host.open(spec);
  const flood = `import os, select, socket, time
def reach():
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(5)
    try:
        peer.connect("/run/longhaul/egress.sock")
    except OSError:
        return None
    return peer
for _ in range(10):
    if os.fork() == 0:
        held = [reach() for _ in range(110)]
        open(f"/tmp/held-{os.getpid()}", "w").close()
        end = time.monotonic() + 120
        while time.monotonic() < end:
            gone = select.select([peer for peer in held if peer], [], [], 1)[0]
            for peer in gone:
                peer.close()
                held.remove(peer)
        os._exit(0)
time.sleep(120)`;
  await crowd.start({ id: "flood", argv: ["python3", "-c", flood], timeoutMs: 120_000 });
  await eventually("the crowd", async () => {
    const { out } = await bash(crowd, "ls /tmp | grep -c held-");
    return out.trim() === "10" || undefined;
  });
  const codes = await bash(
    sandbox,
    `for i in $(seq 30); do curl -sk -m 10 -o /dev/null -w '%{http_code} %{time_total}\\n' http://good.test:${port}/; done`,
  );
  const asked = codes.out.trim().split("\n");
  expect(asked.filter((line) => !line.startsWith("200 "))).toEqual([]);
  // The worker's own connection is not silenced either.
  await sandbox.egress?.allow(["good.test", "more.test"]);
  expect(asked.length).toBe(30);
  await sandboxes.host.remove(spec.sessionId);
}, 150_000);

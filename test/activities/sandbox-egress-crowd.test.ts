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

/** A program for a sandbox: in ten processes, `round` is called for two minutes. It knows `reach()`, a connection to its proxy or None. */
const crowdOf = (round: string) => `import os, select, socket, time
tries = 0
def reach():
    global tries
    tries += 1
    if tries == 50:
        open(f"/tmp/begun-{os.getpid()}", "w").close()
    peer = socket.socket()
    peer.settimeout(0.2)
    try:
        peer.connect(("127.0.0.1", 3128))
    except OSError:
        peer.close()
        return None
    return peer
${round}
for _ in range(10):
    if os.fork() == 0:
        end = time.monotonic() + 120
        held = []
        while time.monotonic() < end:
            round(held)
        os._exit(0)
time.sleep(120)`;

/** Holds 110 connections that say nothing. */
const IDLE = `def round(held):
    held += [reach() for _ in range(110 - len(held))]
    for peer in select.select([peer for peer in held if peer], [], [], 1)[0]:
        peer.close()
        held.remove(peer)
    held[:] = filter(None, held)`;
/** Opens 450 connections anew in each round. */
const REOPENING = `def round(held):
    for peer in filter(None, held):
        peer.close()
    held[:] = [reach() for _ in range(450)]`;
/** Asks with each connection, and does not wait for the answer. */
const ASKING = `def round(held):
    for peer in filter(None, held):
        peer.close()
    held[:] = [reach() for _ in range(450)]
    for peer in filter(None, held):
        try:
            peer.sendall(b"CONNECT good.test:443 HTTP/1.1\\r\\n\\r\\n")
        except OSError:
            pass`;

test.each([
  ["holds 1,100 idle connections", IDLE, 0],
  ["opens 4,500 connections again and again", REOPENING, 0],
  ["opens 4,500 connections again and again, on a busy machine", REOPENING, 4],
  ["asks on 4,500 connections again and again, on a busy machine", ASKING, 4],
])(
  "another's requests pass while one sandbox %s",
  async (_what, round, busy) => {
    const spec = sandboxes.spec({ network: "listed", pids: 512 });
    const crowd = await sandboxes.host.open(spec);
    await crowd.egress?.allow(["good.test"]);
    const program = `import os\nfor _ in range(${busy}):\n    if os.fork() == 0:\n        while True: pass\n${crowdOf(round)}`;
    await crowd.start({ id: "flood", argv: ["python3", "-c", program], timeoutMs: 120_000 });
    try {
      await eventually("the crowd", async () => {
        const { out } = await bash(crowd, "ls /tmp | grep -c begun-");
        return out.trim() === "10" || undefined;
      });
      const { out } = await bash(
        sandbox,
        `for i in $(seq 30); do curl -sk -m 20 -o /dev/null -w '%{http_code} %{time_total}\\n' http://good.test:${port}/; done`,
        100_000,
      );
      const asked = out.trim().split("\n");
      expect(asked.filter((line) => !line.startsWith("200 "))).toEqual([]);
      expect(asked.length).toBe(30);
      // The worker's own connection is not silenced either.
      await sandbox.egress?.allow(["good.test", "more.test"]);
    } finally {
      await sandboxes.host.remove(spec.sessionId);
    }
  },
  150_000,
);

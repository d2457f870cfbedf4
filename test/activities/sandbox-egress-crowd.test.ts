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

/** A program for a sandbox: in ten processes, `round` is called for two minutes. It knows `reach(address)`, a connection or None. */
const crowdOf = (round: string) => `import os, select, socket, time
tries = 0
def reach(address):
    global tries
    tries += 1
    if tries == 50:
        open(f"/tmp/begun-{os.getpid()}", "w").close()
    peer = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    peer.settimeout(0.2)
    try:
        peer.connect(address)
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

const OF_ALL = `"/run/longhaul/egress.sock"`;
const OWN = `("127.0.0.1", 3128)`;
/** Holds 110 connections that say nothing. */
const idle = (address: string) => `def round(held):
    held += [reach(${address}) for _ in range(110 - len(held))]
    for peer in select.select([peer for peer in held if peer], [], [], 1)[0]:
        peer.close()
        held.remove(peer)
    held[:] = filter(None, held)`;
/** Opens 450 connections anew in each round. */
const reopening = (address: string) => `def round(held):
    for peer in filter(None, held):
        peer.close()
    held[:] = [reach(${address}) for _ in range(450)]`;
/** Asks with each connection, and does not wait for the answer. */
const asking = (address: string) => `def round(held):
    for peer in filter(None, held):
        peer.close()
    held[:] = [reach(${address}) for _ in range(450)]
    for peer in filter(None, held):
        try:
            peer.sendall(b"CONNECT good.test:443 HTTP/1.1\\r\\n\\r\\n")
        except OSError:
            pass`;

test.each([
  ["holds 1,100 idle connections to the socket of all", idle(OF_ALL), 0],
  ["opens 4,500 connections to the socket of all again and again", reopening(OF_ALL), 0],
  ["opens 4,500 connections to its own proxy again and again", reopening(OWN), 0],
  ["asks on 4,500 connections again and again", asking(OWN), 0],
  ["asks on 4,500 connections again and again, on a busy machine", asking(OWN), 4],
  ["opens 4,500 connections to the socket of all, on a busy machine", reopening(OF_ALL), 4],
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

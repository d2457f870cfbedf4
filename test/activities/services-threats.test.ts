import { createServer, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { database, inspectService } from "../support/test-services.ts";
import { runServices, type RunningServices } from "../support/running-services.ts";

const sandboxes = useTestSandboxes();

/** Listens on all of this machine's addresses and counts connections. */
let visitors = 0;
const listener = createServer((socket) => {
  visitors += 1;
  socket.on("error", () => undefined);
  socket.end("hello");
});
beforeAll(() => new Promise<void>((resolve) => listener.listen(0, "0.0.0.0", resolve)));
afterAll(() => new Promise((resolve) => listener.close(resolve)));

/** Tries to connect to each; prints one line each. */
const PROBE = `
import errno, socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    peer = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    peer.settimeout(5)
    try:
        peer.connect((host, int(port)))
        print(target, "open")
    except OSError as error:
        print(target, errno.errorcode.get(error.errno, str(error)))`;

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
const probeOf = (targets: readonly string[]): string => `python3 -c ${quoted(PROBE)} ${targets.join(" ")}`;

/** Runs a shell line as the database's server, by what its SQL allows. */
async function inService({ sandbox }: Pick<RunningServices, "sandbox">, line: string): Promise<string> {
  const encoded = Buffer.from(`{ ${line}\n} 2>&1`).toString("base64");
  const sql = `create temp table said(line text); copy said from program 'echo ${encoded} | base64 -d | sh'; select line from said;`;
  const { out, err } = await bash(sandbox, `psql -h db -U postgres -qAt <<'SQL'\n${sql}\nSQL`, 60_000);
  return (out + err).trim();
}

const gateway = async (sandbox: Sandbox): Promise<string> => {
  const { NetworkSettings } = await sandboxes.docker.getContainer(sandbox.container).inspect();
  return NetworkSettings.Networks["bridge"]?.Gateway || "172.17.0.1";
};

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ family, internal }) => family === "IPv4" && !internal)
  .map(({ address }) => address);

describe("a service", () => {
  test.each(["bridge", "none", "listed"] as const)(
    "reaches nothing that its sandbox cannot, with network %s",
    async (network) => {
      const running = await runServices(sandboxes, { db: await database() }, { network });
      const neighbour = await sandboxes.host.open(sandboxes.spec({ network: "bridge" }));
      await neighbour.start({ id: "serve", argv: ["python3", "-m", "http.server", "8099"] });
      const { NetworkSettings } = await sandboxes.docker.getContainer(neighbour.container).inspect();
      const { port } = listener.address() as AddressInfo;
      const targets = [
        `${await gateway(running.sandbox)}:${port}`,
        ...own.map((address) => `${address}:${port}`),
        `${NetworkSettings.Networks["bridge"]?.IPAddress}:8099`,
        "169.254.169.254:80",
        "10.0.0.1:80",
        "192.168.1.1:443",
        "::ffff:169.254.169.254:80",
        ...(network === "bridge" ? [] : ["1.1.1.1:443"]),
      ];
      const before = visitors;
      const fromService = await inService(running, probeOf(targets));
      const fromSandbox = (await bash(running.sandbox, probeOf(targets), 60_000)).out.trim();
      expect(fromService).toBe(fromSandbox);
      const why = network === "bridge" ? "ECONNREFUSED" : "ENETUNREACH";
      for (const line of fromService.split("\n")) expect(line).toMatch(new RegExp(` ${why}$`));
      expect(fromService.split("\n")).toHaveLength(targets.length);
      expect(visitors).toBe(before);
      const interfaces = "ls /sys/class/net | tr '\\n' ' '";
      expect(await inService(running, interfaces)).toBe((await bash(running.sandbox, interfaces)).out.trim());
    },
    120_000,
  );

  test("sees neither files nor processes of the sandbox, and has no right beyond its profile", async () => {
    const running = await runServices(sandboxes, { db: await database({ env: { MINE: "yes" } }) });
    const { sandbox, spec } = running;
    await sandbox.files.write("secret.txt", Buffer.from("of the workspace"));
    await sandbox.start({ id: "visible", argv: ["sleep", "4321"] });
    expect(await inService(running, "ls -A /workspace | wc -l; test -e /run/longhaul || echo none")).toBe(
      "0\nnone",
    );
    // A process may end between the listing and the reading: what cat says of it is no answer.
    expect(
      await inService(
        running,
        "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 432[1]' || true",
      ),
    ).toBe("0");
    const status = await inService(
      running,
      "grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '",
    );
    // CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID; the server itself has become another user.
    expect(status.split("\n")).toEqual([
      "CapEff: 0000000000000000",
      "CapBnd: 00000000000000cb",
      "NoNewPrivs: 1",
      "Seccomp: 2",
    ]);
    const environment = await inService(running, "env | cut -d= -f1 | sort | tr '\\n' ' '");
    expect(environment).toContain("MINE");
    expect(environment).not.toMatch(/LONGHAUL|PROXY|HTTP/i);
    expect(await inService(running, "ls -d /var/run/docker.sock 2>/dev/null | wc -l")).toBe("0");
    const { Mounts: mounts, HostConfig: host } = await inspectService(sandboxes.docker, spec.sessionId, "db");
    expect(mounts.map(({ Type, Destination }) => `${Type} ${Destination}`)).toEqual([
      "volume /var/lib/test-db",
    ]);
    expect(host.Binds ?? []).toEqual([]);
  });

  test("that was made otherwise than its profile says is refused", async () => {
    const { spec, sandbox, home, again } = await runServices(sandboxes, { db: await database() });
    const right = await inspectService(sandboxes.docker, spec.sessionId, "db");
    const container = sandboxes.docker.getContainer(right.Id);
    await container.remove({ force: true, v: true });
    await sandboxes.docker.createContainer({
      name: right.Name.slice(1),
      Image: right.Config.Image,
      Env: ["MINE=no"],
      Labels: right.Config.Labels,
      HostConfig: { NetworkMode: right.HostConfig.NetworkMode, CapAdd: ["NET_ADMIN"] },
    });
    await expect(again()).rejects.toMatchObject({
      type: "SandboxRefused",
      message: expect.stringMatching(/added capabilities: \["NET_ADMIN"\] instead of/),
    });
    expect(home.container).toBe(sandbox.identity.container);
  });
});

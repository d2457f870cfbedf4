import { createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import Dockerode from "dockerode";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { sandboxName } from "../../activities/sandbox/docker/profile.ts";
import { Firewall, readHostAddresses } from "../../activities/sandbox/docker/firewall.ts";
import { type Sandbox } from "../../activities/sandbox/sandbox.ts";
import { DEFAULT_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { bash, createTestSandboxes, type TestSandboxes } from "../support/test-sandboxes.ts";

let sandboxes: TestSandboxes;
let sandbox: Sandbox;
/** Listens on all of this machine's addresses and counts connections. */
let listener: Server;
let port: number;
let visitors = 0;
let gateway: string;
let neighbour: string;

beforeAll(async () => {
  sandboxes = createTestSandboxes();
  listener = createServer((socket) => {
    visitors += 1;
    socket.on("error", () => undefined);
    socket.end("hello");
  });
  await new Promise<void>((resolve) => listener.listen(0, "0.0.0.0", resolve));
  port = (listener.address() as AddressInfo).port;
  const [opened, other] = await Promise.all([
    sandboxes.host.open(sandboxes.spec({ network: "bridge" })),
    sandboxes.host.open(sandboxes.spec({ network: "bridge" })),
  ]);
  sandbox = opened;
  const network = async ({ container }: Sandbox) =>
    (await sandboxes.docker.getContainer(container).inspect()).NetworkSettings.Networks["bridge"];
  gateway = (await network(sandbox))?.Gateway ?? "";
  neighbour = (await network(other))?.IPAddress ?? "";
  // The neighbour serves on another port.
  await other.start({ id: "serve", argv: ["python3", "-m", "http.server", "8099"] });
});
afterAll(async () => {
  await sandboxes.dispose();
  await new Promise((resolve) => listener.close(resolve));
});

/** Tries to connect from inside; one line each: the address, the outcome, whether it took under 2 s. */
async function tries(from: Sandbox, targets: readonly string[], options = ""): Promise<string[]> {
  const program = `
import errno, socket, sys, time
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    began = time.monotonic()
    peer = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    peer.settimeout(5)
    try:
        ${options || "pass"}
        peer.connect((host, int(port)))
        said = "open"
    except OSError as error:
        said = errno.errorcode.get(error.errno, str(error))
    print(target, said, "quick" if time.monotonic() - began < 2 else "slow")`;
  const id = `try${++tried}`;
  await from.run({ id, argv: ["python3", "-c", program, ...targets] }, { timeoutMs: 60_000 });
  return Buffer.from(await from.read(id, "out", 0, 100_000))
    .toString()
    .trim()
    .split("\n");
}
let tried = 0;

const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(
    (addresses) =>
      addresses
        ?.filter(({ family, internal }) => family === "IPv4" && !internal)
        .map(({ address }) => address) ?? [],
  );

test(
  "a sandbox on the bridge reaches no host, neighbour, private or metadata address",
  { tags: ["R52"] },
  async () => {
    expect(sandbox.network).toMatchObject({
      reach: "internet",
      refused: expect.arrayContaining(["169.254.169.254"]),
      reachable: [],
    });
    const targets = [
      `${gateway}:${port}`,
      ...ownAddresses().map((address) => `${address}:${port}`),
      `${neighbour}:8099`,
      "169.254.169.254:80",
      "10.0.0.1:80",
      "100.100.100.200:80",
      "192.168.1.1:443",
      "168.63.129.16:80",
      "161.26.0.10:443",
      `::ffff:${gateway}:${port}`,
      "::ffff:169.254.169.254:80",
    ];
    const said = await tries(sandbox, targets);
    expect(said).toEqual(targets.map((target) => `${target} ECONNREFUSED quick`));
    expect(visitors).toBe(0);
  },
);

test("no socket option reaches further: past the routes, by interface, or by a source route", async () => {
  const targets = [`${gateway}:${port}`, `${neighbour}:8099`];
  for (const option of [
    "peer.setsockopt(socket.SOL_SOCKET, 5, 1)", // SO_DONTROUTE
    "peer.setsockopt(socket.SOL_SOCKET, 25, b'eth0')", // SO_BINDTODEVICE
    "peer.setsockopt(socket.IPPROTO_IP, 50, socket.htonl(socket.if_nametoindex('eth0')).to_bytes(4, 'little'))", // IP_UNICAST_IF
    `peer.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([131, 7, 4]) + socket.inet_aton('${gateway}') + b'\\0')`,
  ]) {
    const said = await tries(sandbox, targets, option);
    expect(
      said.filter((line) => line.includes(" open ")),
      option,
    ).toEqual([]);
  }
  const broadcast = `import socket\nfor to in ('255.255.255.255', '224.0.0.251', '${gateway}'):\n    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    peer.setsockopt(1, 6, 1)\n    peer.bind((socket.gethostbyname(socket.gethostname()), 0))\n    try:\n        print(peer.sendto(b'x', (to, 5353)))\n    except OSError as error:\n        print(error.strerror)`;
  expect((await bash(sandbox, `python3 -c "${broadcast}"`)).out).toBe("Operation not permitted\n".repeat(3));
  const datagram = `import socket\nfor flag in (0, 4):\n    try:\n        print(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', flag, ('${gateway}', 53)))\n    except OSError as error:\n        print(error.errno)`;
  expect((await bash(sandbox, `python3 -c "${datagram}"`)).out).toBe("1\n1\n");
  expect(
    (await bash(sandbox, "unshare -rn true; ip link 2>&1; ping -c1 -W1 127.0.0.1 2>&1")).state,
  ).toMatchObject({
    kind: "exited",
  });
  expect(visitors).toBe(0);
});

test("a sandbox reaches what it may: itself, the name server, and allowed addresses", async () => {
  const allowed = await sandboxes.host.open(sandboxes.spec({ network: "bridge", allow: [`${gateway}/32`] }));
  expect(allowed.network).toMatchObject({ reach: "allowed", reachable: [gateway] });
  expect(await tries(allowed, [`${gateway}:${port}`, `${neighbour}:8099`])).toEqual([
    `${gateway}:${port} open quick`,
    `${neighbour}:8099 ECONNREFUSED quick`,
  ]);
  expect(visitors).toBe(1);
  const { out } = await bash(
    sandbox,
    `python3 -m http.server 8098 >/dev/null 2>&1 & server=$!
    own=$(hostname -I | cut -d' ' -f1)
    for at in 127.0.0.1 $own; do
      for again in 1 2 3 4 5 6 7 8 9 10; do (: </dev/tcp/$at/8098) 2>/dev/null && { echo yes; break; }; sleep 0.2; done
    done
    kill $server`,
  );
  expect(out).toBe("yes\nyes\n");
  // It is routed, with or without internet access: a datagram socket accepts the peer.
  const asked = await bash(
    sandbox,
    `python3 - <<'X'
import socket
servers = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
def way(address, port):
    try:
        socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM).connect((address, port))
        return "open"
    except OSError as error:
        return error.strerror
print({way(address, 53) for address in servers if ":" not in address} - {"open"}, way("1.1.1.1", 443))
X`,
  );
  expect(asked.out).toBe("set() open\n");
});

test("after a restart of its container a sandbox has its rules again before anything runs in it", async () => {
  const spec = sandboxes.spec({ network: "bridge" });
  const first = await sandboxes.host.open(spec);
  const container = sandboxes.docker.getContainer(first.container);
  await container.restart({ t: 0 });
  const again = await sandboxes.newHost().open(spec);
  expect(again.network).toMatchObject({ reach: "internet" });
  expect(await tries(again, [`${gateway}:${port}`])).toEqual([`${gateway}:${port} ECONNREFUSED quick`]);
  // The same holds for a worker that knew it before.
  await container.restart({ t: 0 });
  await sandboxes.host.open(spec).catch(() => undefined);
  expect((await sandboxes.host.open(spec)).network).toMatchObject({ reach: "internet" });
  expect(visitors).toBe(1);
});

test("a sandbox without a network reaches nothing outside in any way", { tags: ["R53"] }, async () => {
  const none = await sandboxes.host.open(sandboxes.spec({ network: "none" }));
  expect(none.network).toEqual({ reach: "none" });
  const targets = [
    `${gateway}:${port}`,
    "1.1.1.1:80",
    "169.254.169.254:80",
    "fe80::1:80",
    "2606:4700::1111:80",
  ];
  const said = await tries(none, targets);
  expect(said.filter((line) => !/ (ENETUNREACH|EINVAL|EADDRNOTAVAIL|EACCES) quick$/.test(line))).toEqual([]);
  const { out } = await bash(
    none,
    `ls /sys/class/net; grep -c . /proc/net/unix; timeout 2 getent hosts example.com || echo no name
    python3 -c "
import socket
peer = socket.socket(socket.AF_UNIX)
try: peer.connect('\\0docker')
except OSError as error: print(error.strerror)"`,
  );
  expect(out).toMatch(/^lo\n\d+\nno name\nConnection refused\n$/);
});

test("an allowed range opens no host or metadata service in it, and is reported as measured", async () => {
  const wide = await sandboxes.host.open(sandboxes.spec({ network: "bridge", allow: ["0.0.0.0/0", "::/0"] }));
  expect(wide.network.reach).toBe("allowed");
  expect(wide.network.reachable).toContain("10.0.0.1");
  expect(wide.network.refused).toEqual(expect.arrayContaining(["169.254.169.254"]));
  expect(await tries(wide, [`${gateway}:${port}`, "169.254.169.254:80"])).toEqual([
    `${gateway}:${port} ECONNREFUSED quick`,
    "169.254.169.254:80 ECONNREFUSED quick",
  ]);
});

test("a sandbox whose rules cannot be applied is refused with the choices, and does not run", async () => {
  const spec = sandboxes.spec({ network: "bridge" });
  await expect(sandboxes.lame().host.open(spec)).rejects.toMatchObject({
    type: "SandboxUnguarded",
    nonRetryable: true,
    message: expect.stringMatching(/no helper here.*sandbox\.network: none.*sandbox\.guard: best-effort/),
  });
  await expect(sandboxes.docker.getContainer(sandboxName(spec.sessionId)).inspect()).rejects.toMatchObject({
    statusCode: 404,
  });
  // Without a network no rules are needed.
  const none = await sandboxes.lame().host.open(sandboxes.spec({ network: "none" }));
  expect(none.network).toEqual({ reach: "none" });
});

test("with best effort it runs, and what can be reached is reported as measured", async () => {
  const { host, messages: said } = sandboxes.lame();
  const opened = await host.open(sandboxes.spec({ network: "bridge", guard: "best-effort" }));
  expect(opened.network).toMatchObject({
    reach: "everything",
    why: expect.stringMatching(/169\.254\.169\.254.* can be reached; no helper here/),
    reachable: expect.arrayContaining(["169.254.169.254"]),
  });
  expect(said.join("\n")).toContain("not isolated");
});

test("where no rules are in force, nothing is reported as refused", async () => {
  const spec = sandboxes.spec({ network: "none" });
  const { container } = await sandboxes.host.open(spec);
  const found = await sandboxes.docker.getContainer(container).inspect();
  expect(await new Firewall(sandboxes.docker, DEFAULT_IMAGE).refused(found, spec, 1_000)).toEqual([]);
});

test("the host's addresses are read where its engine runs, so a worker in a container knows them", async () => {
  const found = await readHostAddresses(sandboxes.docker, DEFAULT_IMAGE);
  expect(found).toEqual(expect.arrayContaining([gateway, ...ownAddresses()]));
});

test("the firewall is loaded from the operator's image, never from the session's", async () => {
  const seen: (string | undefined)[] = [];
  const docker = new Dockerode();
  const create = docker.createContainer.bind(docker) as Dockerode["createContainer"];
  docker.createContainer = ((options: Dockerode.ContainerCreateOptions) => {
    if (options.HostConfig?.CapAdd?.includes("NET_ADMIN") === true) seen.push(options.Image);
    return create(options);
  }) as Dockerode["createContainer"];
  const host = createDockerHost({ docker, name: "guards", guardImage: "longhaul-no-such-guard:0" });
  await expect(host.open(sandboxes.spec({ network: "bridge" }))).rejects.toMatchObject({
    type: "ImageMissing",
    message: expect.stringContaining("the image longhaul-no-such-guard:0 does not exist"),
  });
  expect(seen).toEqual(["longhaul-no-such-guard:0"]);
  await host.close();
});

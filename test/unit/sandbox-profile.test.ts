import type { ContainerInspectInfo } from "dockerode";
import { expect, test } from "vitest";
import { boxName, createOptions, differences } from "../../activities/sandbox/profile.ts";
import type { BoxSpec } from "../../activities/sandbox/sandbox.ts";

const spec: BoxSpec = {
  sessionId: "s1",
  image: "image:1",
  network: "bridge",
  memoryBytes: 2 ** 31,
  cpus: 1.5,
  pids: 256,
};

/** What the engine tells of a box that was made as asked; newer engines spell capabilities with CAP_. */
function asMade(host: object = {}, config: object = {}): ContainerInspectInfo {
  const options = createOptions(spec, new Date(0));
  const { Entrypoint, Cmd, User, Labels } = options;
  return {
    Config: { Entrypoint, Cmd: Cmd ?? null, User, Labels, ...config },
    Mounts: [{ Type: "volume", Name: "longhaul-s1", Destination: "/workspace" }],
    NetworkSettings: { Networks: { bridge: {} } },
    HostConfig: {
      ...options.HostConfig,
      CapAdd: ["CAP_SETUID", "CAP_SETGID"],
      Binds: null,
      VolumesFrom: null,
      Devices: [],
      DeviceRequests: null,
      PidMode: "",
      UTSMode: "",
      UsernsMode: "",
      PortBindings: {},
      MaskedPaths: ["/proc/kcore"],
      ...host,
    },
  } as unknown as ContainerInspectInfo;
}

test("a box that was made as asked does not differ, on engines old and new", () => {
  expect(differences(asMade(), spec)).toEqual([]);
  expect(differences(asMade({ CapAdd: ["SETGID", "SETUID"], MemorySwap: -1 }), spec)).toEqual([]);
});

test.each([
  ["host folders", { Binds: ["/:/host"] }],
  ["memory", { Memory: 0 }],
  ["memory with swap", { MemorySwap: 2 ** 32 }],
  ["cpus", { NanoCpus: 0 }],
  ["processes", { PidsLimit: null }],
  ["masked paths", { MaskedPaths: [] }],
  ["devices", { Devices: [{ PathOnHost: "/dev/kvm" }] }],
  ["process namespace", { PidMode: "host" }],
  ["dropped capabilities", { CapDrop: null }],
  ["security options", { SecurityOpt: [] }],
  ["published ports", { PortBindings: { "80/tcp": [{ HostPort: "80" }] } }],
  ["init", { Init: false }],
  ["network", { NetworkMode: "none" }],
])("[R52] a box that differs in %s is told by that word", (what, host) => {
  expect(differences(asMade(host), spec)).toEqual([expect.stringMatching(new RegExp(`^${what}: `))]);
});

test("a box that speaks another protocol, or is another session's, differs", () => {
  const labels = { "longhaul.session": "s2", "longhaul.protocol": "0" };
  expect(differences(asMade({}, { Labels: labels }), spec)).toEqual([
    'session: "s2" instead of "s1"',
    'protocol: "0" instead of "1"',
  ]);
});

test("names of boxes are fit for Docker, and two sessions never share one", () => {
  expect(boxName("fix-login.2_b")).toBe("longhaul-fix-login.2_b");
  const odd = ["a b", "a/b", "a-b", "ä", "x".repeat(300), `${"x".repeat(300)}y`].map(boxName);
  for (const name of odd) expect(name).toMatch(/^longhaul-[A-Za-z0-9_.-]{1,100}$/);
  expect(new Set(odd).size).toBe(odd.length);
});

test("nothing of the worker's environment is in the request", () => {
  process.env["CANARY_KEY"] = "sk-canary-2718";
  expect(JSON.stringify(createOptions(spec, new Date(0)))).not.toContain("sk-canary-2718");
});

import type { ContainerInspectInfo } from "dockerode";
import { expect, test } from "vitest";
import { sandboxName, createOptions, isMountedOtherwise } from "../../activities/sandbox/docker/profile.ts";
import { differences, isolationGaps } from "../../activities/sandbox/docker/profile-differences.ts";
import type { SandboxSpec } from "../../activities/sandbox/sandbox-host.ts";

const spec: SandboxSpec = {
  sessionId: "s1",
  image: "image:1",
  network: "bridge",
  memoryBytes: 2 ** 31,
  cpus: 1.5,
  pids: 256,
};

const around = { defaultRuntime: "runc", appArmor: true, imageEnvironment: ["LANG=C.UTF-8", "PATH=/bin"] };

/** The engine's description of a sandbox with the requested profile; newer engines write capabilities with CAP_. */
function asMade(host: object = {}, config: object = {}): ContainerInspectInfo {
  const options = createOptions(spec, new Date(0));
  const { Entrypoint, Cmd, User, Labels, Image, WorkingDir, Healthcheck, Env = [] } = options;
  return {
    State: { Running: true },
    AppArmorProfile: "docker-default",
    Config: {
      Entrypoint,
      Cmd: Cmd ?? null,
      User,
      Labels,
      Image,
      WorkingDir,
      Healthcheck,
      Env: [...Env, "PATH=/bin", "LANG=C.UTF-8"],
      ...config,
    },
    Mounts: [{ Type: "volume", Name: "longhaul-s1", Destination: "/workspace", RW: true }],
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
      ReadonlyPaths: ["/proc/sys"],
      Runtime: "runc",
      GroupAdd: null,
      DeviceCgroupRules: null,
      CgroupParent: "",
      PublishAllPorts: false,
      ...host,
    },
  } as unknown as ContainerInspectInfo;
}

test("a sandbox with the requested profile has no differences, on old and new engines", () => {
  expect(differences(asMade(), spec, around)).toEqual([]);
  expect(differences(asMade({ CapAdd: ["SETGID", "SETUID"], MemorySwap: -1 }), spec, around)).toEqual([]);
});

test("a read-only workspace is recognised by its mount", () => {
  const planning = { ...spec, readOnly: true as const };
  expect(createOptions(planning, new Date(0)).HostConfig?.Mounts?.[0]?.ReadOnly).toBe(true);
  expect(createOptions(spec, new Date(0)).HostConfig?.Mounts?.[0]?.ReadOnly).toBe(false);
  expect(isMountedOtherwise(asMade(), spec)).toBe(false);
  expect(isMountedOtherwise(asMade(), planning)).toBe(true);
  expect(differences(asMade(), planning, around)).toEqual(["workspace writable: true instead of false"]);
});

test("a workspace with a base is both layers, of which neither can be written to", () => {
  const onBase = { ...spec, base: "0123abcd" };
  const layers = { base: "/v/base/_data", changes: "/v/own/_data" };
  const mounts = createOptions(onBase, new Date(0), { layers }).HostConfig?.Mounts ?? [];
  const [workspace, changes, base] = mounts;
  expect(workspace).toMatchObject({ Target: "/workspace", ReadOnly: false });
  expect(workspace?.VolumeOptions?.DriverConfig?.Options).toEqual({
    type: "overlay",
    device: "overlay",
    o: "lowerdir=/v/base/_data,upperdir=/v/own/_data/up,workdir=/v/own/_data/work,redirect_dir=on",
  });
  for (const layer of [changes, base]) expect(layer?.ReadOnly).toBe(true);
  const Mounts = mounts.map(({ Source, Target, ReadOnly }) => ({
    Type: "volume",
    Name: Source,
    Destination: Target,
    RW: ReadOnly !== true,
  }));
  const found = { ...asMade(), Mounts } as unknown as ContainerInspectInfo;
  expect(differences(found, onBase, around)).toEqual([]);
  // Another base, none, or one that can be written to.
  for (const other of [{ ...spec, base: "4567cdef" }, spec])
    expect(differences(found, other, around).join()).toMatch(/volume|further mounts/);
  const writable = { ...found, Mounts: Mounts.map((mount) => ({ ...mount, RW: true })) };
  expect(differences(writable as unknown as ContainerInspectInfo, onBase, around).join()).toContain(
    "further mounts",
  );
});

test("a sandbox has its person's package caches, and no one else's", () => {
  const shared = { ...spec, cache: "0123456789abcdef" };
  const workspace = { Type: "volume", Name: "longhaul-s1", Destination: "/workspace", RW: true };
  const cache = {
    Type: "volume",
    Name: "longhaul.cache-0123456789abcdef",
    Destination: "/home/agent/.cache",
    RW: true,
  };
  const found = { ...asMade(), Mounts: [cache, workspace] } as unknown as ContainerInspectInfo;
  expect(differences(found, shared, around)).toEqual([]);
  for (const other of [spec, { ...spec, cache: "fedcba9876543210" }])
    expect(differences(found, other, around).join()).toContain("further mounts");
  expect(createOptions(shared, new Date(0)).HostConfig?.Mounts?.map(({ Source }) => Source)).toEqual([
    "longhaul-s1",
    "longhaul.cache-0123456789abcdef",
  ]);
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
  ["runtime", { Runtime: "runsc" }],
  ["groups", { GroupAdd: ["docker"] }],
  ["control group", { CgroupParent: "/" }],
  ["device rules", { DeviceCgroupRules: ["b *:* rwm"] }],
  ["shared memory", { ShmSize: 2 ** 34 }],
  ["kernel settings", { Sysctls: { "net.ipv4.ip_forward": "1" } }],
  ["runtime's annotations", { Annotations: { "run.oci.keep_original_groups": "1" } }],
  ["nameservers", { Dns: ["169.254.169.254"] }],
  ["all ports published", { PublishAllPorts: true }],
  ["read-only paths", { ReadonlyPaths: [] }],
  ["restart policy", { RestartPolicy: { Name: "always" } }],
])("a sandbox that differs in %s is reported by that word", { tags: ["R52"] }, (what, host) => {
  expect(differences(asMade(host), spec, around)).toEqual([expect.stringMatching(new RegExp(`^${what}: `))]);
});

test.each([
  ["image", { Image: "other:1" }],
  ["environment", { Env: ["LONGHAUL_SUPERVISOR=x", "LANG=C.UTF-8", "PATH=/bin", "LD_PRELOAD=/tmp/x.so"] }],
  ["environment", { Env: ["LONGHAUL_SUPERVISOR=x", "LANG=C.UTF-8", "PATH=/workspace"] }],
  ["health check", { Healthcheck: { Test: ["CMD", "true"] } }],
  ["working folder", { WorkingDir: "/" }],
  ["terminal", { Tty: true }],
])(
  "a sandbox whose own configuration differs in %s is reported by that word",
  { tags: ["R52"] },
  (what, config) => {
    expect(differences(asMade({}, config), spec, around)).toEqual([
      expect.stringMatching(new RegExp(`^${what}: `)),
    ]);
  },
);

test("a running sandbox is confined by AppArmor if its engine has it", () => {
  const found = { ...asMade(), AppArmorProfile: "unconfined" };
  expect(differences(found, spec, around)).toEqual(['AppArmor: "unconfined" instead of "docker-default"']);
  expect(differences({ ...asMade(), AppArmorProfile: "" }, spec, { ...around, appArmor: false })).toEqual([]);
});

test("the kernel's view of a sandbox's confinement is compared: filter, privileges, capabilities", () => {
  const good = { Seccomp: "2", NoNewPrivs: "1", CapBnd: "00000000000000c0" };
  expect(isolationGaps(good, undefined)).toEqual([]);
  expect(isolationGaps({ ...good, Seccomp: "0" }, undefined)).toEqual(["Seccomp is 0 instead of 2"]);
  expect(isolationGaps({ ...good, NoNewPrivs: "0" }, undefined)).toEqual(["NoNewPrivs is 0 instead of 1"]);
  expect(isolationGaps({ ...good, CapBnd: "00000000a80425fb" }, undefined)).toHaveLength(1);
  expect(isolationGaps({}, "runsc")).toEqual([
    "NoNewPrivs is unknown instead of 1",
    "CapBnd is unknown instead of c0",
  ]);
});

test("a sandbox with another protocol, or of another session, differs", () => {
  const labels = { "longhaul.session": "s2", "longhaul.protocol": "0" };
  expect(differences(asMade({}, { Labels: labels }), spec, around)).toEqual([
    'session: "s2" instead of "s1"',
    'protocol: "0" instead of "1"',
  ]);
});

test("names of sandboxes are valid for Docker, and unique by session", () => {
  expect(sandboxName("fix-login.2_b")).toBe("longhaul-fix-login.2_b");
  const odd = ["a b", "a/b", "a-b", "ä", "x".repeat(300), `${"x".repeat(300)}y`].map(sandboxName);
  for (const name of odd) expect(name).toMatch(/^longhaul-[A-Za-z0-9_.-]{1,100}$/);
  expect(new Set(odd).size).toBe(odd.length);
});

test("the request contains nothing of the worker's environment", () => {
  process.env["CANARY_KEY"] = "sk-canary-2718";
  expect(JSON.stringify(createOptions(spec, new Date(0)))).not.toContain("sk-canary-2718");
});

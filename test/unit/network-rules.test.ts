import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  parseHostAddresses,
  measuredReach,
  networkRules,
} from "../../activities/sandbox/docker/firewall-rules.ts";
import { containedIn, isPrefix, prefixText, toPrefix } from "../../activities/config/addresses.ts";

const rules = (changes: Partial<Parameters<typeof networkRules>[0]> = {}) =>
  networkRules({ host: ["172.17.0.1"], subnets: ["172.17.0.4/16"], allow: [], ...changes });

it("a registry's port is open at any address but a metadata service's and the sandbox's own", () => {
  const { ruleset, open } = rules({
    registries: [
      { address: "10.1.2.3", port: 8080 },
      { address: "2001:db8::5", port: 443 },
      { address: "169.254.169.254", port: 80 },
      { address: "127.0.0.1", port: 4873 },
    ],
  });
  expect(ruleset).toContain(
    "set registries4 { type ipv4_addr . inet_service; elements = { 10.1.2.3 . 8080 } }",
  );
  expect(ruleset).toContain(
    "set registries6 { type ipv6_addr . inet_service; elements = { 2001:db8::5 . 443 } }",
  );
  expect(open).toEqual([]);
});

/** The ruleset's verdict on an address, read from its sets in the order of its chain. */
function refuses(ruleset: string, address: string): boolean {
  const version = address.includes(":") ? 6 : 4;
  const set = (name: string): boolean => {
    const line = new RegExp(`set ${name}${version} \\{.*elements = \\{ ([^}]*) \\}`).exec(ruleset)?.[1];
    return containedIn((line?.split(", ") ?? []).map(toPrefix))(address);
  };
  if (set("named")) return false;
  if (set("protected")) return true;
  if (set("allowed")) return false;
  const isPublic6 = containedIn(["2000::/3", "64:ff9b::/96"].map(toPrefix));
  return set("special") || (version === 6 && !isPublic6(address));
}

describe("the rules of a sandbox's network", () => {
  it.each([
    ["private addresses", ["10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.1.1"]],
    [
      "metadata services",
      ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"],
    ],
    ["Azure's platform", ["168.63.129.16"]],
    ["the service networks of IBM's cloud", ["161.26.0.10", "166.8.0.1", "166.11.255.255"]],
    ["broadcasts and groups", ["255.255.255.255", "224.0.0.251", "ff02::1"]],
    ["IPv6's local ranges, old ones too", ["fe80::1", "fec0::1", "fc00::1", "fd12::1", "::1"]],
    ["IPv4 written in IPv6", ["::ffff:169.254.169.254", "::ffff:a01:203", "::a9fe:a9fe"]],
    ["IPv4 by NAT64", ["64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110", "64:ff9b::7f00:1", "64:ff9b:1::1"]],
    ["IPv4 by 6to4 and Teredo", ["2002:a9fe:a9fe::1", "2001:0:1::1", "192.88.99.1"]],
    ["documentation and tests", ["192.0.2.1", "2001:db8::1", "3fff::1", "198.18.0.1", "203.0.113.9"]],
  ])("refuse %s", (_, addresses) => {
    const { ruleset } = rules();
    for (const address of addresses) expect(refuses(ruleset, address), address).toBe(true);
  });

  it("accept public addresses", () => {
    const { ruleset } = rules();
    for (const address of [
      "1.1.1.1",
      "172.32.0.1",
      "100.128.0.1",
      "161.27.0.1",
      "168.63.129.17",
      "2606:4700::1111",
      "64:ff9b::101:101",
    ])
      expect(refuses(ruleset, address), address).toBe(false);
  });

  it("refuse the host's own addresses, also by NAT64, and the sandbox's, for any range", () => {
    const { ruleset, probe } = rules({
      host: ["127.0.0.1", "::1", "8.8.4.1", "2a01:4f8::2"],
      subnets: ["11.22.33.44/20"],
    });
    for (const address of ["8.8.4.1", "2a01:4f8::2", "64:ff9b::808:401", "11.22.32.7", "64:ff9b::b16:2007"])
      expect(refuses(ruleset, address), address).toBe(true);
    expect(refuses(ruleset, "8.8.4.2")).toBe(false);
    expect(probe).toEqual(expect.arrayContaining(["8.8.4.1", "2a01:4f8::2", "169.254.169.254"]));
    expect(probe).not.toContain("127.0.0.1");
  });

  it.each([
    ["0.0.0.0/0", "::/0"],
    ["169.254.0.0/16", "8.0.0.0/8"],
    ["168.63.128.0/20", "8.8.4.0/24"],
  ])("keep host and metadata services refused when %s and %s are allowed", (...allow) => {
    const { ruleset, open } = rules({ host: ["8.8.4.1"], allow });
    for (const address of [
      "169.254.169.254",
      "168.63.129.16",
      "8.8.4.1",
      "fd00:ec2::254",
      "64:ff9b::a9fe:a9fe",
    ]) {
      expect(refuses(ruleset, address), address).toBe(true);
      expect(open).not.toContain(address);
    }
  });

  it("accept allowed addresses, and of host and metadata services only exact names", () => {
    const wide = rules({ allow: ["10.0.0.0/8"] });
    expect(refuses(wide.ruleset, "10.1.2.3")).toBe(false);
    expect(wide.open).toEqual(["10.0.0.1"]);
    const exact = rules({ host: ["8.8.4.1"], allow: ["169.254.169.254", "8.8.4.1/32"] });
    expect(refuses(exact.ruleset, "169.254.169.254")).toBe(false);
    expect(refuses(exact.ruleset, "169.254.169.253")).toBe(true);
    expect(exact.open).toEqual(expect.arrayContaining(["169.254.169.254", "8.8.4.1"]));
  });

  it("probe an address of every refused range", () => {
    const { ruleset, probe } = rules();
    const special = /set special4 \{.*elements = \{ ([^}]*) \}/.exec(ruleset)?.[1]?.split(", ") ?? [];
    expect(special.length).toBeGreaterThan(10);
    for (const range of special.filter((prefix) => prefix !== "172.17.0.0/16"))
      expect(probe.some(containedIn([toPrefix(range)])), range).toBe(true);
    for (const address of probe) expect(refuses(ruleset, address), address).toBe(true);
  });

  it("fill in every placeholder of the template", () => {
    expect(rules().ruleset).not.toContain("{{");
  });
});

describe("the measured reach", () => {
  const { probe, open } = rules({ allow: ["10.0.0.0/8"] });

  it("is the internet alone only if nothing else was reached", () => {
    expect(measuredReach({ probe, open }, [], [])).toMatchObject({
      reach: "internet",
      tried: probe.length,
      refused: expect.arrayContaining(["169.254.169.254"]),
    });
    expect(measuredReach({ probe, open }, ["10.0.0.1"], [])).toMatchObject({
      reach: "allowed",
      reachable: ["10.0.0.1"],
    });
  });

  it("is everything if an address was reached, or the rules were not applied", () => {
    expect(measuredReach({ probe, open }, ["10.0.0.1", "169.254.169.254"], [])).toMatchObject({
      reach: "everything",
      why: "169.254.169.254 can be reached",
    });
    expect(measuredReach({ probe, open }, [], ["nft: no"])).toMatchObject({
      reach: "everything",
      why: "nft: no",
    });
  });
});

describe("prefixes", () => {
  it("are written with the host bits zero, as the kernel requires", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
          fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })),
        ),
        ([address, length]) => {
          const written = toPrefix(`${address}/${length}`);
          expect(containedIn([written])(address)).toBe(true);
          expect(prefixText(toPrefix(prefixText(written)))).toBe(prefixText(written));
        },
      ),
    );
  });

  it("are distinguished from other text", () => {
    for (const text of ["10.0.0.1", "10.0.0.0/8", "::/0", "fe80::1/10"])
      expect(isPrefix(text), text).toBe(true);
    for (const text of [
      "",
      "example.com",
      "10.0.0.1/33",
      "10.0.0.0/8/8",
      "10.0.0.1/",
      "0x7f.1",
      "fe80::1%eth0",
      "::/129",
      "1.2.3.4/-1",
    ])
      expect(isPrefix(text), text).toBe(false);
  });
});

it("the host's addresses are read from its kernel's list, without loopback", () => {
  const text = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 198.51.100.7
        /32 host LOCAL
     |-- 198.51.100.255
        /32 link BROADCAST
Local:
     |-- 198.51.100.7
        /32 host LOCAL
20010db8000000000000000000000007 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
`;
  expect(parseHostAddresses(text)).toEqual(["198.51.100.7", "2001:0db8:0000:0000:0000:0000:0000:0007"]);
});

import { BlockList, isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPrefix, networkRules } from "../../activities/sandbox/network-rules.ts";

const rules = (changes: Partial<Parameters<typeof networkRules>[0]> = {}) =>
  networkRules({ host: ["172.17.0.1"], subnets: ["172.17.0.4/16"], allow: [], ...changes });

const family = (address: string) => (isIP(address) === 4 ? "ipv4" : "ipv6");
function blocks(block: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const prefix of block) {
    const [network = "", length] = prefix.split("/");
    list.addSubnet(network, Number(length), family(network));
  }
  return list.check(address, family(address));
}

describe("networkRules", () => {
  it("blocks private, metadata, shared, test and multicast addresses, and lets public ones through", () => {
    const { block } = rules();
    for (const address of [
      "10.1.2.3",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "169.254.169.254",
      "100.100.100.200",
      "255.255.255.255",
      "224.0.0.251",
      "fd00:ec2::254",
      "fe80::1",
      "64:ff9b::a9fe:a9fe",
    ])
      expect(blocks(block, address), address).toBe(true);
    for (const address of ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"])
      expect(blocks(block, address), address).toBe(false);
  });

  it("blocks the host's own addresses and the box's network wherever they are, but not loopback", () => {
    const { block, probe } = rules({
      host: ["127.0.0.1", "::1", "8.8.4.1", "2a01:4f8::2"],
      subnets: ["11.22.33.44/20"],
    });
    expect(block).toEqual(expect.arrayContaining(["8.8.4.1/32", "2a01:4f8::2/128", "11.22.32.0/20"]));
    expect(block.some((prefix) => prefix.startsWith("127.") || prefix.startsWith("::1"))).toBe(false);
    expect(probe).toEqual(expect.arrayContaining(["8.8.4.1", "169.254.169.254"]));
  });

  it("asks for nothing that is allowed", () => {
    expect(rules({ allow: ["10.0.0.0/8"] }).probe).not.toContain("10.0.0.1");
    expect(rules({ allow: ["0.0.0.0/0", "::/0"] }).probe).toEqual([]);
    expect(rules({ allow: ["10.1.2.3/16"] }).allow).toEqual(["10.1.0.0/16"]);
  });

  it("writes every prefix with the host's bits zero, as the kernel wants it", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
          fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })),
        ),
        ([address, length]) => {
          const [written = ""] = rules({ allow: [`${address}/${length}`] }).allow;
          expect(blocks([written], address)).toBe(true);
          expect(rules({ allow: [written] }).allow).toEqual([written]);
        },
      ),
    );
  });

  it("knows what is no address", () => {
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

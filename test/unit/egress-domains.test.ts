import { expect, test } from "vitest";
import { closedAddress, domainProblem, expandDomains } from "../../activities/config/egress-domains.ts";

test.each([
  "good.example",
  "*.good.example",
  "Good.Test.",
  "xn--bcher-kva.example",
  "localhost",
  "10.1.2.3",
  "group:git",
])("%s can be allowed", (domain) => expect(domainProblem(domain)).toBeUndefined());

test.each([
  ["*", /everything/],
  ["*.com", /top-level domain/],
  ["*.com.", /top-level domain/],
  ["a.*.com", /at the front/],
  ["https://good.test", /only a host name/],
  ["good.test:443", /only a host name/],
  ["2001:db8::1", /only a host name/],
  ["bücher.example", /xn--/],
  ["", /host name/],
  ["127.1", /number/],
  ["0x7f000001", /number/],
  ["*.1.2.3.4", /number/],
  ["group:everything", /group:packages and group:git/],
])("%s is refused with the reason", (domain, reason) => expect(domainProblem(domain)).toMatch(reason));

test("groups are replaced by their names, and each name is listed once", () => {
  const all = expandDomains(["group:packages", "NodeJS.org.", "*.Example.com"]);
  expect(all).toContain("nodejs.org");
  expect(all.filter((name) => name === "nodejs.org")).toHaveLength(1);
  expect(all).toContain("*.example.com");
  expect(all.filter((name) => domainProblem(name) !== undefined)).toEqual([]);
});

test.each([
  ["10.1.2.3", [], false],
  ["10.1.2.3", ["10.1.0.0/16"], true],
  ["10.1.2.3", ["10.1.2.4"], false],
  ["169.254.169.254", [], false],
  ["8.8.8.8", [], true],
  ["intranet.example", [], true],
  ["group:git", [], true],
])("%s with sandbox.allow %j: can be reached if it is listed: %s", (domain, allow, isOpen) =>
  expect(closedAddress(domain, allow) === undefined).toBe(isOpen),
);

/** What a real server's refusals are called. */
import { expect, inject, it } from "vitest";
import { probePostgres, postgresMissing } from "../../temporal/postgres-probe.ts";

const server = new URL(inject("databaseServer"));
const at = (change: (url: URL) => void) => {
  const url = new URL(server);
  change(url);
  return url.href;
};
const told = (url: string) =>
  probePostgres(url).then(
    () => "nothing",
    (error: Error) => error.message,
  );

it("a wrong password is a refusal, not silence", async () => {
  const message = await told(at((url) => (url.password = "wrong")));
  expect(message).toMatch(
    /^Postgres refuses this user or password at postgres(?:ql)?:\/\/127\.0\.0\.1:\d+\//,
  );
  expect(message).not.toContain("wrong");
});

it("no password where one is wanted is a refusal", async () => {
  expect(await told(at((url) => (url.password = "")))).toMatch(/^Postgres refuses this user or password/);
});

it("a database that is not there is named as that", async () => {
  expect(await told(at((url) => (url.pathname = "/not-there")))).toMatch(
    /^Postgres has no such database at .*\/not-there/,
  );
});

it("a server without TLS is named as that", async () => {
  expect(await told(at((url) => (url.search = "sslmode=require")))).toMatch(/^Postgres does not speak TLS/);
});

it("a server that only happens to be at our port is not asked for a better password", () => {
  const error = Object.assign(new Error("password authentication failed"), { code: "28P01" });
  const { message } = postgresMissing(error, { address: "postgresql://x/y", fix: "f", isNamed: false });
  expect(message).toContain("It is not this checkout's own server: set DATABASE_URL");
});

it.each([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_HAS_EXPIRED",
  "ERR_TLS_CERT_ALTNAME_INVALID",
])("a certificate that is not trusted (%s) is told with the way to trust it", (code) => {
  const error = Object.assign(new Error("of the certificate"), { code });
  const { message } = postgresMissing(error, { address: "postgresql://x/y", fix: "f", isNamed: true });
  expect(message).toMatch(/does not trust at postgresql:\/\/x\/y .*sslrootcert=FILE/);
});

it("an address that is none is wrong usage, and nothing is asked", async () => {
  expect(await told("postgres://a,b/c")).toMatch(/^DATABASE_URL cannot be used: it names several hosts/);
});

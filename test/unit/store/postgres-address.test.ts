import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  addressForRole,
  toListenAddress,
  readPostgresAddress,
} from "../../../activities/store/postgres-address.ts";

const read = (url: string, environment: Record<string, string> = {}) => readPostgresAddress(url, environment);

describe("an address of Postgres", () => {
  it.each([
    ["postgres://u:p@h:5433/d", { user: "u", password: "p", host: "h", port: 5433, database: "d" }],
    ["postgresql://h", { host: "h" }],
    ["postgres://u:p#s?s@h/d", { user: "u", password: "p#s?s", host: "h", database: "d" }],
    ["postgres://u:p%40%2F%3A@h/d", { user: "u", password: "p@/:", host: "h", database: "d" }],
    ["postgres://u@[2001:db8::1]:5433/d", { user: "u", host: "2001:db8::1", port: 5433, database: "d" }],
    ["postgres://u@%2Frun%2Fpg/d", { user: "u", host: "/run/pg", database: "d" }],
    ["postgres:///d?host=/run/pg", { host: "/run/pg", database: "d" }],
    ["postgres://u@h/d?options=-c%20a%3Db", { user: "u", host: "h", database: "d", options: "-c a=b" }],
    ["postgres://h/d?port=1&dbname=e&user=v", { user: "v", host: "h", port: 1, database: "e" }],
  ])("%s is read as libpq reads it", (url, config) => {
    expect(read(url).config).toEqual(config);
  });

  it("keeps any user, password and database that is percent-encoded", () => {
    const text = fc.string({ minLength: 1, unit: "grapheme" });
    fc.assert(
      fc.property(text, text, text, (user, password, database) => {
        const code = encodeURIComponent;
        const url = `postgres://${code(user)}:${code(password)}@h/${code(database)}`;
        expect(read(url).config).toEqual({ user, password, host: "h", database });
      }),
    );
  });

  it.each([
    ["postgres://u:p@ss@h/d", /write @ as %40/],
    ["postgres://u:p/ss@h/d", /write @ as %40, \/ as %2F/],
    ["postgres://a:1,b:2/d", /several hosts/],
    ["postgres:///d?host=a,b", /several hosts/],
    ["postgres://u:50%@h/d", /write % as %25/],
    ["postgres://h:port/d", /no host and port|no port/],
    ["mysql://h/d", /no address of a Postgres server/],
    ["postgres://h/d?sslmode=prefer", /sslmode=prefer cannot be done.*no-verify/],
    ["postgres://h/d?sslmode=full", /no sslmode=full/],
    ["postgres://h/d?connect_timeout=soon", /connect_timeout is no whole number/],
    [
      "postgres://h/d?sslmode=verify-full&sslrootcert=none.pem",
      /sslrootcert=none\.pem cannot be read \(ENOENT\)/,
    ],
    ["postgres://h/d?target_session_attrs=standby", /Longhaul writes/],
    // Another database than the one that is meant, or without the protection that is asked for.
    ["postgres:///?service=prod", /service=prod names an entry of a file that is not read/],
    ["postgres://h/d?gssencmode=require", /gssencmode=require cannot be done.*sslmode=verify-full/],
  ])("%s is refused with the form that works, and without its password", (url, words) => {
    expect(() => read(url)).toThrow(words);
    expect(() => read(url)).not.toThrow(/p\/ss|p@ss|50%@/);
  });

  it("is read without the line end of the file that it was in", () => {
    expect(read("postgres://h/d\n").config.database).toBe("d");
  });

  it("shows no password", () => {
    expect(read("postgres://u:secret@h:1/d").shown).toBe("postgres://h:1/d");
    expect(read("postgres://u:secret@[::1]:1/d").shown).toBe("postgres://[::1]:1/d");
    expect(read("postgres:///d?host=/run/pg").shown).toBe("postgres:///d?host=/run/pg");
    const place = { PGHOST: "db.example", PGPORT: "6432", PGDATABASE: "app" };
    expect(read("postgres://", place).shown).toBe("postgres://db.example:6432/app");
  });
});

describe("the address for another role", () => {
  const code = encodeURIComponent;
  const text = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
  const raw = fc.stringMatching(/^[a-z#?%!$&'()*+,;=]{1,8}$/).filter((word) => !/[%,?]/.test(word));

  it("is the same place in every spelling, with the role's own credentials", () => {
    fc.assert(
      fc.property(
        fc.record({
          user: fc.option(raw, { nil: undefined }),
          password: fc.option(raw, { nil: undefined }),
          host: fc.constantFrom("h", "db.example.org", "127.0.0.1", "[2001:db8::1]", "%2Frun%2Fpg", ""),
          port: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
          database: fc.option(text, { nil: undefined }),
          query: fc.subarray([
            "sslmode=disable",
            "host=/var/run",
            "port=7",
            "dbname=e%20f",
            "user=operator",
            "password=secret",
            "application_name=a%26b",
          ]),
          role: text,
          own: text,
        }),
        fc.record({ PGHOST: fc.constantFrom("", "env.example.org", "/run/env") }),
        (given, { PGHOST }) => {
          const { user, password, host, port, database, query, role, own } = given;
          const credentials =
            user === undefined ? "" : `${user}${password === undefined ? "" : `:${password}`}@`;
          const url = [
            `postgres://${credentials}${host}${port === undefined ? "" : `:${port}`}`,
            database === undefined ? "" : `/${code(database)}`,
            query.length === 0 ? "" : `?${query.join("&")}`,
          ].join("");
          const [before, after] = [
            read(url, { PGHOST }).config,
            read(addressForRole(url, { role, password: own }, { PGHOST }), { PGHOST: "elsewhere" }).config,
          ];
          expect([after.user, after.password]).toEqual([role, own]);
          expect(after.host).toBe(before.host ?? (PGHOST || "localhost"));
          expect(after.port).toBe(before.port);
          expect(after.database).toBe(before.database ?? before.user);
          expect([after.ssl, after.fallback_application_name]).toEqual([
            before.ssl,
            before.fallback_application_name,
          ]);
        },
      ),
    );
  });

  it("keeps a socket, and refuses one in a form that has no place for a user", () => {
    const theirs = { role: "r", password: "p" };
    expect(addressForRole("postgres:///d?host=/run/pg", theirs, {})).toBe(
      "postgres://r:p@/d?host=%2Frun%2Fpg",
    );
    expect(() => addressForRole("/run/pg d", theirs, {})).toThrow(
      /write postgres:\/\/\/DATABASE\?host=FOLDER/,
    );
  });
});

describe("TLS to Postgres", () => {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, "CA");
  it.each([
    ["", undefined],
    ["sslmode=disable", false],
    ["ssl=true", {}],
    ["ssl=0", false],
    ["sslmode=no-verify", { rejectUnauthorized: false }],
    ["sslmode=require", {}],
    ["sslmode=verify-full", {}],
    ["sslmode=verify-full&sslrootcert=system", {}],
    [`sslmode=verify-full&sslrootcert=${ca}`, { ca: "CA" }],
  ])("%s", (query, ssl) => {
    expect(read(`postgres://h/d?${query}`).config.ssl).toEqual(ssl);
  });

  it("with a certificate authority of one's own compares no name for verify-ca", () => {
    const { ssl } = read(`postgres://h/d?sslmode=verify-ca&sslrootcert=${ca}`).config;
    expect(ssl).toEqual({ ca: "CA", checkServerIdentity: expect.any(Function) });
  });

  it("takes libpq's variables where the address says nothing", () => {
    expect(read("postgres://h/d", { PGSSLMODE: "verify-full", PGSSLROOTCERT: ca }).config.ssl).toEqual({
      ca: "CA",
    });
    expect(read("postgres://h/d?sslmode=disable", { PGSSLMODE: "require" }).config.ssl).toBe(false);
  });

  it.each([
    [{ PGSSLMODE: "prefer" }, /^PGSSLMODE=prefer cannot be done/],
    [{ PGSSLMODE: "Require" }, /^there is no PGSSLMODE=Require/],
    [{ PGSSLMODE: "require", PGSSLROOTCERT: "none.pem" }, /^PGSSLROOTCERT=none\.pem cannot be read/],
    [{ PGTARGETSESSIONATTRS: "standby" }, /^PGTARGETSESSIONATTRS must be/],
    [{ PGCONNECT_TIMEOUT: "soon" }, /^PGCONNECT_TIMEOUT is no whole number of seconds/],
  ])("names the variable if %o cannot be used", (environment, words) => {
    expect(() => read("postgres://h/d", environment)).toThrow(words);
  });

  it("says that channel binding cannot be required, and what it does not read", () => {
    const { config, notes } = read("postgres://h/d?channel_binding=require&schema=x");
    expect(config.enableChannelBinding).toBe(true);
    expect(notes).toEqual(["schema is not read", expect.stringContaining("not required")]);
    expect(read("postgres://h/d", { PGSERVICE: "x" }).notes).toEqual([
      expect.stringContaining("PGSERVICE is not read"),
    ]);
  });
});

it("waits for as long as connect_timeout says", () => {
  expect(read("postgres://h/d").connectTimeoutMs).toBeUndefined();
  expect(read("postgres://h/d?connect_timeout=30").connectTimeoutMs).toBe(30_000);
  expect(read("postgres://h/d?connect_timeout=1").connectTimeoutMs).toBe(2_000);
  expect(read("postgres://h/d?connect_timeout=0").connectTimeoutMs).toBeUndefined();
});

it("says where the server listens", () => {
  expect(toListenAddress(read("postgres://h:1/d"))).toEqual({ host: "h", port: 1 });
  expect(toListenAddress(read("postgres:///d?host=/run/pg&port=5"))).toEqual({ path: "/run/pg/.s.PGSQL.5" });
});

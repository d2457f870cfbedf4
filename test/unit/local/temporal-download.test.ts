import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hasModule } from "../../../client/setup/temporal-binary.ts";
import { downloadTemporal, TEMPORAL_RELEASE } from "../../../client/setup/temporal-download.ts";

const PROGRAM = "#!/bin/sh\necho temporal\n";
const home = mkdtempSync(join(tmpdir(), "temporal-download-"));
const folder = join(home, "download");
let server: Server;
let archive: Buffer;

beforeAll(async () => {
  const entries = pack();
  entries.entry({ name: "LICENSE" }, "free");
  entries.entry({ name: "temporal", mode: 0o755 }, PROGRAM);
  entries.finalize();
  archive = gzipSync(await buffer(entries));
  server = createServer((request, response) => {
    if (request.url !== "/temporal_cli_1.5.1_linux_amd64.tar.gz") response.writeHead(404).end();
    else response.end(archive);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(() => {
  server.close();
  rmSync(home, { recursive: true, force: true });
});

const fetched = (checksum: string, platform = "linux_amd64") =>
  downloadTemporal(
    {
      address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      version: "1.5.1",
      checksums: { linux_amd64: checksum, linux_arm64: checksum },
    },
    folder,
    AbortSignal.timeout(5_000),
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

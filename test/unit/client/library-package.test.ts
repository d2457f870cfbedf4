/** What a consumer gets: packed, installed, type-checked and run. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { productVersion } from "../../../client/console/product-version.ts";

const project = fileURLToPath(new URL("../../../", import.meta.url));

const USE = `
import { connect, ServiceMissing, type Event, type Longhaul } from "longhaul/client";

export const told = (event: Event): string => (event.type === "llm:response" ? event.data.content : event.type);

export async function follow(client: Longhaul, id: string): Promise<number | null> {
  for await (const event of client.events(id, { from: 3 })) console.log(event.seq, told(event));
  // @ts-expect-error there is no such field
  void (await client.status(id)).nothing;
  return (await client.status(id)).costUsd;
}

try {
  await connect({ databaseUrl: "postgres://nobody@127.0.0.1:1/none" });
} catch (error) {
  console.log(error instanceof ServiceMissing);
}
`;

test("a project that installs the tarball type-checks and runs", { timeout: 600_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), "longhaul-package-"));
  onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
  const run = (command: string, args: readonly string[], cwd = scratch) =>
    execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  run(process.execPath, [join(project, "scripts/build-library.ts")], project);
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", scratch], project);
  run("tar", ["-xzf", `longhaul-${productVersion()}.tgz`]);
  // Its dependencies as they are locked here: a registry is not asked.
  const { dependencies } = JSON.parse(readFileSync(join(scratch, "package/package.json"), "utf8")) as {
    readonly dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), "@types/node"]) {
    mkdirSync(dirname(join(scratch, "node_modules", name)), { recursive: true });
    symlinkSync(join(project, "node_modules", name), join(scratch, "node_modules", name));
  }
  run("mv", ["package", "node_modules/longhaul"]);
  writeFileSync(join(scratch, "package.json"), '{ "type": "module" }');
  writeFileSync(join(scratch, "use.ts"), USE);
  const compiler = join(project, "node_modules/typescript/bin/tsc");
  const options = [
    "--strict",
    "--skipLibCheck",
    "--types",
    "node",
    "--module",
    "nodenext",
    "--target",
    "es2024",
  ];
  run(process.execPath, [compiler, ...options, "use.ts"]);
  expect(run(process.execPath, ["use.js"])).toBe("true\n");
});

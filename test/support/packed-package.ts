/** A project that has installed the packed tarball, like a consumer's. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { productVersion } from "../../client/console/program.ts";

const project = fileURLToPath(new URL("../../", import.meta.url));
const STRICT = [
  "--strict",
  "--skipLibCheck",
  "--types",
  "node",
  "--module",
  "nodenext",
  "--target",
  "es2024",
];

export interface Consumer {
  readonly folder: string;
  /** @throws if it does not type-check, strictly; writes `file.js` next to `file.ts` */
  compile(file: string): void;
  /** @returns its output */
  run(command: string, args: readonly string[]): string;
  remove(): void;
}

export function installPacked(): Consumer {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-package-"));
  const run = (command: string, args: readonly string[], cwd = folder) =>
    execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  run(process.execPath, [join(project, "scripts/build-library.ts")], project);
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], project);
  run("tar", ["-xzf", `longhaul-${productVersion()}.tgz`]);
  // Its dependencies as locked here, without asking a registry.
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package/package.json"), "utf8")) as {
    readonly dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), "@types/node"]) {
    mkdirSync(dirname(join(folder, "node_modules", name)), { recursive: true });
    symlinkSync(join(project, "node_modules", name), join(folder, "node_modules", name));
  }
  run("mv", ["package", "node_modules/longhaul"]);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const compiler = join(project, "node_modules/typescript/bin/tsc");
  return {
    folder,
    compile: (file) => void run(process.execPath, [compiler, ...STRICT, file]),
    run,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

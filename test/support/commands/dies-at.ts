/**
 * A process that writes a person's files, and kills itself at the Nth call that changes something; a file that it writes then is left
 * half written. Its argument is JSON. Without `at` it lives, and prints how many such calls there were.
 */
import childProcess from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

export type Job = { readonly at?: number; readonly folder: string } & (
  | { readonly apply: { readonly patch: string; readonly branch: string; readonly message: string } }
  | { readonly pull: Readonly<Record<string, string>>; readonly ours?: boolean }
);

const { at, ...job }: Job = JSON.parse(process.argv[2] ?? "");
const { openSync, writeSync } = fs;
let calls = 0;

function die(name: string, [path, content]: readonly unknown[]): never {
  if (name.startsWith("writeFile")) {
    const bytes = Buffer.from(content as string);
    writeSync(openSync(path as string, "w"), bytes, 0, Math.floor(bytes.length / 2));
  }
  process.kill(process.pid, "SIGKILL");
  // Until the signal is there.
  for (;;);
}

function counted(owner: object, names: readonly string[]): void {
  for (const name of names) {
    const real: (...args: unknown[]) => unknown = Reflect.get(owner, name);
    Reflect.set(owner, name, (...args: unknown[]) => {
      calls += 1;
      if (calls === at) die(name, args);
      return real.apply(owner, args);
    });
  }
}

const CHANGING = ["writeFile", "rename", "rm", "rmdir", "mkdir", "symlink", "copyFile", "link"];
counted(
  fs,
  CHANGING.map((name) => `${name}Sync`),
);
counted(fs.promises, CHANGING);
counted(childProcess, ["execFile"]);
syncBuiltinESMExports();

if ("apply" in job) {
  const { applyOnBranch } = await import("../../../client/workspace/apply-on-branch.ts");
  await applyOnBranch(job.folder, job.apply);
} else {
  const { writeWorkspace } = await import("../../../client/workspace/write-workspace.ts");
  const files = Object.entries(job.pull).map(([path, text]) => ({
    kind: "file" as const,
    path,
    mode: 0o644,
    bytes: Buffer.from(text),
  }));
  await writeWorkspace(files, job.folder, { ours: job.ours === true });
}
console.log(calls);

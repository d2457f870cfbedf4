import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hintWriter } from "../../../client/console/program.ts";
import { ownCommand } from "../../../client/setup/own-command.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

function projectIn(name: string): string {
  const folder = emptyFolder();
  const project = join(folder, name);
  mkdirSync(join(project, "scripts"), { recursive: true });
  writeFileSync(join(project, "scripts", "longhaul.mjs"), "#!/usr/bin/env node\n");
  chmodSync(join(project, "scripts", "longhaul.mjs"), 0o755);
  return project;
}

it("a hint begins with the command that starts this project from the shell's folder", () => {
  const project = projectIn("it's mine");
  const bin = join(project, "..", "bin");
  const others = join(project, "..", "others");
  for (const folder of [bin, others]) mkdirSync(folder);
  writeFileSync(join(others, "longhaul"), "#!/bin/sh\n", { mode: 0o755 });
  const script = join(project, "scripts", "longhaul.mjs").replace("'", String.raw`'\''`);
  const path = `/usr/bin:${others}`;
  expect(ownCommand({ folder: "/", path, project })).toBe(`node '${script}'`);
  expect(ownCommand({ folder: join(project, "docs"), path, project })).toBe("npm run longhaul --");
  expect(ownCommand({ folder: `${project}-2`, path, project })).toBe(`node '${script}'`);
  symlinkSync(join(project, "scripts", "longhaul.mjs"), join(bin, "longhaul"));
  expect(ownCommand({ folder: "/", path: `${path}:${bin}`, project })).toBe("longhaul");
  // The shell that reads the hint lacks the variables that npx sets for its child.
  const ofNpx = join(project, "..", "_npx", "node_modules", ".bin");
  mkdirSync(ofNpx, { recursive: true });
  symlinkSync(join(project, "scripts", "longhaul.mjs"), join(ofNpx, "longhaul"));
  expect(ownCommand({ folder: project, path: `${ofNpx}:${path}`, project })).toBe("npm run longhaul --");
});

it("only our own commands are hints, coloured or not", () => {
  const write = hintWriter(["say", "undo-compaction", "undo"], "npm run longhaul --");
  expect(write('guide it: longhaul say a-b "…"\n`longhaul undo-compaction x`')).toBe(
    'guide it: npm run longhaul -- say a-b "…"\n`npm run longhaul -- undo-compaction x`',
  );
  expect(write("\u001b[2mlonghaul say x\u001b[22m")).toBe("\u001b[2mnpm run longhaul -- say x\u001b[22m");
  for (const prose of ["no longhaul says so", "bin/longhaul say", "npx-longhaul say", "longhaul undo-all"])
    expect(write(prose)).toBe(prose);
});

import { execFileSync } from "node:child_process";
import { chmodSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, it } from "vitest";
import { completedIds, completionScript } from "../../../client/commands/completion.ts";
import { quotedWord, shellWord } from "../../../client/console/format.ts";
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

it("a word of a hint is one word for a shell, whatever it is, and nothing in it is run", () => {
  const part = fc.constantFrom(
    "$(id)",
    "`id`",
    "'",
    '"',
    " ",
    ";id",
    "a",
    "\\",
    "*",
    "~",
    "!",
    "#",
    "\n",
    "ü",
    "&",
  );
  fc.assert(
    fc.property(
      fc.array(fc.array(part, { minLength: 1, maxLength: 6 }), { minLength: 20, maxLength: 40 }),
      (all) => {
        const words = all.map((parts) => parts.join(""));
        for (const quote of [quotedWord, shellWord]) {
          const command = `printf '%s\\0' ${words.map(quote).join(" ")}`;
          expect(execFileSync("sh", ["-c", command], { encoding: "utf8" })).toBe(
            words.map((word) => `${word}\0`).join(""),
          );
        }
      },
    ),
    { numRuns: 20 },
  );
  for (const plain of ["calm-otter-4k7x", "nightly-2026-11-26T02:00:00Z", "a.s2c0e3", "@last", "/srv/x"])
    expect(shellWord(plain)).toBe(plain);
});

it("each command in our messages quotes what it was given", () => {
  const client = fileURLToPath(new URL("../../../client/", import.meta.url));
  const bare = globSync("**/*.{ts,js}", { cwd: client }).flatMap((name) =>
    [
      ...readFileSync(join(client, name), "utf8").matchAll(/(?:longhaul|temporal) [a-z][^`\n]*?\$\{[^`\n]*/g),
    ].flatMap(([hint]) =>
      // An argument of the command: after its verbs, flags, and other arguments.
      [
        ...hint.matchAll(
          /(?:longhaul|temporal workflow) [a-z][a-z-]*((?: (?:[a-z-]+|--[a-z-]+|\$\{[^{}]*\}))*)/g,
        ),
      ].flatMap(([, words = ""]) =>
        [...words.matchAll(/\$\{([^{}]*)\}/g)].map(([, value = ""]) => `${name}: ${value}`),
      ),
    ),
  );
  // A verb of ours, and numbers.
  const ours = /: (what|action)$|step|length|portOf|\.port$/i;
  expect(bare.filter((place) => !/: (?:shellWord|quotedWord)\(/.test(place) && !ours.test(place))).toEqual(
    [],
  );
});

it("completing an id in bash offers ids and runs nothing of them", () => {
  const folder = emptyFolder();
  const ran = join(folder, "ran");
  const hostile = [
    `$(touch ${ran})`,
    `\`touch ${ran}\``,
    `a;touch ${ran}`,
    "$HOME",
    "*",
    "~",
    "a b",
    "{1,2}",
  ];
  writeFileSync(
    join(folder, "ids"),
    completedIds(["calm-otter-4k7x", ...hostile, "a.s2c0", "n-2026-11-26T02:00:00Z"]),
  );
  const say = { names: ["say"], about: "", flags: [], takesId: true, choices: [] };
  const script = `${completionScript("bash", [say], `cat ${shellWord(join(folder, "ids"))}; true`)}
COMP_WORDS=(longhaul say "") COMP_CWORD=2
_longhaul
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const offered = execFileSync("bash", ["-c", script], { encoding: "utf8", cwd: folder });
  expect(offered.trim().split("\n")).toEqual(["calm-otter-4k7x", "a.s2c0", "n-2026-11-26T02:00:00Z"]);
  expect(globSync("*", { cwd: folder })).toEqual(["ids"]);
});

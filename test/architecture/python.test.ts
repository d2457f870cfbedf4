/** The Python that runs inside containers: two packages, `agent` and `egress`. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import * as programs from "../../activities/sandbox/agent/sources.ts";
import { unpacked } from "../support/python-program.ts";
import { circlesOf, sources } from "./sources.ts";

const MAX_LINES = 400;
/** Of one variable: the kernel refuses more. Source: MAX_ARG_STRLEN of Linux. */
const MAX_VARIABLE_BYTES = 128 * 1024;

const FOLDER = "activities/sandbox/";
const files = sources(/^activities\/sandbox\/(agent|egress)\/.*\.py$/).map(({ path, text }) => ({
  path,
  text,
  name: path
    .slice(FOLDER.length)
    .replace(/(\/__init__)?\.py$/, "")
    .replaceAll("/", "."),
}));
const modules = new Map(files.map((file) => [file.name, file]));

interface PythonImport {
  readonly line: string;
  /** Whole: without dots before it. */
  readonly to: string;
  /** For a type checker only. */
  readonly isTypeOnly: boolean;
}

function importsIn({ name, path, text }: (typeof files)[number]): PythonImport[] {
  let isTypeOnly = false;
  return text.split("\n").flatMap((line) => {
    if (/^\S/.test(line)) isTypeOnly = line === "if TYPE_CHECKING:";
    const [, dots = "", from, plain] = /^\s*(?:from (\.*)([\w.]*) import|import ([\w., ]+))/.exec(line) ?? [];
    if (from === undefined && plain === undefined) return [];
    const parents = path.endsWith("/__init__.py") ? dots.length - 1 : dots.length;
    const above = dots === "" ? [] : name.split(".").slice(0, parents === 0 ? undefined : -parents);
    return (plain?.split(", ") ?? [from ?? ""]).map((to) => ({
      line: `${path}: ${line.trim()}`,
      to: [...above, to].join("."),
      isTypeOnly,
    }));
  });
}

const isOurs = (name: string): boolean => /^(agent|egress)(\.|$)/.test(name);

/** Modules of the standard library, with the Python that has them first. */
const standard = new Map(
  [...readTypeshed().matchAll(/^([\w.]+): (\d+)\.(\d+)-(.*)$/gm)]
    .filter(([, , , , until]) => until === "")
    .map(([, name = "", major, minor]) => [name, Number(major) * 100 + Number(minor)] as const),
);

function readTypeshed(): string {
  const pyright = new URL(import.meta.resolve("pyright"));
  return readFileSync(fileURLToPath(new URL("dist/typeshed-fallback/stdlib/VERSIONS", pyright)), "utf8");
}

test("the packages import the standard library of their oldest Python, and each other's modules", () => {
  const foreign = files.flatMap((file) =>
    importsIn(file)
      // The types' own package, which no Python has.
      .filter(({ to, isTypeOnly }) => !(isTypeOnly && to === "_typeshed"))
      .filter(({ to }) =>
        isOurs(to) ? !modules.has(to) : (standard.get(to.split(".")[0] ?? "") ?? 999) > 309,
      )
      .map(({ line }) => line),
  );
  expect(files.length).toBeGreaterThan(35);
  expect(foreign).toEqual([]);
});

test("the proxy needs nothing of the sandbox's programs, and they share one module of it", () => {
  const across = files.flatMap((file) =>
    importsIn(file).filter(({ to }) => isOurs(to) && to.split(".")[0] !== file.name.split(".")[0]),
  );
  expect(across.map(({ to }) => to)).toEqual(["egress.splice"]);
});

test("no module imports itself by way of others", () => {
  const graph = new Map(
    files.map((file) => [
      file.name,
      importsIn(file)
        .filter(({ isTypeOnly }) => !isTypeOnly)
        .map(({ to }) => to),
    ]),
  );
  expect(circlesOf(graph)).toEqual([]);
});

test("a module imports ours at its top and by name, so that a program has all that it needs", () => {
  const hidden = files.flatMap((file) =>
    importsIn(file)
      .filter(({ to, line, isTypeOnly }) => isOurs(to) && !isTypeOnly && !/: from /.test(line))
      .map(({ line }) => line),
  );
  const indented = files.flatMap(({ path, text }) =>
    [
      ...text
        .replace(/^if TYPE_CHECKING:\n( .*\n|\n)*/gm, "")
        .matchAll(/^ +from \S*(\.|agent|egress)\S* import/gm),
    ].map(([line]) => `${path}: ${line.trim()}`),
  );
  expect([...hidden, ...indented]).toEqual([]);
});

test("each program consists of what its modules import, and fits into one variable", () => {
  const all = [
    ...Object.values(programs).filter((value) => typeof value === "string" && value.startsWith("eJ")),
    programs.supervisorSource(),
    programs.workspaceSource(),
    programs.egressProxySource(),
    ...[true, false].map((hasEgress) => programs.ownSupervisorSource({ hasEgress })),
  ];
  expect(all.length).toBeGreaterThan(12);
  for (const program of all as string[]) {
    const [main, parts] = unpacked(program);
    const needed = Object.keys(parts).flatMap((name) =>
      importsIn(modules.get(name) as (typeof files)[number])
        .filter(({ to, isTypeOnly }) => isOurs(to) && !isTypeOnly)
        .map(({ to }) => to),
    );
    expect(Object.keys(parts)).toEqual(expect.arrayContaining([main, "agent.loader", ...needed]));
    expect(Buffer.byteLength(program), main).toBeLessThan(MAX_VARIABLE_BYTES / 2);
  }
  const used = new Set((all as string[]).flatMap((program) => Object.keys(unpacked(program)[1])));
  expect([...modules.keys()].filter((name) => !used.has(name))).toEqual([]);
});

test(`no Python file is longer than ${MAX_LINES} lines`, () => {
  const long = sources(/\.py$/).filter(({ text }) => text.split("\n").length - 1 > MAX_LINES);
  expect(long.map(({ path }) => path)).toEqual([]);
});

test("what a checker is told to pass over has a reason above it", () => {
  const bare = sources(/\.pyi?$/).flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, at, lines) => {
      const isMuted = /# (noqa|type: ignore|pyright:)/.test(line);
      return isMuted && !/^\s*# [A-Z]/.test(lines[at - 1] ?? "") ? [`${path}:${at + 1}`] : [];
    }),
  );
  expect(bare).toEqual([]);
});

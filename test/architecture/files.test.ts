import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { project, sources, textOf } from "./sources.ts";

const MAX_LINES = 400;

test(`no source is longer than ${MAX_LINES} lines`, () => {
  const long = sources(/\.(ts|mjs|js|css)$/)
    .map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }))
    .filter(({ path, lines }) => lines > MAX_LINES && !path.includes("fixtures/"));
  expect(long).toEqual([]);
});

test("no tracked file names a package registry's host or a path of someone's machine", () => {
  // Spelled apart, or this file would name them itself.
  const hosts = ["registry.npmjs", "registry.yarnpkg", "proxy.golang", "pypi", "crates", "deb.debian"].map(
    (name) => `${name.replace(".", "\\.")}\\.(org|com|io)`,
  );
  // The tools of a sandbox are at home in /home/agent.
  const homes = [
    "/home/(?!agent\\b)[a-z]",
    "/Users/[A-Z]",
    // A process's own root is no one's home.
    "(?<!/proc/1)/root/",
    "/work" + "/(main|shared)",
    "\\.\\./shared/",
  ];
  const traces = new RegExp([...hosts, ...homes].join("|"));
  const found = sources(/^(?!.*\.(png|jpg|gif|ico|wasm)$).*/)
    // The public hosts of a group that a person can allow, and where packages come from by default, are data.
    .filter(
      ({ path }) =>
        !/^(test\/architecture\/files\.test|activities\/config\/(egress-domains|public-registries))\.ts$/.test(
          path,
        ),
    )
    .flatMap(({ path, text }) => {
      const trace = traces.exec(text)?.[0];
      return trace === undefined ? [] : [`${path}: ${trace}`];
    });
  expect(found).toEqual([]);
});

test("the commands that people and machines start are executable", () => {
  for (const path of ["scripts/longhaul.mjs", ".ci/run"]) {
    expect(statSync(join(project, path)).mode & 0o111, path).not.toBe(0);
  }
});

test("GitHub's workflow runs what every build machine runs, on the Node of package.json", () => {
  const { jobs } = parse(textOf(".github/workflows/ci.yml")) as {
    readonly jobs: { readonly test: { readonly steps: readonly Readonly<Record<string, unknown>>[] } };
  };
  expect(jobs.test.steps).toEqual([
    { uses: expect.stringMatching(/^actions\/checkout@v\d+$/) },
    {
      uses: expect.stringMatching(/^actions\/setup-node@v\d+$/),
      with: { "node-version-file": "package.json" },
    },
    { run: ".ci/run" },
  ]);
});

test("no file's place is read from the text of a URL, where a blank is %20", () => {
  const found = sources(/^(activities|workflows|temporal|examples|client|worker|scripts|test)\/.*\.(ts|mjs)$/)
    .filter(({ text }) => /import\.meta\.url\)\s*\.pathname/.test(text))
    .map(({ path }) => path);
  expect(found, "Use fileURLToPath.").toEqual([]);
});

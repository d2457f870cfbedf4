/** How a program of several modules is loaded, on whatever Python this machine has. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { portsSource, pythonArguments } from "../../activities/sandbox/agent/sources.ts";
import { pythonProgram } from "../support/python-program.ts";

const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

function run(text: string, variables: Readonly<Record<string, string>> = {}) {
  const [python = "", ...args] = pythonArguments("LONGHAUL_TEST");
  const env = { PATH: process.env["PATH"], LONGHAUL_TEST: text, ...variables };
  const { status, stdout, stderr } = spawnSync(python, args, { encoding: "utf8", env });
  return { status, stdout, lastLine: stderr.trim().split("\n").at(-1) ?? "" };
}

/** The program with another text in place of one in its sources. */
const changed = (program: string, [from, to]: readonly [string, string]) => {
  expect(program).toContain(from);
  return program.replaceAll(from, to);
};

withPython("a program", () => {
  it("finds the modules that it consists of, and says of one that is missing which it is", () => {
    const shows = "from agent.reach import DISCARD_PORT\nprint(DISCARD_PORT, __name__)\n";
    const base = pythonProgram("", portsSource);
    const reach = "DISCARD_PORT = 9\n";
    const [, modules] = JSON.parse(base) as [string, Record<string, string>];
    const whole = JSON.stringify([
      "test_program",
      { ...modules, "agent.reach": reach, test_program: shows },
      [],
    ]);
    expect(run(whole)).toEqual({ status: 0, stdout: "9 __main__\n", lastLine: "" });
    expect(run(pythonProgram(shows, portsSource))).toEqual({
      status: 1,
      stdout: "",
      lastLine: "ModuleNotFoundError: No module named 'agent.reach'",
    });
  });

  it("is not begun by a Python that is too old, which is told in one line with both versions", () => {
    const { status, stdout, lastLine } = run(
      changed(pythonProgram("print(1)"), ["OLDEST = (3, 9)", "OLDEST = (9, 1)"]),
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(lastLine).toMatch(/^python3 is version 3\.\d+ here, and Longhaul needs 9\.1 or newer$/);
  });

  it("leaves neither itself nor variables of the image to what it starts", () => {
    const [main, modules] = JSON.parse(
      pythonProgram("import os\nprint(sorted(name for name in os.environ if 'LONGHAUL' in name))\n"),
    ) as [string, object];
    const text = JSON.stringify([main, modules, ["LONGHAUL_FOREIGN"]]);
    expect(run(text, { LONGHAUL_FOREIGN: "1" })).toEqual({ status: 0, stdout: "[]\n", lastLine: "" });
  });

  it("has its own modules, not those of the same names that its process has", () => {
    const source = `import sys, types
from agent.loader import run
sys.modules["agent"], sys.modules["agent.reach"] = types.ModuleType("agent"), types.ModuleType("agent.reach")
run("inner", {"agent": "", "agent.reach": "where = 'new'", "inner": "import agent.reach;print(agent.reach.where)"})
`;
    expect(run(pythonProgram(source))).toEqual({ status: 0, stdout: "new\n", lastLine: "" });
  });
});

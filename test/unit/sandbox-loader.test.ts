/** How a program of several modules is loaded, on whatever Python this machine has. */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { portsSource, pythonArguments } from "../../activities/sandbox/agent/sources.ts";
import { pythonProgram, unpacked } from "../support/python-program.ts";

const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

function run(text: string, variables: Readonly<Record<string, string>> = {}) {
  const [python = "", ...args] = pythonArguments("LONGHAUL_TEST");
  const env = { PATH: process.env["PATH"], LONGHAUL_TEST: text, ...variables };
  const { status, stdout, stderr } = spawnSync(python, args, { encoding: "utf8", env });
  return { status, stdout, lastLine: stderr.trim().split("\n").at(-1) ?? "" };
}

withPython("a program", () => {
  it("finds the modules that it consists of, and says of one that is missing which it is", () => {
    const shows = "from agent.reach import DISCARD_PORT\nprint(DISCARD_PORT, __name__)\n";
    const modules = { "agent.reach": "DISCARD_PORT = 9\n" };
    expect(run(pythonProgram(shows, { base: portsSource, modules }))).toEqual({
      status: 0,
      stdout: "9 __main__\n",
      lastLine: "",
    });
    expect(run(pythonProgram(shows, { base: portsSource }))).toEqual({
      status: 1,
      stdout: "",
      lastLine: "ModuleNotFoundError: No module named 'agent.reach'",
    });
  });

  it("is not begun by a Python that is too old, which is told in one line with both versions", () => {
    const loader = unpacked(portsSource)[1]["agent.loader"] ?? "";
    expect(loader).toContain("OLDEST = (3, 9)");
    const modules = { "agent.loader": loader.replace("OLDEST = (3, 9)", "OLDEST = (9, 1)") };
    const { status, stdout, lastLine } = run(pythonProgram("print(1)", { modules }));
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(lastLine).toMatch(/^python3 is version 3\.\d+ here, and Longhaul needs 9\.1 or newer$/);
  });

  it("leaves neither itself nor variables of the image to what it starts", () => {
    const source = "import os\nprint(sorted(name for name in os.environ if 'LONGHAUL' in name))\n";
    const text = pythonProgram(source, { foreign: ["LONGHAUL_FOREIGN"] });
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

/** Programs of a test, with the modules of one of ours. */
import { egressProxySource } from "../../activities/sandbox/agent/sources.ts";

type Program = [main: string, modules: Record<string, string>, foreign: string[]];

/** A program for `program` of own-command.ts that runs this source, which may import what the program `base` consists of. */
export function pythonProgram(source: string, base = egressProxySource): string {
  const [, modules] = JSON.parse(base) as Program;
  return JSON.stringify(["test_program", { ...modules, test_program: source }, []] satisfies Program);
}

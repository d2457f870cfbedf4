/** Programs of a test, with the modules of one of ours. */
import { inflateSync } from "node:zlib";
import { egressProxySource, packed } from "../../activities/sandbox/agent/sources.ts";

type Program = [main: string, modules: Record<string, string>, foreign: string[]];

/** What a program of sources.ts consists of. */
export const unpacked = (program: string): Program =>
  JSON.parse(inflateSync(Buffer.from(program, "base64")).toString()) as Program;

/** A program for `program` of own-command.ts that runs this source, which may import what the program `base` consists of. */
export function pythonProgram(
  source: string,
  {
    base = egressProxySource(),
    modules = {},
    foreign = [],
  }: Partial<{ base: string; modules: object; foreign: string[] }> = {},
): string {
  const [, ours] = unpacked(base);
  return packed(["test_program", { ...ours, ...modules, test_program: source }, foreign]);
}

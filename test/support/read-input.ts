import { readInput } from "../../activities/tools/reading/read-input.ts";
import { toolRegistry } from "../../activities/tools/index.ts";

/** What a call of one of our tools means, and whether its schema allows that. */
export function read(name: string, raw: unknown) {
  const tool = toolRegistry.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const { input, remarks, refusals } = readInput(tool, raw);
  return { input, remarks, refusals, fits: tool.input.safeParse(input).success };
}

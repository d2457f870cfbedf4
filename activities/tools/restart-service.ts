import { z } from "zod";
import { failure, typedTool, type ToolContext, type ToolResult } from "./tool.ts";
import { oneLine } from "./paths.ts";

const input = z.strictObject({
  name: z.string().describe("The name of one of the services."),
});

/** Offered in sessions with services. A repeated start does no harm, so a second attempt starts it once more. */
export const restartService = typedTool({
  name: "restart_service",
  description:
    "Starts a service of this sandbox again, with the data that it has, and waits until it works. Its connections are ended.",
  input,
  readOnly: false,
  changesFiles: false,
  about: (request) => oneLine(request.name, 60),
  run,
});

async function run({ name }: z.infer<typeof input>, context: ToolContext): Promise<ToolResult> {
  const { services } = context;
  if (services === undefined || !services.names.includes(name)) return failure(noSuchService(name, context));
  const { text, works } = await services.restart(name);
  return works ? { text } : failure(text);
}

/** Says that no service has this name, and which there are. */
export function noSuchService(name: string, { services }: Pick<ToolContext, "services">): string {
  const names = services?.names ?? [];
  const there = names.length === 0 ? "It has none." : `There are: ${names.join(", ")}.`;
  return `This sandbox has no service "${oneLine(name, 60)}". ${there}`;
}

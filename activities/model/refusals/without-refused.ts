import type { Endpoint } from "../endpoint.ts";
import { FileRefusals } from "./files.ts";
import { FieldRefusals } from "./fields.ts";
import type { Ask, Refusals } from "./memory.ts";
import { OutputRefusals } from "./output.ts";
import { SummaryRefusals } from "./summaries.ts";
import { ThoughtRefusals } from "./thoughts.ts";
import { ToolRefusals } from "./tools.ts";

/** @returns a function that asks a provider without what it refuses, which is remembered for this process */
export function createWithoutRefused(): (endpoint: Endpoint, ask: Ask) => Ask {
  // Nested: the first kind sees each refusal before the others.
  const kinds: readonly Refusals[] = [
    new ToolRefusals(),
    new FileRefusals(),
    new ThoughtRefusals(),
    new OutputRefusals(),
    new SummaryRefusals(),
    new FieldRefusals(),
  ];
  return (endpoint, ask) =>
    kinds.reduce<Ask>((next, kind) => (request) => kind.ask(request, endpoint, next), ask);
}

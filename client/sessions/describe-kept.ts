/** Describes what was kept of an interrupted step. Pure. */
import type { Kept } from "../../activities/store/stopped-step.ts";
import { oneLine } from "../console/format.ts";

const EXCERPT_CHARS = 120;

export function describeKept({ kept, step, text, tools }: Kept): string {
  switch (kept) {
    case "partial text":
      return `Kept: what the model had said in step ${step} ("${oneLine(text ?? "", EXCERPT_CHARS)}").`;
    case "tools in progress":
      return `Kept: the output so far of ${[...new Set(tools.map(({ name }) => name))].join(", ")} (step ${step}).`;
    case "nothing":
      return "Nothing was in progress.";
  }
}

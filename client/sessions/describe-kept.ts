/** Describes what was kept of an interrupted step. Pure. */
import type { Kept } from "../../activities/store/stopped-step.ts";
import { oneLine, present } from "../console/format.ts";

/** Tools that ask a person, and print nothing. */
const QUESTIONS = ["ask_user", "exit_plan"];
const EXCERPT_CHARS = 120;

export function describeKept({ kept, step, text, tools }: Kept): string {
  switch (kept) {
    case "partial text":
      return `Kept: what the model had said in step ${step} ("${oneLine(text ?? "", EXCERPT_CHARS)}").`;
    case "tools in progress": {
      const names = [...new Set(tools.map(({ name }) => name))];
      const others = names.filter((name) => !QUESTIONS.includes(name));
      return present(
        others.length > 0 && `Kept: the output so far of ${others.join(", ")} (step ${step}).`,
        others.length < names.length && `The question of step ${step} is withdrawn.`,
      ).join(" ");
    }
    case "nothing":
      return "Nothing was in progress.";
  }
}

/** Reports, once a session, what a provider refuses and the session now leaves out. */
import type { ModelAnswer, RefusedPart } from "../model/model.ts";
import type { NewEvent } from "../store/event.ts";
import { reportedParts, reportedTools, wasReported } from "../store/reported.ts";
import type { StepContext } from "./step-context.ts";

interface NewsContext {
  readonly deps: { readonly store: Pick<StepContext["deps"]["store"], "db"> };
  readonly session: Pick<StepContext["session"], "id">;
  readonly input: Pick<StepContext["input"], "step">;
}

export async function refusalNews(
  { deps, session }: StepContext,
  { summaryRefused, refusedTools = [] }: ModelAnswer,
) {
  const { db } = deps.store;
  const isNews = summaryRefused === true && !(await wasReported(db, session.id, "summaryRefused"));
  const known = refusedTools.length === 0 ? [] : await reportedTools(db, session.id);
  const tools = refusedTools.filter((name) => !known.includes(name));
  return {
    ...(isNews ? { summaryRefused } : {}),
    ...(tools.length === 0 ? {} : { refusedTools: tools }),
  };
}

/** A part that was refused just now, or to another session lately: on its way through a fork, or its answer was empty. */
export async function refusedParts(
  { deps, session, input }: NewsContext,
  { refusedParts: parts = [] }: Pick<ModelAnswer, "refusedParts">,
): Promise<NewEvent[]> {
  const known = parts.every(({ isNew }) => isNew) ? [] : await reportedParts(deps.store.db, session.id);
  return parts.flatMap((part) => {
    const message = textOf(part);
    if (!part.isNew && known.includes(message)) return [];
    return [
      {
        type: "llm:unsupported-input",
        step: input.step,
        data: { mediaType: part.mediaType, message },
      },
    ];
  });
}

const textOf = ({ mediaType, filename = "a file", why }: RefusedPart): string => {
  if (mediaType === "field") return `The model is asked without \`${filename}\`: ${why}`;
  return mediaType === "thoughts"
    ? `The model continues without its earlier thoughts: ${why}`
    : `The model is not shown ${filename} (${mediaType}), and has words in its place: ${why}`;
};

/** Whether the request had less than was estimated: its usage then says nothing about how the model counts tokens. */
export const wasAskedForLess = ({ refusedTools, refusedParts: parts }: ModelAnswer): boolean =>
  refusedTools !== undefined || parts?.some(({ mediaType }) => mediaType !== "field") === true;

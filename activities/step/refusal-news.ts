/** What a provider refuses and the session does without: reported to people once a session. */
import type { ModelAnswer } from "../model/model.ts";
import type { NewEvent } from "../store/event.ts";
import { reportedTools, wasReported } from "../store/reported.ts";
import type { StepContext } from "./step-context.ts";

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

/** Each once, since each is another file. */
export const refusedFiles = (step: number, { refusedFiles: files = [] }: ModelAnswer): NewEvent[] =>
  files
    .filter(({ isNew }) => isNew)
    .map(({ mediaType, filename = "a file", why }) => ({
      type: "llm:unsupported-input",
      step,
      data: {
        mediaType,
        message: `The model is not shown ${filename} (${mediaType}), and has words in its place: ${why}`,
      },
    }));

export const refusedThoughts = (step: number, { refusedThoughts: why }: ModelAnswer): NewEvent[] =>
  why === undefined
    ? []
    : [
        {
          type: "llm:unsupported-input",
          step,
          data: {
            mediaType: "thoughts",
            message: `The model continues without its earlier thoughts: ${why}`,
          },
        },
      ];

/** Whether it is for less than was estimated: such a bill says nothing of how a model counts. */
export const wasAskedForLess = ({ refusedTools, refusedFiles: files, refusedThoughts: why }: ModelAnswer): boolean =>
  [refusedTools, files, why].some((one) => one !== undefined);

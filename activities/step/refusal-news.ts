/** What a provider refuses and the session does without: reported to people once a session. */
import type { ModelAnswer } from "../model/model.ts";
import type { NewEvent } from "../store/event.ts";
import { reportedFiles, reportedTools, wasReported } from "../store/reported.ts";
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

/** A file that was refused just now, or to another session lately: on its way through a fork, or its answer was empty. */
export async function refusedFiles(
  { deps, session, input }: NewsContext,
  { refusedFiles: files = [] }: Pick<ModelAnswer, "refusedFiles">,
): Promise<NewEvent[]> {
  const known = files.every(({ isNew }) => isNew) ? [] : await reportedFiles(deps.store.db, session.id);
  return files.flatMap(({ mediaType, filename = "a file", why, isNew }) => {
    const message = `The model is not shown ${filename} (${mediaType}), and has words in its place: ${why}`;
    if (!isNew && known.includes(message)) return [];
    return [{ type: "llm:unsupported-input", step: input.step, data: { mediaType, message } }];
  });
}

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
export const wasAskedForLess = ({
  refusedTools,
  refusedFiles: files,
  refusedThoughts: why,
}: ModelAnswer): boolean => [refusedTools, files, why].some((one) => one !== undefined);

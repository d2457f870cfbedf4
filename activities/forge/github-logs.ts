/**
 * What GitHub keeps of a check: the log and the steps of a job of Actions, the annotations of any check, the report of another App.
 * Source: docs.github.com/rest/checks/runs, /rest/actions/workflow-jobs.
 */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import type { AnnotationFacts, CheckFacts, CheckLog } from "./facts.ts";
import { whyNot, type Did } from "./forge.ts";
import { toStep, type StepAnswer } from "./github-form.ts";
import { askLog } from "./log-text.ts";

const repository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;

/** @throws ForgeRefusal */
export async function githubLog(call: ForgeCall, { job }: CheckFacts): Promise<CheckLog | undefined> {
  if (job === undefined) return undefined;
  const run = (await askForge(call, "GET", `${repository(call)}/check-runs/${job}`)) as RunAnswer;
  const known = await actionsJob(call, run);
  const log =
    known === undefined ? undefined : await askLog(call, `${repository(call)}/actions/jobs/${known.id}/logs`);
  return {
    text: log?.text,
    leftOutBytes: log?.leftOutBytes ?? 0,
    steps: known?.steps?.map(toStep),
    annotations: await annotationsOf(call, run),
    summary: known === undefined ? summaryOf(run.output) : undefined,
  };
}

/** Its job, if it is one of Actions: by the address, and only if the job says that it is this check's. */
async function actionsJob(call: ForgeCall, run: RunAnswer): Promise<JobAnswer | undefined> {
  const [, id] = /\/job\/(\d+)(?:[/?#]|$)/.exec(run.details_url ?? run.html_url ?? "") ?? [];
  if (id === undefined || run.app?.slug !== "github-actions") return undefined;
  try {
    const job = (await askForge(call, "GET", `${repository(call)}/actions/jobs/${id}`)) as JobAnswer;
    return job.check_run_url.endsWith(`/check-runs/${run.id}`) ? job : undefined;
  } catch (error) {
    // It is deleted, or the token may not read Actions.
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

async function annotationsOf(
  call: ForgeCall,
  { id, output }: RunAnswer,
): Promise<readonly AnnotationFacts[]> {
  if (output.annotations_count === 0) return [];
  const path = `${repository(call)}/check-runs/${id}/annotations`;
  const rows = (await askPages(call, path)) as readonly AnnotationAnswer[];
  return rows.map(({ path: file, start_line: line, annotation_level: level, message }) => ({
    path: file,
    line,
    level: level === "failure" || level === "warning" ? level : "notice",
    text: message ?? "",
  }));
}

function summaryOf({ title, summary, text }: RunAnswer["output"]): string | undefined {
  const parts = [title, summary, text].filter((part) => typeof part === "string" && part !== "");
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

/** A job of Actions alone. @throws ForgeRefusal if it may pass */
export async function githubRerun(call: ForgeCall, { name, job }: CheckFacts): Promise<Did> {
  if (job === undefined)
    return { done: false, why: `"${name}" is reported by a program that GitHub cannot run.` };
  const run = (await askForge(call, "GET", `${repository(call)}/check-runs/${job}`)) as RunAnswer;
  const known = await actionsJob(call, run);
  if (known === undefined)
    return { done: false, why: `"${name}" is no job of GitHub Actions that can be found.` };
  try {
    await askForge(call, "POST", `${repository(call)}/actions/jobs/${known.id}/rerun`);
    return { done: true };
  } catch (error) {
    // The token may not, it runs, or it is older than a month.
    return whyNot(error);
  }
}

interface RunAnswer {
  readonly id: number;
  readonly html_url: string | null;
  readonly details_url: string | null;
  readonly app: { readonly slug?: string } | null;
  readonly output: {
    readonly title: string | null;
    readonly summary: string | null;
    readonly text: string | null;
    readonly annotations_count: number;
  };
}

interface JobAnswer {
  readonly id: number;
  readonly check_run_url: string;
  readonly steps?: readonly StepAnswer[];
}

interface AnnotationAnswer {
  readonly path: string;
  readonly start_line: number;
  readonly annotation_level: string | null;
  readonly message: string | null;
}

/**
 * Jobs of Gitea's and Forgejo's Actions: their logs, and running them again. A job is known by its number, which older servers tell only
 * with a hook; newer ones list jobs. Source: each server's own description.
 */
import { askForge, ForgeRefusal, type ForgeCall } from "./calls.ts";
import type { CheckFacts, CheckLog } from "./facts.ts";
import { whyNot, type Did } from "./forge.ts";
import { giteaCan } from "./gitea-description.ts";
import { toStep, type StepAnswer } from "./github-form.ts";
import { askLog } from "./log-text.ts";

const repository = ({ forge }: ForgeCall) => `/repos/${forge.project}`;
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;
/** The end of a job's address for people: what comes before it may be a former name. */
const ADDRESS = /\/actions\/runs\/\d+\/jobs\/\d+$/;

/** What a check's job is known by: its commit, if it is one of Actions. */
export const giteaJobKey = (url: string | undefined, commit: string): string | undefined =>
  addressOf(url) === undefined ? undefined : commit;

const addressOf = (url: string | undefined) => ADDRESS.exec(URL.parse(url ?? "")?.pathname ?? "")?.[0];

/** @throws ForgeRefusal if it may pass */
export async function giteaLog(call: ForgeCall, check: CheckFacts): Promise<CheckLog | undefined> {
  const known = await jobOf(call, check);
  if (known === undefined || !(await giteaCan(call, "GET /repos/{}/{}/actions/jobs/{}/logs")))
    return undefined;
  const log = await askLog(call, `${repository(call)}/actions/jobs/${known.id}/logs`);
  return log && { ...log, steps: known.steps?.map(toStep), annotations: [], summary: undefined };
}

/** @throws ForgeRefusal if it may pass */
export async function giteaRerun(call: ForgeCall, check: CheckFacts): Promise<Did> {
  const known = await jobOf(call, check);
  const can = await giteaCan(call, "POST /repos/{}/{}/actions/runs/{}/jobs/{}/rerun");
  if (!can || known?.run_id === undefined)
    return { done: false, why: `This server has no call that runs "${check.name}" again.` };
  try {
    await askForge(call, "POST", `${repository(call)}/actions/runs/${known.run_id}/jobs/${known.id}/rerun`);
    return { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

/** By its number, if somebody told it; else by the address that its check has, among the jobs of the commit. */
async function jobOf(call: ForgeCall, { job: key, url }: CheckFacts): Promise<JobAnswer | undefined> {
  if (key === undefined) return undefined;
  if (!COMMIT.test(key)) return { id: Number(key) };
  const address = addressOf(url);
  if (address === undefined || !(await giteaCan(call, "GET /repos/{}/{}/actions/runs/{}/jobs")))
    return undefined;
  try {
    const actions = `${repository(call)}/actions/runs`;
    const { workflow_runs: runs } = (await askForge(call, "GET", `${actions}?head_sha=${key}`)) as RunsAnswer;
    for (const { id } of runs ?? []) {
      const { jobs } = (await askForge(call, "GET", `${actions}/${id}/jobs`)) as JobsAnswer;
      const job = jobs?.find(({ html_url: at }) => addressOf(at) === address);
      if (job !== undefined) return job;
    }
    return undefined;
  } catch (error) {
    // The token may not read Actions.
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

interface RunsAnswer {
  readonly workflow_runs?: readonly { readonly id: number }[] | null;
}

interface JobsAnswer {
  readonly jobs?: readonly JobAnswer[] | null;
}

interface JobAnswer {
  readonly id: number;
  readonly run_id?: number;
  readonly html_url?: string;
  readonly steps?: readonly StepAnswer[] | null;
}

/** A runner of Gitea's Actions that runs nothing: a job ends, with the log and in the way that a test wants. The protocol is Connect. */
import type { GiteaServer } from "./server.ts";

const VERSION = "v0.2.11";
const LABELS = ["ubuntu-latest"];

interface GiteaTask {
  readonly id: string;
  readonly sha: string;
  readonly job: string;
}

export interface GiteaRunner {
  /** Takes the next job. @returns undefined if none waits */
  take(): Promise<GiteaTask | undefined>;
  /** Ends a job that was taken. */
  finish(task: GiteaTask, result: "SUCCESS" | "FAILURE", log: readonly string[]): Promise<void>;
}

export async function startRunner(gitea: GiteaServer): Promise<GiteaRunner> {
  let credentials: Readonly<Record<string, string>> = {};
  async function ask<T>(method: string, body: object): Promise<T> {
    const answer = await fetch(`${gitea.url}/api/actions/runner.v1.RunnerService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", "connect-protocol-version": "1", ...credentials },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }
  const registration = { name: "r1", token: await gitea.runnerToken(), version: VERSION, labels: LABELS };
  const { runner } = await ask<{ readonly runner: { readonly uuid: string; readonly token: string } }>(
    "Register",
    registration,
  );
  credentials = { "x-runner-uuid": runner.uuid, "x-runner-token": runner.token };
  await ask("Declare", { version: VERSION, labels: LABELS });
  return {
    async take() {
      const { task } = await ask<{
        readonly task?: { readonly id: string; readonly context: Readonly<Record<string, string>> };
      }>("FetchTask", { tasksVersion: "0" });
      if (task === undefined) return undefined;
      return { id: task.id, sha: task.context["sha"] ?? "", job: task.context["job"] ?? "" };
    },
    async finish({ id }, outcome, log) {
      const at = new Date().toISOString();
      const rows = log.map((content) => ({ time: at, content }));
      await ask("UpdateLog", { taskId: id, index: "0", rows, noMore: true });
      const result = `RESULT_${outcome}`;
      const times = { startedAt: at, stoppedAt: at };
      const step = { id: "0", result, ...times, logIndex: "0", logLength: String(rows.length) };
      await ask("UpdateTask", { state: { id, result, ...times, steps: [step] } });
    },
  };
}

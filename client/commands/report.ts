/** `longhaul report ID`: one self-contained HTML file. */
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { prefixOf } from "../../activities/context/request.ts";
import { budgetOf } from "../../activities/config/run-policy.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { wasReported } from "../../activities/store/reported.ts";
import { readWhole } from "../../activities/store/reading.ts";
import { traceOf } from "../../activities/store/traces.ts";
import { findSession } from "../../activities/store/sessions.ts";
import type { Services } from "../connect/connection.ts";
import { noSuchSession } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { productVersion } from "../console/product-version.ts";
import { callFacts, shownPictures } from "../report/report-sources.ts";
import { reportPage, type ReportData } from "../report/report-page.ts";
import { SESSION, requireSession, withSession } from "../sessions/with-session.ts";
import { costOfCall, isSaid, trajectoryDocument } from "../sessions/trajectory.ts";
import { diffWorkspaces } from "../workspace/workspace-diff.ts";

export function reportCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[file]", "output file, default ID.html in this folder; - is standard output");
  return (reference: string, file: string | undefined) =>
    withSession(reference, async (services, { id }) => {
      const page = reportPage(await gather(services, id));
      if (file === "-") return output.result(page);
      const path = resolve(file ?? `${id}.html`);
      await writeFile(path, page);
      output.result(`${path}\n`);
    });
}

/** The content of a session's report. @throws ClientError (impossible) if there is no such session */
export async function gather(services: Pick<Services, "store">, id: string): Promise<ReportData> {
  const { db } = services.store;
  const session = await requireSession(services, id);
  const whole = await readWhole(db, id);
  const known = await findSession(db, id);
  if (known === undefined) throw noSuchSession(id);
  const { config } = known;
  const prefix = prefixOf(known);
  const { triggerTokens } = budgetOf(config, prefix.tokens);
  const bills = whole.modelCalls.filter((call) => call.inputTokens !== null);
  const sum = (pick: (call: (typeof bills)[number]) => number | null) =>
    bills.reduce((total, call) => total + (pick(call) ?? 0), 0);
  const usage = {
    calls: whole.modelCalls.length,
    input: sum((call) => call.inputTokens),
    cached: sum((call) => call.cachedTokens),
    output: sum((call) => call.outputTokens),
  };
  const isEstimate = (call: (typeof bills)[number]) => call.inputTokens === null && call.status === "wasted";
  const estimatedUsd = whole.modelCalls
    .filter(isEstimate)
    .reduce((total, call) => total + (call.costUsd ?? 0), 0);
  const paid = bills.map((call) => costOfCall(call, config));
  const after = (await readWorkspace(db, id)) ?? [];
  const before = (await readWorkspace(db, id, { atStep: 0 })) ?? [];
  return {
    session,
    model: config.model,
    traceId: session.runId && (await traceOf(db, session, session.runId)).traceId,
    steps: trajectoryDocument(session, whole, productVersion()).steps.filter(isSaid),
    points: bills
      .filter((call) => call.purpose === "step" && call.status === "kept")
      .map((call) => ({ step: call.step, input: call.inputTokens ?? 0, cached: call.cachedTokens ?? 0 })),
    rounds: whole.compactionEvents,
    usage: {
      ...usage,
      costUsd: paid.some((cost) => cost === null)
        ? null
        : paid.reduce<number>((total, cost) => total + (cost ?? 0), estimatedUsd),
      estimatedUsd,
    },
    usageDoubtful: await wasReported(db, id, "usageDoubtful"),
    windowTokens: config.contextWindow,
    triggerTokens,
    calls: { facts: callFacts(whole.toolCalls), pictures: await shownPictures(db, whole.messages) },
    costs: bills
      .filter((call) => call.purpose === "step" && call.status === "kept")
      .map((call) => ({
        step: call.step,
        input: call.inputTokens ?? 0,
        cached: call.cachedTokens ?? 0,
        output: call.outputTokens ?? 0,
        costUsd: costOfCall(call, config),
      })),
    patch: diffWorkspaces(before, after, { binaries: "named" }).patch,
    madeAt: new Date(),
  };
}

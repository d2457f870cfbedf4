/** The calls of a step. */
import { CancellationScope } from "@temporalio/workflow";
import type { CallFacts, RunToolInput, ToolFacts } from "../activities/contract/activities.ts";
import { stuckVerdict } from "../activities/contract/stuck.ts";
import {
  enterPhase,
  interruptible,
  keepsInterrupt,
  openSandbox,
  optionsOf,
  showDetails,
  type Run,
} from "./actions.ts";
import { applyToolResult } from "./agent-state.ts";
import { delegate } from "./delegates.ts";
import { askedModel } from "./fallback.ts";
import { callGroups } from "./loop-policy.ts";
import { onHost } from "./lost-host.ts";
import { titled } from "./presentation.ts";
import { perform } from "./proxies.ts";
import { askAbout, askForServer, restWhileWaiting } from "./questions.ts";

/** All calls of a step, at once where they may; returns when each has its result. @returns true where the agent is stuck for good */
export async function runTools(run: Run, calls: readonly CallFacts[]): Promise<boolean> {
  const { state } = run;
  enterPhase(run, "running tools");
  if (!keepsInterrupt(run)) await run.opening;
  const { step } = state;
  const { fallback } = askedModel(state, run.policy);
  const asked = fallback === undefined ? {} : { fallback };
  await interruptible(run, async () => {
    const scope = CancellationScope.current();
    if (state.interrupting) scope.cancel();
    // The sandbox may take minutes: a person who interrupts does not wait for it.
    await Promise.race([run.opening, scope.cancelRequested]);
    await withRests(run, calls, async () => {
      let refused: { readonly call: CallFacts; readonly index: number } | undefined;
      for (const group of callGroups(calls)) {
        run.asking.busy = group.length;
        const results = await Promise.allSettled(
          group.map(async ([call, index]) => {
            try {
              const facts = await performCall(run, call, { step, index, ...asked });
              applyToolResult(state, call, facts);
              if (facts.asksForDomains === true) refused ??= { call, index };
            } finally {
              run.asking.busy -= 1;
            }
            showDetails(run);
          }),
        );
        const failure = results.find((result) => result.status === "rejected");
        if (failure) throw failure.reason;
      }
      if (refused !== undefined) await askForDomains(run, refused.call, { step, index: refused.index });
    });
  });
  state.interrupting = false;
  const verdict = stuckVerdict(state.recentCalls, state.loopWarned);
  if (verdict === "warn") {
    state.loopWarningDue = true;
    state.loopWarned = true;
    state.recentCalls = [];
  }
  return verdict === "stop";
}

/** All calls; beside those that may wait for a person, the run rests when nothing else is left of them. */
async function withRests<T>(run: Run, calls: readonly CallFacts[], perform: () => Promise<T>): Promise<T> {
  const mayAsk = run.policy?.asksForDomains === true || run.policy?.serversAsk === true;
  if (!mayAsk && !calls.some(asksPerson)) return perform();
  let isOver = false;
  const rests = restWhileWaiting(run, () => isOver);
  rests.catch(() => undefined);
  try {
    return await perform();
  } finally {
    isOver = true;
    // It ends as the calls do: what stopped them is theirs to say.
    await rests.catch(() => undefined);
  }
}

const asksPerson = ({ by, needsApproval }: CallFacts) => by === "person" || needsApproval === true;

/** All calls have their results: one question about what they were refused. The names hold from the next command on. */
async function askForDomains(run: Run, call: CallFacts, input: RunToolInput): Promise<void> {
  run.asking.busy += 1;
  try {
    await askAbout(run, call, { ...input, about: "egress" });
  } finally {
    run.asking.busy -= 1;
  }
}

/** One call, by whoever performs it. */
async function performCall(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  let asks = asksPerson(call);
  for (;;) {
    const settled = asks ? await askAbout(run, call, input) : undefined;
    if (settled) return settled;
    if (asks) await (run.opening ??= openSandbox(run));
    const facts = await runTool(run, call, input);
    const { serverAsks } = facts;
    if (serverAsks === undefined && facts.needsApproval !== true) return facts;
    if (serverAsks) {
      await askForServer(run, call, input, serverAsks);
      await (run.opening ??= openSandbox(run));
    }
    // What was allowed is not any more: the run was reset, or goes by other rules.
    asks = serverAsks === undefined;
  }
}

/** One call by its tool, or by a session of its own. */
function runTool(run: Run, call: CallFacts, input: RunToolInput): Promise<ToolFacts> {
  if (call.by === "delegate") return delegate(run, call, input);
  const summary = titled(`step ${input.step} · ${call.name}`, call);
  return onHost(
    run,
    () => openSandbox(run),
    () => perform("runTool", optionsOf(run), summary, input),
  );
}

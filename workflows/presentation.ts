/** What a person sees of a run in the Web UI. */
import type { SessionStatus } from "../activities/contract/activities.ts";
import type { RunPolicy } from "../activities/contract/run-policy.ts";
import { amountLike } from "../activities/contract/limits.ts";
import { tokens, usd } from "../activities/text/format.ts";
import { BREAKDOWN_PARTS, toBar, toBreakdown } from "../activities/contract/request-size.ts";
import { showHidden, inertMarkdown } from "../activities/text/clean.ts";
import { QUESTION_TITLES, wantsWords } from "../activities/contract/questions.ts";
import { cutChars } from "../activities/text/cut.ts";
import type { AgentState } from "./agent-state.ts";
import type { OpenQuestion, OpenWait } from "./asking.ts";
import { oldestQueued, waiting } from "./inbox.ts";
import type { SessionView } from "./messages.ts";

interface Viewed {
  readonly state: AgentState;
  readonly policy: RunPolicy | undefined;
  readonly status: SessionStatus;
  readonly wait?: OpenWait | undefined;
}

/** A title with what the call is about, if the history may contain that. */
export function titled(title: string, { about }: { readonly about: string }): string {
  return about === "" ? title : `${title}: ${showHidden(about)}`;
}

const BAR_CELLS = 40;

/** Current details: served by a query, so they cost no events. */
export function currentDetails(
  state: AgentState,
  policy: RunPolicy | undefined,
  questions: readonly OpenQuestion[] = [],
  { runId = "", wait }: { readonly runId?: string; readonly wait?: OpenWait | undefined } = {},
): string {
  if (!policy) return "Opening the session …";
  const lines = [
    ...questions.flatMap(questionLines),
    ...waitLines(wait),
    `**Step ${state.step}** of at most ${state.step - state.steps + policy.maxSteps + state.moreSteps} · ${state.phase} · ${code(policy.model)}`,
    "",
    ...contextLines(state, policy),
    "",
    `Tokens in ${tokens(state.usage.input)} (cached ${tokens(state.usage.cached)}), out ${tokens(state.usage.output)}, calls ${state.usage.calls}${costText(state, policy)} · queue ${waiting(state.inbox)} · sandbox ${state.sandbox ? code(placeOf(state.sandbox)) : "not open"}`,
  ];
  if (state.deadlineAtMs !== undefined)
    lines.push(
      "",
      `Deadline ${new Date(state.deadlineAtMs).toISOString()}: it ends in order a while before.`,
    );
  if (limitEnd(state) !== undefined)
    lines.push(
      "",
      `**The model's limit is used up.** It goes on at ${limitEnd(state)}, or at once after a message or an interrupt.`,
    );
  if (state.epoch > 1)
    lines.push("", `Epoch ${state.epoch}: this run was reset; later rows of the old run are kept, marked.`);
  if (policy.git)
    lines.push(
      "",
      `Branch ${code(policy.git.branch)}${state.delivery.last ? ` · ${linked(state.delivery.last)}` : ""}`,
    );
  if (policy.trace?.run === runId) lines.push("", `Trace ${code(policy.trace.id)}`);
  if (state.remark) lines.push("", `> ${plain(state.remark)}`);
  if (state.lastCalls.length > 0) {
    lines.push("", "| step | tool | about | outcome | s |", "| --- | --- | --- | --- | --- |");
    for (const { step, call, facts } of state.lastCalls.toReversed()) {
      lines.push(
        `| ${step} | ${plain(call.name)} | ${code(call.about)} | ${facts?.outcome ?? "…"} | ${facts ? (facts.ms / 1000).toFixed(1) : ""} |`,
      );
    }
  }
  for (const { text } of oldestQueued(state.inbox, 3))
    if (text !== "") lines.push("", `Waiting: ${plain(cutChars(text, 200))}`);
  return lines.join("\n");
}

/** Until when it waits for what, and how a person ends that. */
function waitLines(wait: OpenWait | undefined): string[] {
  if (wait === undefined) return [];
  const until = wait.untilMs === undefined ? "" : ` until ${new Date(wait.untilMs).toISOString()}`;
  const about = wait.about === "" ? "" : ` (${plain(wait.about)})`;
  const target = wait.waitsFor === "process" ? " for a command in the background" : "";
  return [`**Waits${until}${target}**${about}. A message ends the wait; so does the update \`wake\`.`, ""];
}

/** What is asked, and the exact signal to send. */
function questionLines(question: OpenQuestion): string[] {
  const { kind, text, options } = question;
  const [first = "", ...others] = answersTo(question).map((answer) => code(JSON.stringify(answer)));
  return [
    `**${QUESTION_TITLES[kind]}:** ${plain(text)}`,
    "",
    ...(options ?? []).map((label, index) => `${index + 1}. ${plain(label)}`),
    ...(options ? [""] : []),
    `To answer, send the signal \`answer\` with ${[first, ...others].join(" or ")}`,
    "",
  ];
}

/** An example of each kind of answer, in the form that the signal takes. */
function answersTo({ id: question, kind, options, answerers }: OpenQuestion): object[] {
  const by = answerers === undefined ? {} : { by: answerers[0] };
  if (kind === "budget")
    return [
      { question, option: 1, ...by },
      { question, text: amountLike(options ?? []), ...by },
    ];
  if (wantsWords(kind)) return [options ? { question, option: 1 } : { question, text: "…" }];
  return [
    { question, action: "allow" },
    { question, action: "deny" },
  ];
}

export function sessionView(
  { state, policy, status, wait }: Viewed,
  questions: readonly OpenQuestion[],
): SessionView {
  return {
    status,
    phase: state.phase,
    step: state.step,
    maxSteps: policy ? policy.maxSteps + state.moreSteps : 0,
    epoch: state.epoch,
    model: policy?.model ?? "",
    queue: oldestQueued(state.inbox, 20).map(({ id, text, queuedAt }) => ({ id, text, queuedAt })),
    questions: questions.map(({ id, kind, text, askedAtMs }) => ({
      id,
      kind,
      asked: new Date(askedAtMs).toISOString(),
      text,
    })),
    interrupting: state.interrupting || undefined,
    context: {
      used: Math.round(state.context.used),
      limit: policy?.budget.contextWindow ?? 0,
      estimated: state.context.estimated,
    },
    compactionRounds: state.compaction.round,
    usage: state.usage,
    ...waitShown(state, wait),
    deadline: state.deadlineAtMs === undefined ? undefined : new Date(state.deadlineAtMs).toISOString(),
  };
}

/** ISO time; undefined unless the run waits for it now. */
function limitEnd({ limits, phase }: AgentState): string | undefined {
  return limits === undefined || phase !== "waiting" ? undefined : new Date(limits.untilMs).toISOString();
}

function waitShown(state: AgentState, wait: OpenWait | undefined): Pick<SessionView, "waitsUntil"> {
  const waitsUntil = limitEnd(state) ?? (wait?.untilMs && new Date(wait.untilMs).toISOString());
  return waitsUntil ? { waitsUntil } : {};
}

/** The cost in USD; without a limit only the cost of this run's steps is known here. */
function costText({ costUsd }: AgentState, { maxCostUsd }: RunPolicy): string {
  if (costUsd <= 0) return "";
  const cost = plain(usd(costUsd));
  return maxCostUsd === undefined
    ? ` · cost of this run ${cost}`
    : ` · cost ${cost} of at most ${plain(usd(maxCostUsd))}`;
}

/** The same figures as the client's `context` command: what the window contains. */
function contextLines({ context, compaction }: AgentState, { budget, prefix }: RunPolicy): string[] {
  const { system = 0, tools = 0 } = prefix ?? {};
  const used = Math.round(context.used);
  const { parts } = toBreakdown({ ...budget, used, system, tools });
  const signs = new Map(BREAKDOWN_PARTS.map(([name, , sign]) => [name, sign]));
  const bar = toBar(parts, BAR_CELLS).map(([name, cells]) => (signs.get(name) ?? "").repeat(cells));
  const amounts = BREAKDOWN_PARTS.map(([name, title, sign]) => `${sign} ${title} ${tokens(parts[name])}`);
  const estimated = context.estimated ? " (estimated)" : "";
  return [
    `Context ${code(bar.join(""))} ${tokens(used)} of ${tokens(budget.contextWindow)} tokens, ${Math.round((100 * used) / budget.contextWindow)} %${estimated} · compaction from ${tokens(budget.triggerTokens)} · rounds ${compaction.round}`,
    "",
    amounts.join(" · "),
  ];
}

function placeOf({ container, taskQueue }: NonNullable<AgentState["sandbox"]>): string {
  return taskQueue === undefined ? container : `${container} on ${taskQueue}`;
}

/** A code span shows no links or images; characters that would end the span or the table's cell are replaced. */
function code(text: string): string {
  return `\`${showHidden(text).replaceAll(/[`|\n\r]/g, " ")}\``;
}

/** What was delivered, as plain text; only an address at its end becomes a link. */
function linked(text: string): string {
  const address = /https?:\/\/[\w./:@%?=~-]+$/.exec(text)?.[0];
  return address === undefined ? plain(text) : `${plain(text.slice(0, -address.length))}<${address}>`;
}

/** Foreign text, on one line. */
const plain = (text: string): string => inertMarkdown(text.replaceAll(/[\n\r]+/g, " "));

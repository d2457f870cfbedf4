import { describe, expect, it } from "vitest";
import { listText } from "../../../client/commands/list.ts";
import { statusText } from "../../../client/commands/status.ts";
import { usageText } from "../../../activities/text/format.ts";
import { describeKept } from "../../../client/sessions/stop-session.ts";
import type { SessionStatusDocument } from "../../../client/sessions/status-document.ts";

const DOCUMENT: SessionStatusDocument = {
  id: "s",
  workflowId: "s",
  runId: "run",
  traceId: null,
  status: "active",
  task: "Do it.",
  owner: null,
  priority: null,
  tenant: null,
  step: 3,
  maxSteps: 50,
  epoch: 1,
  model: "openai/gpt-4o",
  queue: [],
  questions: [],
  context: { used: 1_000, limit: 128_000, estimated: false },
  compactionRounds: 0,
  usage: { input: 1, cached: 0, output: 1, reasoning: 0, calls: 1 },
  costUsd: null,
  costEstimatedUsd: 0,
  usageDoubtful: false,
  result: null,
  output: null,
  limits: { costUsd: null, maxCostUsd: null, deadline: null },
  limit: null,
  error: null,
  createdAt: "2026-11-22T10:00:00.000Z",
  endedAt: null,
  live: false,
  build: null,
  waitsFor: null,
  waitReason: null,
  trouble: null,
  waitsUntil: null,
  workflowStatus: "RUNNING",
  lastSeq: 9,
  image: { name: "longhaul-sandbox:5", digest: null },
  git: null,
  follow: null,
  delivery: "none",
  verified: null,
  parked: null,
  unparked: null,
  notSaved: [],
  missing: [],
  parent: null,
  children: [],
};
const shown = (changes: Partial<SessionStatusDocument>) =>
  statusText({ ...DOCUMENT, ...changes }, undefined, (_look, text) => text, new Date("2026-11-22T10:01:00Z"));

it("a run that Temporal has forgotten is not reported as never started", () => {
  expect(shown({ workflowStatus: "GONE", runId: null })).toContain("not started yet");
  const gone = shown({ workflowStatus: "GONE" });
  expect(gone).not.toContain("not started yet");
  expect(gone).toContain('Temporal no longer has its run; resume it with: longhaul say s "go on"');
});

it("until when a session waits for its model's provider is said", () => {
  const waitsUntil = "2026-11-22T15:26:21.000Z";
  expect(shown({ waitsUntil })).toContain(
    `answers again at ${waitsUntil} (in 5 h 25 min); a message or an interrupt asks at once`,
  );
  const look = {
    hasOwners: false,
    style: (_look: unknown, text: string) => text,
    columns: 200,
    isTerminal: true,
  };
  const list = listText([{ ...DOCUMENT, waitsUntil }], { ...look, now: new Date("2026-11-22T10:01:00Z") });
  expect(list).toContain("active, waits 5 h 25 min");
});

it("whose turn a session is on is a line if it was given", () => {
  expect(shown({ priority: 1, tenant: "acme" })).toMatch(/turn +priority 1, tenant acme\n/);
  expect(shown({ tenant: "acme" })).toMatch(/turn +tenant acme\n/);
  expect(shown({ priority: 5 })).toMatch(/turn +priority 5\n/);
  expect(shown({})).not.toContain("turn ");
});

it("messages that an ended session did not read are shown, with the command that delivers them", () => {
  const queue = [{ id: "a", text: "use tabs", queuedAt: "2026-11-22T10:00:30.000Z" }];
  const ended = shown({ status: "failed", endedAt: "2026-11-22T10:00:40.000Z", queue });
  expect(ended).toContain('1 message waiting for its next run (longhaul say s "go on")');
  expect(ended).toContain("1. use tabs");
  expect(shown({ queue })).not.toContain("next run");
});

it("a stop's outcome is one sentence", () => {
  const nothing = { kept: "nothing", step: null, text: null, tools: [] } as const;
  expect(describeKept(nothing)).toBe("Nothing was in progress.");
  expect(describeKept({ ...nothing, kept: "partial text", step: 4, text: "I begin [interrupted]" })).toBe(
    'Kept: what the model had said in step 4 ("I begin [interrupted]").',
  );
  const tools = [{ name: "bash", outcome: "interrupted" }];
  expect(describeKept({ ...nothing, kept: "tools in progress", step: 2, tools })).toBe(
    "Kept: the output so far of bash (step 2).",
  );
  const asked = [{ name: "ask_user", outcome: "interrupted" }];
  expect(describeKept({ ...nothing, kept: "tools in progress", step: 2, tools: asked })).toBe(
    "The question of step 2 is withdrawn.",
  );
});

it("shows tokens without a cached share while there are none", () => {
  expect(usageText({ input: 2_000, cached: 1_000, output: 50 })).toBe("2k tokens in (50 % cached), 50 out");
  expect(usageText({ input: 2_000, cached: 0, output: 50 })).toBe("2k tokens in, 50 out");
  expect(usageText({ input: 0, cached: 0, output: 0 })).toBe("0 tokens in, 0 out");
});

describe("a list of sessions", () => {
  const task = "Write tests for the parser of dates.";
  const sessions = [
    { ...DOCUMENT, id: "brave-delta-rz5k", owner: "alice", costUsd: 0.1, task },
    { ...DOCUMENT, id: "calm-river-7q2m", task },
  ];
  const listed = (columns: number, hasOwners = true, documents = sessions, isTerminal = true) =>
    listText(documents, {
      hasOwners,
      columns,
      isTerminal,
      style: (_look, text) => text,
      now: new Date("2026-11-22T10:01:00Z"),
    }).split("\n");

  it("says whose each is, if they may be several people's and an owner is known", () => {
    const [head, hers, nobodys] = listed(120);
    expect(head).toMatch(/^ID +STATUS +OWNER +STEP +CONTEXT +COST +STARTED +TASK$/);
    expect(hers).toMatch(/^brave-delta-rz5k +active +alice +3 /);
    expect(nobodys).toMatch(/^calm-river-7q2m +active +– +3 /);
    expect(listed(120, false)[0]).not.toContain("OWNER");
    expect(listed(120, true, sessions.slice(1))[0]).not.toContain("OWNER");
  });

  it("has one line each on a narrow terminal, with the owner and the task's beginning", () => {
    for (const columns of [60, 70, 80, 90])
      for (const line of listed(columns)) expect(line.length).toBeLessThanOrEqual(columns);
    expect(listed(80)[0]).toMatch(/^ID +STATUS +OWNER +STEP +COST +STARTED +TASK$/);
    expect(listed(60)[0]).toMatch(/^ID +STATUS +OWNER +TASK$/);
    expect(listed(60)[1]).toMatch(/alice {2}Write tests for the/);
    expect(listed(60, true, sessions, false)[0]).toBe(listed(120)[0]);
  });
});

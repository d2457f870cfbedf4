import { describe, expect, it } from "vitest";
import type { EventData, EventType, SessionEvent } from "../../../activities/store/event.ts";
import { definedFields } from "../../../client/console/format.ts";
import { Renderer } from "../../../client/render/renderer.ts";

const AT = Date.parse("2026-01-02T03:04:05.000Z");

function recorder() {
  let text = "";
  let seq = 0;
  const renderer = new Renderer({
    write: (piece) => (text += piece),
    style: (_look, plain) => plain,
    columns: 80,
    hints: (said) => said.replaceAll("longhaul ", "npm run longhaul -- "),
  });
  const event = <Type extends EventType>(type: Type, step: number, data: EventData[Type], attempt = 1) => {
    const whole: SessionEvent<Type> = {
      seq: ++seq,
      sessionId: "s",
      epoch: 1,
      step,
      attempt,
      at: new Date(AT).toISOString(),
      type,
      data,
    };
    renderer.event(whole as SessionEvent);
  };
  return { event, renderer, text: () => text };
}

const begin = (estimatedInput: number) => ({
  estimatedInput,
  estimated: false,
  triggerTokens: 7_000,
  limit: 7_000,
  window: 10_000,
});
const response = (
  content: string,
  costUsd: number | null = null,
  reasoning = "",
): EventData["llm:response"] => ({
  content,
  reasoning,
  finish: "stop",
  tokenUsage: { input: 10, output: 1, cached: 0, reasoning: 0 },
  contextUsed: 11,
  contextEstimated: false,
  contextLimit: 10_000,
  costUsd,
  durationMs: 5,
  model: "openai/gpt-4o",
  provider: "openai",
});
const result = (fields: Partial<EventData["llm:tool-result"]>): EventData["llm:tool-result"] => ({
  callId: "c",
  index: 0,
  name: "bash",
  outcome: "completed",
  durationMs: 1_234,
  exitCode: 0,
  truncated: false,
  excerpt: "",
  ...fields,
});

describe("Renderer", () => {
  it("names the host if a sandbox could not be closed", () => {
    const { event, text } = recorder();
    event("sandbox:not-closed", 3, { message: "The sandbox was not closed (no answer)." });
    expect(text()).toBe("! The sandbox was not closed (no answer).\n");
  });

  it("reports that hidden thinking continues, and that a server's token counts are implausible", () => {
    const { event, text } = recorder();
    event("llm:thinking", 1, { model: "openai/o3" });
    expect(text()).toBe("");
    event("llm:thinking", 1, { model: "openai/o3", hidden: true });
    expect(text()).toContain("thinking: the provider is at work, but shows nothing yet");
    event("llm:response", 1, { ...response("Well.", 0.02), usageDoubtful: true });
    expect(text()).toMatch(
      /! The server counts 10 tokens, .* npm run longhaul -- doctor shows the server's window/,
    );
    event("llm:response", 2, { ...response("Well.", 0.02), summaryRefused: true });
    expect(text()).toMatch(/! The provider does not show this account what the model thinks/);
    event("llm:response", 3, { ...response("Well.", 0.02), refusedTools: ["a__one", "a__two"] });
    expect(text()).toContain(
      "! The provider refuses requests with these tools, because of a schema or because there are too many: a__one, a__two. The model continues without them.",
    );
  });

  it("reports when a sandbox can reach more than configured, and only there", () => {
    const { event, text } = recorder();
    event("sandbox:created", 1, { container: "c", workspace: "empty", network: { reach: "internet" } });
    expect(text()).toBe("  sandbox created\n");
    event("sandbox:created", 2, {
      container: "c",
      workspace: "empty",
      network: { reach: "everything", why: "no rights" },
    });
    expect(text()).toContain("! the sandbox can reach private addresses: no rights");
  });

  it("names what sandbox.allow opens, not the addresses that were tried, and gaps beside it", () => {
    const { event, text } = recorder();
    const network = { reach: "allowed", tried: 40, reachable: ["10.20.0.1", "10.99.99.99"] };
    const sandbox = { container: "c", workspace: "empty", network, allow: ["10.0.0.0/8"] };
    event("sandbox:created", 1, { ...sandbox, gaps: ["no seccomp"] });
    expect(text()).toBe(
      "  sandbox created\n  sandbox.allow opens 10.0.0.0/8\n! the sandbox is not isolated as configured: no seccomp\n",
    );
  });

  it("shows a run: steps with context, text, tools with outcome, cost, compactions, the end", () => {
    const { event, text } = recorder();
    event("session:started", 0, { task: "Build it.", model: "openai/gpt-5", continued: false });
    event("step:started", 1, begin(2_500));
    event("llm:chunk", 1, { chunkType: "reasoning", text: "First a look." });
    event("llm:chunk", 1, { chunkType: "text", text: "I run the " });
    event("llm:chunk", 1, { chunkType: "text", text: "tests." });
    event("llm:response", 1, response("I run the tests.", 0.02, "First a look."));
    event("llm:tool-call", 1, { callId: "c", index: 0, name: "bash", about: "npm test" });
    event("llm:tool-result", 1, result({ exitCode: 1, excerpt: "a\n\u001b[31mb\u001b[0m\n[exit code 1]" }));
    event("context:compressed", 2, {
      round: 1,
      strategy: "threshold-rounds",
      trigger: "threshold",
      tokensBefore: 9_000,
      tokensAfter: 3_000,
      messages: 12,
      status: "compacted",
      reason: null,
    });
    event("message:queued", 1, { id: "m", position: 1, excerpt: "use pnpm" });
    event("step:started", 2, begin(3_000));
    event("message:dequeued", 2, {
      count: 1,
      ids: ["m"],
      coalesced: false,
      text: "use pnpm",
      firstQueuedAt: "",
      lastQueuedAt: "",
    });
    event("llm:response", 2, response("Done."));
    event("session:ended", 2, {
      status: "completed",
      reason: null,
      text: "Done.",
      usage: { input: 2_000, cached: 1_000, output: 50, reasoning: 0, calls: 2 },
      costUsd: 0.02,
      steps: 2,
      rounds: 1,
      durationMs: 61_000,
    });
    expect(text()).toBe(
      [
        "▶ task: Build it.",
        "  model openai/gpt-5",
        "",
        "step 1  context ███░░░░░░░ 25 % of 10k",
        "thinking: First a look.",
        "I run the tests.",
        "  ✗ bash npm test  exit 1 · 1.2 s",
        "    │ a",
        "    │ b",
        "◆ context compacted, round 1: 9k → 3k tokens, 12 messages into a summary (threshold-rounds, threshold)",
        "✉ waits for the next step: use pnpm",
        "",
        "step 2  context ███░░░░░░░ 30 % of 10k · $0.0200 · 1 message waiting",
        "▸ you: use pnpm",
        "Done.",
        "",
        "✓ completed  2 steps · 1 compaction round · 2k tokens in (50 % cached), 50 out · $0.0200 · 1 min 1 s",
        "",
      ].join("\n"),
    );
  });

  it("reports that a step is retried, and shows its whole text again", () => {
    const { event, text } = recorder();
    event("step:started", 1, begin(1));
    event("llm:chunk", 1, { chunkType: "text", text: "Half a th" });
    event("step:started", 1, begin(1), 2);
    event("llm:chunk", 1, { chunkType: "text", text: " late word of the first" }, 1);
    event("llm:chunk", 1, { chunkType: "text", text: "A whole thought." }, 2);
    event("llm:response", 1, response("A whole thought."), 2);
    expect(text()).toBe(
      "\nstep 1  context █░░░░░░░░░ 0 % of 10k\nHalf a th\n↻ step 1 again, attempt 2; its text so far is dropped\nA whole thought.\n",
    );
  });

  it("adds what a late watcher missed of an answer, once", () => {
    const { event, text } = recorder();
    event("step:started", 1, begin(1));
    event("llm:chunk", 1, { chunkType: "text", text: "One " });
    event("llm:response", 1, response("One two."));
    event("step:started", 2, begin(1));
    event("llm:response", 2, response("Three."));
    expect(text().match(/One two\.\n/g)).toHaveLength(1);
    expect(text()).toContain("Three.\n");
  });

  it("announces a slow tool, and only then", () => {
    const { event, renderer, text } = recorder();
    event("llm:tool-call", 1, { callId: "c", index: 0, name: "bash", about: "sleep 9" });
    renderer.tick(AT + 1_000);
    expect(text()).toBe("");
    renderer.tick(AT + 3_500);
    renderer.tick(AT + 4_500);
    expect(text()).toBe("  … bash sleep 9  running for 3.5 s\n");
    event("llm:tool-result", 1, result({}));
    renderer.tick(AT + 100_000);
    expect(text().split("\n")).toHaveLength(3);
  });

  it("counts a message once that was delivered before its event, or whose event came twice", () => {
    const { event, text } = recorder();
    const taken = { count: 1, coalesced: false, text: "x", firstQueuedAt: "", lastQueuedAt: "" };
    event("message:dequeued", 1, { ...taken, ids: ["a"] });
    event("message:queued", 1, { id: "a", position: 1, excerpt: "x" });
    event("message:queued", 1, { id: "b", position: 1, excerpt: "y" });
    event("message:queued", 1, { id: "b", position: 1, excerpt: "y" });
    event("step:started", 2, begin(1));
    expect(text()).toContain("1 message waiting");
    expect(text().match(/waits for the next step/g)).toHaveLength(1);
  });

  it("names everybody whose messages became one, in their order, and an owner only beside others", () => {
    const { event, text } = recorder();
    const queued = (id: string, by?: string) =>
      event("message:queued", 1, { id, position: 1, excerpt: "x", ...definedFields({ by }) });
    const taken = (words: string, ids: readonly string[], by?: readonly string[]) =>
      event("message:dequeued", 1, {
        count: ids.length,
        ids: [...ids],
        coalesced: ids.length > 1,
        text: words,
        firstQueuedAt: "",
        lastQueuedAt: "",
        ...definedFields({ by: by && [...by] }),
      });
    event("session:started", 0, { task: "t", model: "m", continued: false, owner: "alice" });
    for (const [id, by] of [["a", "alice"], ["b", "bob"], ["c", "alice"], ["d"], ["e", "bob"]] as const)
      queued(id, by);
    taken("one", ["a"], ["alice"]);
    taken("two", ["a", "b"], ["alice", "bob"]);
    taken("three", ["a", "b", "c"], ["alice", "bob"]);
    taken("four", ["d", "b"], ["bob"]);
    taken("five", ["b", "b#2", "e"], ["bob"]);
    // Sent before this watcher came.
    taken("six", ["x", "y"], ["alice", "bob"]);
    expect(text().match(/^▸ .*/gm)).toEqual([
      "▸ you: one",
      "▸ alice, bob: two",
      "▸ alice, bob, alice: three",
      "▸ you, bob: four",
      "▸ bob: five",
      "▸ alice, bob: six",
    ]);
  });

  it("writes no note into a sentence: notes wait for the line's end, urgent ones end the line", () => {
    const { event, renderer, text } = recorder();
    event("llm:chunk", 1, { chunkType: "text", text: "I look at the " });
    event("sandbox:created", 1, { container: "c", workspace: "empty" });
    event("message:queued", 1, { id: "m", position: 1, excerpt: "use pnpm" });
    event("llm:chunk", 1, { chunkType: "text", text: "tests.\nThen " });
    renderer.note("Postgres does not answer");
    event("llm:response", 1, response("I look at the tests.\nThen I fix them."));
    expect(text()).toBe(
      "I look at the tests.\nThen \n  sandbox created\n✉ waits for the next step: use pnpm\nPostgres does not answer\nI fix them.\n",
    );
  });

  it("writes no note into a paragraph or a fence of several lines", () => {
    const { event, text } = recorder();
    for (const words of ["I look at the\n", "tests:\n\n", "```json\n{\n\n", "}\n"]) {
      event("llm:chunk", 1, { chunkType: "text", text: words });
      event("sandbox:created", 1, { container: "c", workspace: "empty" });
    }
    const made = "  sandbox created\n";
    expect(text()).toBe(`I look at the\ntests:\n\n${made}${made}\`\`\`json\n{\n\n}\n`);
  });

  it("says that a text is dropped if its step is taken again without a new attempt", () => {
    const { event, text } = recorder();
    event("step:started", 1, begin(2_500));
    event("llm:chunk", 1, { chunkType: "text", text: "I look at" });
    for (const _ of [1, 2]) event("step:started", 1, begin(1_500));
    expect(text()).toMatch(/I look at\n↻ step 1 again; its text so far is dropped\n$/);
  });

  it("escapes every terminal sequence", () => {
    const { event, text } = recorder();
    event("llm:chunk", 1, { chunkType: "text", text: "a\u001b[2Jb\u0007c\u001b]0;title\u0007d\u202ee" });
    event("llm:tool-result", 1, result({ outcome: "error", excerpt: "x\u001b[1mY\r\nz" }));
    // oxlint-disable-next-line no-control-regex -- control characters are what this is about
    expect(text()).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    expect(text()).toContain(String.raw`abcd\u202ee`);
  });
});

import { describe, expect, it } from "vitest";
import { escapeHtml, html } from "../../../client/report/html.ts";
import { markdownHtml } from "../../../client/report/markdown-html.ts";
import type { FollowStatus } from "../../../client/view/followed-words.ts";
import { reportPage, type ReportData } from "../../../client/report/report-page.ts";
import type { SessionEvent } from "../../../activities/store/event.ts";
import { describeEvent } from "../../../client/view/describe-event.ts";
import { patchFiles } from "../../../client/workspace/workspace-diff.ts";
import { trajectoryDocument } from "../../../client/sessions/transcript.ts";
import { AT, sessionRow, wholeSession } from "../../support/stored-whole.ts";

const common = { sessionId: "s", epoch: 1, attempt: 1, at: AT.toISOString() };
const COMPACTED: SessionEvent<"context:compressed"> = {
  ...common,
  seq: 7,
  step: 2,
  type: "context:compressed",
  data: {
    round: 1,
    strategy: "reactive-overflow",
    trigger: "threshold",
    tokensBefore: 95_000,
    tokensAfter: 20_000,
    messages: 12,
    status: "compacted",
    reason: null,
  },
};
const ENDED: SessionEvent<"session:ended"> = {
  ...common,
  seq: 9,
  step: 3,
  type: "session:ended",
  data: {
    status: "max_steps",
    limit: "cost",
    reason: null,
    steps: 3,
    rounds: 1,
    text: "",
    usage: { input: 1, cached: 0, output: 1, reasoning: 0, calls: 1 },
    costUsd: 0.0123,
    durationMs: 1_000,
  },
};
const DATA: ReportData = {
  session: sessionRow,
  model: "openai/gpt-4o",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  steps: trajectoryDocument(sessionRow, wholeSession, "1.2.3").steps,
  rounds: [{ round: 1, step: 2, status: "compacted" }],
  events: [COMPACTED, ENDED],
  usage: { calls: 3, input: 3_000, cached: 1_200, output: 150, costUsd: 0.0123, estimatedUsd: 0 },
  usageDoubtful: false,
  contextWindow: 128_000,
  triggerTokens: 93_600,
  calls: {
    facts: new Map([["c1", { ms: 1_234, exitCode: 1 }]]),
    pictures: new Map([
      ["c1", [{ mediaType: "image/png", base64: "aGVsbG8=" }]],
      ["message 1", [{ mediaType: "image/jpeg", base64: "YnllIQ==" }]],
    ]),
  },
  costs: [
    { step: 1, input: 1_000, cached: 400, output: 50, costUsd: 0.0123 },
    { step: 2, input: 90_000, cached: 80_000, output: 50, costUsd: null },
  ],
  patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-<i>old</i>\n+new\n",
  follow: null,
  followRounds: [],
  madeAt: AT,
};
const page = reportPage(DATA);

describe("the report", () => {
  it("shows others' content as text, and can neither run nor fetch anything", () => {
    expect(page).toContain("Fix &lt;b&gt;it&lt;/b&gt;");
    expect(page).toContain("&lt;/pre&gt;&lt;script&gt;");
    expect(page).toContain("-&lt;i&gt;old&lt;/i&gt;");
    expect(page).not.toMatch(/<script|<link|\bsrc="(?!data:image)|\bon[a-z]+=|url\(/i);
    expect(page).toContain("default-src 'none'");
  });

  it("has figures, the window's use with its compactions, the actions, and the change", () => {
    for (const text of [
      "3k (40 % cached)",
      "0af7651916cd43dd8448eb211c80319c",
      "$0.0123",
      "95k → 20k",
      "1.2 s",
      "diff --git a/x b/x",
      "+1",
      "−1",
    ])
      expect(page).toContain(text);
    expect(page.match(/<polyline/g)).toHaveLength(1);
    expect(page.match(/class="round"/g)).toHaveLength(1);
    expect(page.match(/<article/g)).toHaveLength(4);
    expect(page).not.toMatch(/undefined|NaN|\[object/);
  });

  it("words compactions and the end as the terminal and the page do", () => {
    for (const event of [COMPACTED, ENDED]) expect(page).toContain(describeEvent(event)[0]?.text);
    expect(reportPage({ ...DATA, events: [] })).not.toContain("<li>◆");
  });

  it("says what verification came to, command by command, with the output of what failed", () => {
    const look = (seq: number, outcome: "failed" | "passed", tail: string): SessionEvent => ({
      ...common,
      seq,
      step: seq - 9,
      type: "verify:ended",
      data: { round: seq - 10, command: "npm test", outcome, how: "exit code 1", ms: 2_000, tail },
    });
    const events = [look(10, "failed", "1 test <b>failed</b>"), look(11, "passed", ""), ENDED];
    const verified = reportPage({ ...DATA, session: { ...sessionRow, verified: "passed" }, events });
    expect(verified).toMatch(/verified<\/dt>\s*<dd>✓ verified<\/dd>/);
    expect(verified).toContain('<a href="#verification">');
    expect(verified).toMatch(/npm test: not verified: failed \(exit code 1, 2 s\), after step 1/);
    expect(verified).toContain("1 test &lt;b&gt;failed&lt;/b&gt;");
    expect(verified).toMatch(/npm test: verified \(exit code 1, 2 s\), after step 2/);
    expect(page).not.toContain("erification");
  });

  it("folds reasoning, and marks estimated costs and implausible token counts", () => {
    expect(page).toMatch(/<details>\s*<summary>reasoning<\/summary>/);
    expect(page).not.toContain("estimated part");
    const usage = { calls: 2, input: 10, cached: 0, output: 1, costUsd: 0.5, estimatedUsd: 0.2 };
    const doubtful = reportPage({ ...DATA, usage, usageDoubtful: true });
    expect(doubtful).toMatch(/estimated part<\/dt>\s*<dd>\$0\.20/);
    expect(doubtful).toContain("token counts contradict");
  });

  it("shows a failed command in red with a link to it, and what the agent looked at", () => {
    expect(page).toMatch(/<a href="#call-c1"\s*>/);
    expect(page).toMatch(/<details class="call failed" id="call-c1" open>/);
    expect(page).toContain("exit 1 · 1.2 s");
    expect(page).toContain('src="data:image/png;base64,aGVsbG8="');
    // A person's attachments are shown with their text.
    expect(page).toMatch(
      /<p class="words">[^<]*<\/p>\s*<img alt="attached picture 1" src="data:image\/jpeg;base64,YnllIQ=="/,
    );
    expect(page).toContain("2 Jan 2026, 03:04:05 UTC");
  });

  it("tells of a followed pull request and its rounds, and runs no address", () => {
    const follow: FollowStatus = {
      url: "https://forge.example/acme/app/pulls/7",
      state: "following",
      reason: "it can be reviewed",
      head: "f203c1b72b00aa",
      base: "main",
      checks: [],
      openThreads: 0,
      conflicts: null,
      rounds: 1,
      roundsUpTo: 5,
      costUsd: 0.01,
      maxCostUsd: 10,
      until: AT.toISOString(),
      lookedAt: null,
      nextLookAt: null,
      endedAt: null,
      mergeCommit: null,
    };
    const round = {
      sessionId: "s",
      number: 1,
      head: "a",
      digest: "d",
      toldAt: AT,
      endedAt: AT,
      answeredAt: AT,
      reasons: [{ kind: "thread" as const, name: "week.js:3<script>" }],
      pushed: "f203c1b72b00aa",
      outcome: "completed",
      costBeforeUsd: 0,
      costUsd: 0.01,
    };
    const told = reportPage({ ...DATA, follow, followRounds: [round] });
    expect(told).toContain('<h2 id="pull-request">');
    expect(told).toContain('<a href="https://forge.example/acme/app/pulls/7">');
    expect(told).toContain("the thread week.js:3&lt;script&gt;: completed, pushed f203c1b72b00, $0.0100");
    const hostile = reportPage({
      ...DATA,
      follow: { ...follow, url: "javascript:alert(1)" },
      followRounds: [],
    });
    expect(hostile).not.toContain('href="javascript');
    expect(page).not.toContain("Pull request");
  });

  it("renders a session without a single request", () => {
    const fresh = { ...sessionRow, status: "active", endedAt: null, result: null } as const;
    const empty = reportPage({
      session: fresh,
      model: "m",
      traceId: null,
      steps: [],
      rounds: [],
      events: [],
      usage: { calls: 0, input: 0, cached: 0, output: 0, costUsd: null, estimatedUsd: 0 },
      usageDoubtful: false,
      contextWindow: 128_000,
      triggerTokens: 93_600,
      calls: { facts: new Map(), pictures: new Map() },
      costs: [],
      patch: "",
      follow: null,
      followRounds: [],
      madeAt: AT,
    });
    expect(empty).toContain("No request was billed.");
    expect(empty).not.toMatch(/undefined|NaN|Infinity/);
  });
});

it("html escapes text, keeps markup, and takes control characters out", () => {
  expect(html`<p title="${'"x"'}">${"<&>"}${html`<b>1</b>`}</p>`.text).toBe(
    '<p title="&quot;x&quot;">&lt;&amp;&gt;<b>1</b></p>',
  );
  expect(escapeHtml("a\u0000\u001b[31m\u202eb\ud800\n\t")).toBe("a[31m\\u202eb\ufffd\n\t");
});

it("Markdown in the report is rendered, without script links, fetches or markup of its own", () => {
  const drawn = markdownHtml(
    "# Head\n\n**b** `c<d>` [ok](https://x.test/?a=1&b) [bad](javascript:alert(1)) ![p](https://x.test/p.png) <script>1</script>\n\n- [x] one\n\n<img src=x onerror=1>",
  ).text;
  expect(drawn).toContain('<p class="heading">Head</p>');
  expect(drawn).toContain("<strong>b</strong> <code>c&lt;d&gt;</code>");
  expect(drawn).toContain('<a href="https://x.test/?a=1&amp;b" rel="noreferrer noopener">ok</a>');
  expect(drawn).toContain("bad (javascript:alert(1))");
  expect(drawn).toContain("☑ one");
  expect(drawn).not.toMatch(/<script|<img|href="javascript/);
});

it("a patch is split by files, with lines added and removed", () => {
  const patch =
    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n+++ more\n same\n" +
    "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n--- sql\n" +
    "diff --git a/p.png b/p.png\nBinary files differ\n";
  expect(patchFiles(patch).map(({ path, added, removed }) => [path, added, removed])).toEqual([
    ["x", 2, 1],
    ["gone", 0, 1],
    ["p.png", null, null],
  ]);
});

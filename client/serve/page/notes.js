// Events that are one line of a session's log.
"use strict";

const fileNames = (files) => files.map(({ path }) => path).join(", ");
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** Long waits are for a moment that people can plan with. */
const againAt = (at, ms) =>
  ms === null || ms < 60_000 ? "" : ` at ${new Date(Date.parse(at) + ms).toLocaleString()}`;

const LIMITS = {
  requestsPerMinute: "requests a minute",
  tokensPerMinute: "tokens a minute",
  concurrent: "requests at once",
};
const numbered = (amount, name) => `${amount} ${name}${amount === 1 ? "" : "s"}`;

/** By event type: the line and its style, from the event's data; undefined for an event without a line. */
const NOTES = {
  "llm:error": ({ class: kind, message, final, retryInMs }, at) => [
    `${kind}: ${message}${final ? "" : ` – tried again${againAt(at, retryInMs)}`}`,
    final ? "bad" : "warn",
  ],
  "llm:throttled": ({ limit }) => [`waits for the model: limit of ${LIMITS[limit] ?? limit} reached`, "warn"],
  "llm:switched": ({ from, to }) => [`model: ${from} → ${to}`],
  "llm:unsupported-input": ({ message }) => [message, "warn"],
  "limit:near": ({ used, max }) => [
    `$${used.toFixed(2)} of the $${max.toFixed(2)} that this session may cost`,
    "warn",
  ],
  "context:compressing": ({ tokensBefore }) => [`⇣ compacting ${count(tokensBefore)} tokens …`],
  "context:compressed": ({ status, round, tokensBefore, tokensAfter, messages, reason }) => {
    const sizes = `${count(tokensBefore)} → ${count(tokensAfter)} tokens`;
    if (status === "undone") return [`⇡ round ${round} undone: ${sizes}`];
    if (status !== "compacted") return [`⇣ not compacted: ${reason ?? status}`, "warn"];
    return [`⇣ compacted: ${sizes}, ${numbered(messages, "message")}`];
  },
  "context:pruned": ({ prunedCount, savedTokens }) => [
    `✂ ${numbered(prunedCount, "old tool result")} hidden, ${count(savedTokens)} tokens freed`,
  ],
  "message:withdrawn": () => ["✉ a message was taken back"],
  "sandbox:created": ({ gaps, network }) => {
    if (gaps) return [`sandbox not isolated as configured: ${gaps.join("; ")}`, "warn"];
    if (!network?.why || network.reach === "allowed") return undefined;
    return [`the sandbox can reach private addresses: ${network.why}`, "warn"];
  },
  "sandbox:lost": ({ message }) => [`sandbox lost: ${message}`, "warn"],
  "record:missing": ({ from, to }) => [
    `restored from an older copy: ${from === to ? `step ${from} is` : `steps ${from} to ${to} are`} missing from the record`,
    "warn",
  ],
  "sandbox:left-out": ({ files }) => [`not saved in their present state: ${fileNames(files)}`, "warn"],
  "sandbox:saves-full": () => [
    "saved files take all the space that the session may use: from now on only the newest are kept",
    "warn",
  ],
  "sandbox:parked": () => ["the sandbox is saved and removed until the answer comes"],
  "sandbox:not-closed": ({ message }) => [message, "warn"],
  "setup:started": ({ commands }) => [`sets up: ${commands.join("; ")}`],
  "setup:built": ({ kept, durationMs }) => [
    kept === "made" ? `image built, ${seconds(durationMs)}` : "image: an earlier build is used",
  ],
  "setup:ended": ({ status, durationMs, command, output }) =>
    status === "done"
      ? [`set up, ${seconds(durationMs)}`]
      : [`set-up failed${command ? `: ${command}` : ""}\n${output}`, "bad"],
  "egress:denied": ({ host, port, reason, allow }) => [
    `not reached: ${host}:${port} (${reason})${allow ? `; to allow it: ${allow}` : ""}`,
    "warn",
  ],
  "egress:allowed": ({ domain, by }) => [`network: ${domain} is allowed (${by})`],
  // The agent's own question stands in its call.
  "question:asked": ({ kind, text }) => (kind === "ask" ? undefined : [`? ${text}`, "warn"]),
  "question:answered": ({ how, excerpt, by }) => [
    `→ ${how}${excerpt ? `: ${excerpt}` : ""}${by ? ` (${by})` : ""}`,
  ],
  "question:expired": (data) => [`→ no answer came; the default was taken: ${data.default}`],
  "question:withdrawn": ({ reason }) => [`→ the question was withdrawn (${reason})`],
  "delegate:started": ({ childId, about }) => [`⇢ ${childId} works on: ${about}`],
  "delegate:ended": ({ childId, status, applied }) => [
    `⇠ ${childId} is ${status}${applied.length === 0 ? "" : `; ${numbered(applied.length, "file")} applied`}`,
  ],
  "git:fetched": ({ url, ref, branch }) => [`cloned ${url} at ${ref}, on ${branch}`],
  "git:pushed": ({ commits, branch }) => [`pushed ${numbered(commits, "commit")} to ${branch}`],
  "git:refused": ({ branch, reason }) => [`not pushed to ${branch}: ${reason}`, "warn"],
  "git:pull-request": ({ url }) => [`pull request: ${url}`],
  "git:left-out": ({ files }) => [`not delivered: ${fileNames(files)}`, "warn"],
  "mcp:connected": ({ server, tools }) => [`${server}: ${numbered(tools, "tool")}`],
  "mcp:login-needed": ({ command }) => [`→ ${command}`, "warn"],
  "mcp:changed": ({ server }) => [`${server} changed its tools`],
  "mcp:failed": ({ server, message }) => [`MCP server ${server}: ${message}`, "warn"],
  "person:acted": ({ by, action }) => [`▸ ${by}: ${action}`],
  "instructions:loaded": ({ path }) => [`instructions ${path}`],
  "skill:opened": ({ name }) => [`skill ${name}`],
};

/** Times that no timer takes: Node would fire it at once, and Temporal would refuse the workflow's forever. */
import { expect, it } from "vitest";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";

/** With the margin that some waits add, it does not fit into 31 bits. */
const TOO_LONG = 2 ** 31 - 1;
const YEARS = 1e12;

it.each([
  ["limits.modelTimeout", { limits: { modelTimeout: TOO_LONG } }],
  ["limits.connectTimeout", { limits: { connectTimeout: TOO_LONG } }],
  ["limits.firstTokenTimeout", { limits: { firstTokenTimeout: TOO_LONG } }],
  ["limits.silenceTimeout", { limits: { silenceTimeout: TOO_LONG } }],
  ["limits.wrapUp", { limits: { wrapUp: YEARS } }],
  ["limits.returnAfter", { limits: { returnAfter: YEARS } }],
  ["tools.bash.timeout", { tools: { bash: { timeout: TOO_LONG } } }],
  ["tools.bash.limits.maxTimeout", { tools: { bash: { limits: { maxTimeout: TOO_LONG } } } }],
  ["providers.a.timeouts.silence", { providers: { a: { timeouts: { silence: TOO_LONG } } } }],
  ["mcpServers.a.timeout", { mcpServers: { a: { command: "a", timeout: TOO_LONG, maxTimeout: TOO_LONG } } }],
  ["mcpServers.a.startTimeout", { mcpServers: { a: { command: "a", startTimeout: TOO_LONG } } }],
  ["questions.defaultAfter", { questions: { defaultAfter: YEARS } }],
  ["questions.parkAfter", { questions: { parkAfter: YEARS } }],
  ["sandbox.setup.timeout", { sandbox: { setup: { timeout: TOO_LONG } } }],
])("%s has an end", (name, settings) => {
  const paths = agentConfigSchema.safeParse(settings).error?.issues.map(({ path }) => path.join("."));
  expect(paths).toContain(name);
});

it("an hour-long answer and a question over a holiday are taken", () => {
  const settings = { limits: { modelTimeout: 3_600_000 }, questions: { defaultAfter: 30 * 86_400_000 } };
  expect(agentConfigSchema.safeParse(settings).success).toBe(true);
});

import { createServer } from "node:http";
import { expect, it } from "vitest";
import { startCloud, type Cloud } from "../../support/cloud-server.ts";
import { worker } from "../../support/identity-worker.ts";
import { listen } from "../../support/listen.ts";
import { scriptedModel, text } from "../../support/scripted-model.ts";

const COMMAND = { kind: "command", command: ["sh", "-c", "date +corp-token-%s%N"] };
const says = () => scriptedModel().says("Hi.");
const hi = { content: [{ type: "text", text: "Hi." }] };

/** A gateway whose tokens a command prints. */
async function gateway(refuses: NonNullable<Parameters<typeof startCloud>[2]>["refuses"], script = says()) {
  const cloud = await startCloud("bedrock-open", script, refuses === undefined ? {} : { refuses });
  return { cloud, ...corpWorker(cloud) };
}
const corpWorker = ({ origin }: Pick<Cloud, "origin">) =>
  worker({ corp: { baseUrl: "https://llm.corp.example/v1", api: "chat", auth: COMMAND } }, origin);
const client = { corp: { api: "chat" } } as const;

it("a token that has expired is renewed once, and the request repeated and paid once", async () => {
  const { ask, cloud, identities } = await gateway((_, index) =>
    index === 0 ? { status: 403, text: '{"error":{"message":"The security token is expired"}}' } : undefined,
  );
  expect(await ask("corp/gpt-4o", {}, client)).toMatchObject(hi);
  expect(new Set(cloud.tokens).size).toBe(2);
  expect(cloud.model.requests).toHaveLength(1);
  expect(identities.issued()).toEqual(cloud.tokens);
});

const json = (body: unknown) => ({ status: 400, text: JSON.stringify(body) });
const EXPIRED = "The security token included in the request is expired";

it.each([
  ["its code", json({ error: { code: "ExpiredToken", message: "…" } })],
  ["its type", json({ __type: "com.amazon.coral.service#ExpiredTokenException", message: "…" })],
  ["its words", json({ message: EXPIRED })],
  ["XML", { status: 400, text: `<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>` }],
  ["plain text", { status: 400, text: "ExpiredToken: ask again" }],
  [
    "a header",
    { status: 400, text: "{}", headers: { "x-amzn-errortype": "ExpiredTokenException:http://internal/" } },
  ],
])("a token that has expired is renewed exactly once after a 400 that says so by %s", async (_, refusal) => {
  const once = await gateway((_token, index) => (index === 0 ? refusal : undefined));
  expect(await once.ask("corp/gpt-4o", {}, client)).toMatchObject(hi);
  expect(new Set(once.cloud.tokens).size).toBe(2);
  expect(once.cloud.model.requests).toHaveLength(1);
  const always = await gateway(() => refusal);
  await expect(always.ask("corp/gpt-4o", {}, client)).rejects.toMatchObject({
    class: "credentials",
    status: 400,
  });
  expect(always.cloud.tokens).toHaveLength(2);
});

it.each([
  json({ error: { message: "max_tokens: 70000 is too large" } }),
  json({ error: { code: "invalid_request", message: "invalid token count; the clock expired" } }),
  // What was sent, quoted.
  json({ error: { message: `unexpected input: {"code":"ExpiredToken","message":"${EXPIRED}"}` } }),
])("a 400 for another reason renews nothing, and keeps its words", async (refusal) => {
  const { ask, cloud } = await gateway(() => refusal);
  const { message } = JSON.parse(refusal.text).error as { message: string };
  await expect(ask("corp/gpt-4o", {}, client)).rejects.toMatchObject({
    class: expect.not.stringMatching("credentials") as string,
    message: expect.stringContaining(message.slice(0, 20)) as string,
  });
  expect(new Set(cloud.tokens).size).toBe(1);
});

it("a second refusal is permanent, with the source's name and its fix", async () => {
  const { ask, cloud } = await gateway((token) => ({ status: 401, text: `no such token: ${token}` }));
  const failed = await ask("corp/gpt-4o", {}, client).then(
    () => new Error("it was answered"),
    (error: unknown) => error as Error,
  );
  expect(failed).toMatchObject({ class: "credentials", status: 401 });
  expect(failed.message).toMatch(/providers\.corp \(command\).*Run the command by hand/);
  expect(cloud.tokens).toHaveLength(2);
  for (const token of cloud.tokens) expect(failed.message).not.toContain(token);
});

it("a clock that is wrong is named as the fix", async () => {
  const date = new Date(Date.now() - 6 * 60_000).toUTCString();
  const { ask } = await gateway(() => ({
    status: 403,
    text: "Signature not yet current",
    headers: { date },
  }));
  await expect(ask("corp/gpt-4o", {}, client)).rejects.toThrow(
    "clock of the worker's machine is 6 min ahead",
  );
});

it("missing rights to one model end that model only, and renew nothing", async () => {
  const { ask, cloud } = await gateway((_, index) =>
    index === 0
      ? { status: 403, text: '{"message":"User is not authorized to perform: bedrock:InvokeModel"}' }
      : undefined,
  );
  await expect(ask("corp/gpt-4o", {}, client)).rejects.toMatchObject({
    class: "credentials",
    message: expect.stringMatching(
      /not authorized to perform.*Give the identity of providers\.corp \(command\).*the right to use gpt-4o/,
    ) as string,
  });
  expect(cloud.tokens).toHaveLength(1);
  expect(await ask("corp/gpt-4o", {}, client)).toMatchObject(hi);
});

it("a redirect to another host gets no token and no conversation, and is told at once", async () => {
  const heard: unknown[] = [];
  const other = createServer((request, response) => {
    heard.push(request.headers);
    response.end();
  });
  const location = `http://localhost:${await listen(other)}/v1/chat/completions`;
  const { ask } = await gateway(() => ({ status: 307, text: "", headers: { location } }));
  await expect(ask("corp/gpt-4o", {}, client)).rejects.toMatchObject({
    class: "rejected",
    message: expect.stringMatching(
      /^The request to corp failed: .* redirects to .*set its address/,
    ) as string,
  });
  expect(heard).toEqual([]);
});

it("a stream outlives its token, and the next request has a new one", async () => {
  const script = scriptedModel()
    .answers(text("Hi."), { type: "wait", ms: 1_500 }, text(" Bye."))
    .says("Next.");
  const { cloud } = await gateway(undefined, script);
  const auth = { ...COMMAND, for: "1s" };
  const { ask } = worker({ corp: { baseUrl: "https://llm.corp.example/v1", auth } }, cloud.origin);
  expect(await ask("corp/gpt-4o", {}, client)).toMatchObject({ content: [{ text: "Hi. Bye." }] });
  expect(await ask("corp/gpt-4o", {}, client)).toMatchObject({ content: [{ text: "Next." }] });
  expect(new Set(cloud.tokens).size).toBe(2);
});

it("a session chooses neither the address nor the headers of a provider that has an identity", async () => {
  const { ask, cloud } = await gateway(undefined);
  const elsewhere = await startCloud("bedrock-open", scriptedModel());
  const mine = {
    corp: { api: "chat", baseUrl: `${elsewhere.origin}/v1`, headers: { "x-mine": "1" } },
  } as const;
  expect(await ask("corp/gpt-4o", {}, mine)).toMatchObject(hi);
  expect(elsewhere.taken).toEqual([]);
  expect(cloud.taken[0]?.headers).not.toHaveProperty("x-mine");
});

it("every token that was used is masked in the texts that follow", async () => {
  const { ask, cloud, sanitizer } = await gateway(undefined);
  await ask("corp/gpt-4o", {}, client);
  const [token = ""] = cloud.tokens;
  expect(sanitizer.clean(`env says TOKEN=${token}!`)).not.toContain(token);
});

it("a missing package is named with its install command, and ends the attempts", async () => {
  const load = () => Promise.reject(Object.assign(new Error("no"), { code: "ERR_MODULE_NOT_FOUND" }));
  const providers = {
    g: { preset: "vertex-gemini", project: "p1", region: "global", auth: { kind: "google" } },
    a: { preset: "azure", resource: "r1", auth: { kind: "azure" } },
  };
  const { ask } = worker(providers, "http://127.0.0.1:9", { load });
  const of = (name: string, preset: string) => ask(`${name}/m`, {}, { [name]: { preset } });
  const missing = (name: string) => ({
    class: "credentials",
    message: expect.stringContaining(`npm install ${name}`) as string,
  });
  await expect(of("g", "vertex-gemini")).rejects.toMatchObject(missing("google-auth-library"));
  await expect(of("a", "azure")).rejects.toMatchObject(missing("@azure/identity"));
});

it("a preset without its place, on a worker that does not know it, says what to set", async () => {
  const { ask } = worker({}, "http://127.0.0.1:9");
  await expect(ask("bedrock-claude/x")).rejects.toThrow("the preset bedrock-claude needs region");
});

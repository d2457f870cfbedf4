import { expect, it } from "vitest";
import { presetAddress } from "../../../activities/config/presets.ts";
import { isSignedBy, startCloud } from "../../support/cloud-server.ts";
import { SECRET, worker } from "../../support/identity-worker.ts";
import { startCountFront } from "../../support/count-front.ts";
import { toolResult, assistant, user } from "../../support/model-request.ts";
import { call, scriptedModel, thought } from "../../support/scripted-model.ts";

const window = 200_000;
const says = () => scriptedModel().says("Hi.");
const hi = { content: [{ type: "text", text: "Hi." }] };

it.each([
  [
    "bedrock-claude",
    { region: "eu-central-1" },
    "https://bedrock-runtime.eu-central-1.amazonaws.com/anthropic/v1",
  ],
  ["bedrock-open", { region: "us-east-1" }, "https://bedrock-mantle.us-east-1.api.aws/v1"],
  [
    "vertex-gemini",
    { project: "p1", region: "europe-west4" },
    "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4/publishers/google",
  ],
  [
    "vertex-claude",
    { project: "p1", region: "global" },
    "https://aiplatform.googleapis.com/v1/projects/p1/locations/global/publishers/anthropic",
  ],
  [
    "vertex-claude",
    { project: "p1", region: "eu" },
    "https://aiplatform.eu.rep.googleapis.com/v1/projects/p1/locations/eu/publishers/anthropic",
  ],
  ["azure", { resource: "r1" }, "https://r1.openai.azure.com/openai/v1"],
] as const)("the preset %s is at its documented address", (preset, at, address) => {
  expect(presetAddress({ preset, ...at })).toBe(address);
});

it("Claude at Bedrock gets a presigned token, and its id with colon and region as it is", async () => {
  const modelName = "eu.anthropic.claude-opus-4-6-v1:0";
  const cloud = await startCloud("bedrock-claude", says(), { models: { [modelName]: { window } } });
  const { ask } = worker(
    { bedrock: { preset: "bedrock-claude", region: "eu-central-1", auth: { kind: "aws-bedrock" } } },
    cloud.origin,
  );
  const client = { bedrock: { preset: "bedrock-claude" } };
  expect(await ask(`bedrock/${modelName}`, {}, client)).toMatchObject(hi);
  expect(isSignedBy(cloud.tokens[0] ?? "", SECRET)).toBe(true);
  expect(cloud.taken[0]?.body).toMatchObject({ model: modelName });
});

it("an open model at Bedrock is asked with chat completions", async () => {
  const modelName = "openai.gpt-oss-120b-1:0";
  const cloud = await startCloud("bedrock-open", says(), { models: { [modelName]: { window } } });
  const auth = { kind: "aws-bedrock" };
  const { ask } = worker(
    { "bedrock-open": { preset: "bedrock-open", region: "us-east-1", auth } },
    cloud.origin,
  );
  // The preset's own name needs nothing in the client's configuration.
  expect(await ask(`bedrock-open/${modelName}`)).toMatchObject(hi);
  expect(isSignedBy(cloud.tokens[0] ?? "", SECRET)).toBe(true);
});

it("Gemini at Vertex gets Google's token, and no key", async () => {
  const cloud = await startCloud("vertex-gemini", says(), { models: { "gemini-3-pro": { window } } });
  const { ask } = worker(
    { vertex: { preset: "vertex-gemini", project: "p1", region: "europe-west4", auth: { kind: "google" } } },
    cloud.origin,
  );
  expect(await ask("vertex/gemini-3-pro", {}, { vertex: { preset: "vertex-gemini" } })).toMatchObject(hi);
  expect(cloud.tokens).toEqual(["ya29.google-1"]);
});

it("Claude at Vertex has its model in the address, and thinking, tools and results in the body", async () => {
  const modelName = "claude-opus-4-6@20260801";
  const script = scriptedModel()
    .answers(thought("Look first."), call("bash", { command: "ls" }))
    .says("Done.");
  const cloud = await startCloud("vertex-claude", script, {
    models: { [modelName]: { window, reasoning: true } },
  });
  const auth = { kind: "google" };
  const { ask } = worker(
    { "vertex-c": { preset: "vertex-claude", project: "p1", region: "global", auth } },
    cloud.origin,
  );
  const client = { "vertex-c": { preset: "vertex-claude" } };
  const parts = { reasoning: { effort: "high" } } as const;
  const first = await ask(`vertex-c/${modelName}`, parts, client);
  const called = first.content.find((part) => part.type === "tool-call");
  expect(called).toMatchObject({ toolName: "bash", input: { command: "ls" } });
  const id = called?.type === "tool-call" ? called.toolCallId : "";
  const messages = [user("Go."), assistant(...first.content), toolResult(id, "a.txt")];
  expect(await ask(`vertex-c/${modelName}`, { ...parts, messages }, client)).toMatchObject({
    content: [{ text: "Done." }],
  });
  expect(cloud.taken.map(({ path }) => path)).toEqual(
    Array.from(
      { length: 2 },
      () => `/v1/projects/p1/locations/global/publishers/anthropic/models/${modelName}:streamRawPredict`,
    ),
  );
  expect(cloud.taken[0]?.body).toHaveProperty("thinking");
});

it("Claude at Vertex counts a request, with thinking and tools, by the same token", async () => {
  const modelName = "claude-opus-4-6@20260801";
  const cloud = await startCloud("vertex-claude", says(), {
    models: { [modelName]: { window, reasoning: true } },
  });
  const front = await startCountFront(`${cloud.origin}/`);
  const auth = { kind: "google" };
  const { ask, count } = worker(
    { "vertex-c": { preset: "vertex-claude", project: "p1", region: "global", auth } },
    new URL(front.url).origin,
  );
  const client = { "vertex-c": { preset: "vertex-claude" } };
  const parts = { reasoning: { effort: "high" } } as const;
  expect(await count(`vertex-c/${modelName}`, parts, client)).toBeGreaterThan(0);
  expect(front.counts).toMatchObject([
    {
      path: "/v1/projects/p1/locations/global/publishers/anthropic/models/count-tokens:rawPredict",
      status: 200,
      body: { model: modelName, thinking: expect.any(Object) as object, tools: [{ name: "bash" }] },
    },
  ]);
  expect(await ask(`vertex-c/${modelName}`, parts, client)).toMatchObject(hi);
  expect(front.counts[0]?.headers.authorization).toBe(`Bearer ${cloud.tokens[0]}`);
  expect(cloud.taken[0]?.body).not.toHaveProperty("model");
});

it("Azure gets Entra's token in place of its key", async () => {
  const cloud = await startCloud("azure", says(), { models: { "gpt-5-eu": { window, reasoning: true } } });
  const { ask } = worker(
    { "azure-id": { preset: "azure", resource: "r1", auth: { kind: "azure" } } },
    cloud.origin,
  );
  expect(await ask("azure-id/gpt-5-eu", {}, { "azure-id": { preset: "azure" } })).toMatchObject(hi);
  expect(cloud.tokens).toEqual(["entra-1-44"]);
});

import { expect, it } from "vitest";
import type { ToolSpec } from "../../../activities/contract/tools.ts";
import type { Endpoint } from "../../../activities/model/endpoint.ts";
import { ModelError, type ModelAnswer, type ModelRequest } from "../../../activities/model/model.ts";
import { ToolRefusals } from "../../../activities/model/refusals/tools.ts";
import { modelRequest } from "../../support/model-request.ts";

const tools: readonly ToolSpec[] = Array.from({ length: 6 }, (_, place) => ({
  name: place === 0 ? "bash" : `docs__${place}`,
  description: "Does it.",
  inputSchema: { type: "object", properties: {} },
  ...(place === 0 ? {} : { isForeign: true }),
}));
const endpoint: Endpoint = {
  modelId: "m",
  apiKey: "k",
  baseUrl: "https://x.example",
  headers: {},
  query: {},
};
const answer: ModelAnswer = { content: [], finish: "stop", usage: undefined, firstTokenMs: 1, durationMs: 1 };

const refusal = (message: string, param?: string) =>
  new ModelError(message, {
    class: "rejected",
    cause: { statusCode: 400, responseBody: JSON.stringify({ error: { message, param } }) },
  });

/** Fails with the given errors, one after the other, and then answers. */
async function asked(refusals: ToolRefusals, errors: readonly Error[], where = endpoint) {
  const requests: ModelRequest[] = [];
  const left = [...errors];
  const given = await refusals.ask(modelRequest({ tools }), where, (request) => {
    requests.push(request);
    const error = left.shift();
    return error === undefined ? Promise.resolve(answer) : Promise.reject(error);
  });
  return { refused: given.refusedTools, asked: requests.map((request) => request.tools.length) };
}

it.each([
  [
    "OpenAI",
    "Invalid schema for function 'docs__2': In context=(), array schema missing items.",
    "tools[2].parameters",
  ],
  ["a gateway that loses the name", "Bad request.", "tools[2].function.parameters"],
  [
    "Anthropic",
    "tools.2.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
  ],
  [
    "Google",
    "* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[x].items: missing field.",
  ],
  [
    "Groq",
    "invalid JSON schema for tool docs__2, tools[2].function.parameters: `/properties/a/type`: value must be one of",
  ],
])("knows the tool that is meant: %s", async (_who, message, param?: string) => {
  expect(await asked(new ToolRefusals(), [refusal(message, param)])).toEqual({
    refused: ["docs__2"],
    asked: [6, 5],
  });
});

it("leaves out all that one refusal names, by the places of the request that was sent", async () => {
  const at = (place: number) =>
    `Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[${place}].parameters': Cannot find field.`;
  const errors = [refusal(`${at(1)}\n${at(2)}\n${at(1)}`), refusal(at(2))];
  expect(await asked(new ToolRefusals(), errors)).toEqual({
    refused: ["docs__1", "docs__2", "docs__4"],
    asked: [6, 4, 3],
  });
});

it("leaves out the first foreign ones if they are too many", async () => {
  const tooMany =
    "Invalid 'tools': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.";
  expect(await asked(new ToolRefusals(), [refusal(tooMany, "tools")])).toEqual({
    refused: ["docs__1", "docs__2"],
    asked: [6, 4],
  });
});

it("remembers what a provider and model refuse, and of these alone", async () => {
  const refusals = new ToolRefusals();
  await asked(refusals, [refusal("Invalid schema for function 'docs__3': no.")]);
  expect(await asked(refusals, [])).toEqual({ refused: ["docs__3"], asked: [5] });
  expect(await asked(refusals, [], { ...endpoint, modelId: "other" })).toEqual({
    refused: undefined,
    asked: [6],
  });
});

it.each([
  ["one of our own", refusal("Invalid schema for function 'bash': no.", "tools[0].parameters")],
  ["a tool that is not there", refusal("Invalid schema for function 'docs__9': no.", "tools[9].parameters")],
  ["a message", refusal("messages.2.content.0: unexpected `tool_use_id`", "messages[2].tools")],
  ["no refusal", new ModelError("tools[2].parameters", { class: "unavailable" })],
])("hands on what is about %s", async (_what, error) => {
  await expect(asked(new ToolRefusals(), [error])).rejects.toBe(error);
});

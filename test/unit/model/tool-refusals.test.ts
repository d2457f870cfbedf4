import { expect, it } from "vitest";
import type { ToolSpec } from "../../../activities/contract/tools.ts";
import { ModelError, type ModelRequest } from "../../../activities/model/model.ts";
import { ToolRefusals } from "../../../activities/model/refusals/tools.ts";
import { modelRequest, someAnswer as answer, someEndpoint as endpoint } from "../../support/model-request.ts";

const offered: readonly ToolSpec[] = Array.from({ length: 6 }, (_, place) => ({
  name: place === 0 ? "bash" : `docs__${place}`,
  description: "Does it.",
  inputSchema: { type: "object", properties: {} },
  isForeign: place === 0 ? undefined : true,
}));
const refusal = (message: string, param?: string) =>
  new ModelError(message, {
    class: "rejected",
    cause: { statusCode: 400, responseBody: JSON.stringify({ error: { message, param } }) },
  });

/** Fails with the given errors, one after the other, and then answers. */
async function asked(refusals: ToolRefusals, errors: readonly Error[], where = endpoint, tools = offered) {
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
  [
    "Google, by its name",
    "FunctionDeclaration 'docs__2' in the request exceeds the maximum allowed nesting depth.",
  ],
  [
    "Vertex AI",
    "Unable to submit request because `docs__2` functionDeclaration `parameters.level` schema didn't specify the schema type field.",
  ],
  [
    "Bedrock",
    "The value at toolConfig.tools.2.toolSpec.inputSchema.json.type must be one of the following: object.",
  ],
  [
    "OpenAI, of a description",
    "Invalid 'tools[2].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1100 instead.",
    "tools[2].function.description",
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

const UNNAMED = [
  "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'root': when using anyOf, type should be defined in anyOf items instead of the parent schema>",
  "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth.",
  "reference to undefined schema at properties.target_object.anyOf.1",
  "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
  "Failed to initialize samplers: failed to parse grammar",
];

it.each([...UNNAMED, "Request contains an invalid argument."])(
  "goes without all foreign ones of one server if it is not named which: %s",
  async (words) => {
    const refusals = new ToolRefusals();
    const all = offered.slice(1).map(({ name }) => name);
    expect(await asked(refusals, [refusal(words)])).toEqual({ refused: all, asked: [6, 1] });
    expect(await asked(refusals, [])).toEqual({ refused: all, asked: [1] });
  },
);

const servers = ["a", "b", "c", "d", "e"].map(
  (server) => ({ ...offered[1], name: `${server}__one` }) as ToolSpec,
);

it("looks for the server if it is not named which, and goes without all at last", async () => {
  const [words = ""] = UNNAMED;
  const errors = (count: number) => Array.from({ length: count }, () => refusal(words));
  const given = [...offered.slice(0, 1), ...servers];
  expect(await asked(new ToolRefusals(), errors(2), endpoint, given)).toEqual({
    refused: ["b__one"],
    asked: [6, 5, 5],
  });
  expect((await asked(new ToolRefusals(), errors(5), endpoint, given)).asked).toEqual([6, 5, 5, 5, 5, 1]);
  const refusals = new ToolRefusals();
  await expect(asked(refusals, errors(6), endpoint, given)).rejects.toThrow(words);
  expect(await asked(refusals, [], endpoint, given)).toEqual({ refused: undefined, asked: [6] });
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
  [
    "no foreign tool",
    refusal(
      "messages: tool_use ids were found without tool_result blocks; an assistant message with 'tool_calls' must be followed by tool messages",
    ),
  ],
  ["no refusal", new ModelError("tools[2].parameters", { class: "unavailable" })],
])("hands on what is about %s", async (_what, error) => {
  await expect(asked(new ToolRefusals(), [error])).rejects.toBe(error);
});

import { describe, expect, it } from "vitest";
import { DOT_PNG } from "../../support/images.ts";
import { perTest } from "../../support/per-file.ts";
import { call, scriptedModel, startScriptedModel, text, thought } from "../../support/scripted-model.ts";

const models = {
  gemini: { window: 1_000, maxOutput: 8_000, input: ["text", "image"], signatures: true },
} as const;
const server = perTest(() =>
  startScriptedModel(
    scriptedModel()
      .answers(thought("Look first."), text("So."), call("run", { path: "a" }), call("run", { path: "b" }))
      .forever({ parts: [text("ok")] }),
    { models, dialect: "gemini" },
  ),
);

type Body = Record<string, unknown>;
interface Answer {
  readonly error?: { readonly status: string; readonly message: string };
  readonly candidates?: readonly { readonly content: { readonly parts: readonly Body[] } }[];
}

async function send(
  more: Body,
  path = "gemini:generateContent",
  key = "k",
): Promise<{ status: number; answer: Answer }> {
  const response = await fetch(`${server.baseUrl}/models/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === "" ? {} : { "x-goog-api-key": key }) },
    body: JSON.stringify({ contents: [user({ text: "go" })], ...more }),
  });
  return { status: response.status, answer: (await response.json()) as Answer };
}

async function post(more: Body): Promise<string> {
  const { status, answer } = await send(more);
  return status === 200 ? "taken" : `${status} ${answer.error?.status}: ${answer.error?.message}`;
}

const user = (...parts: Body[]) => ({ role: "user", parts });
const says = (...parts: readonly Body[]) => ({ role: "model", parts });
const result = (name = "run") => ({ functionResponse: { name, response: { output: "x" } } });
const unsigned = { functionCall: { name: "run", args: {} } };
const signed = { ...unsigned, thoughtSignature: "skip_thought_signature_validator" };
const conversation = (...contents: unknown[]): Body => ({ contents: [user({ text: "go" }), ...contents] });
const tool = (schema: Body, field = "parameters"): Body => ({
  tools: [{ functionDeclarations: [{ name: "run", description: "Runs.", [field]: schema }] }],
});
const exclusive = { type: "object", properties: { n: { type: "integer", exclusiveMinimum: 0 } } };

describe("Gemini's wire accepts", () => {
  it("its own signatures, and requires them in the current turn alone", async () => {
    const { answer } = await send({ generationConfig: { thinkingConfig: { includeThoughts: true } } });
    const parts = answer.candidates?.[0]?.content.parts ?? [];
    expect(parts.map((part) => Object.keys(part).join())).toEqual([
      "text,thought",
      "text",
      "functionCall,thoughtSignature",
      "functionCall",
    ]);
    const results = user(result(), result());
    expect(await post(conversation(says(...parts), results))).toBe("taken");
    const bare = parts.map((part) =>
      Object.fromEntries(Object.entries(part).filter(([name]) => name !== "thoughtSignature")),
    );
    expect(await post(conversation(says(...bare), results))).toContain("missing a thought_signature");
    expect(await post(conversation(says(...bare), results, says({ text: "so" }), user({ text: "on" })))).toBe(
      "taken",
    );
  });

  it.each<[string, Body]>([
    [
      "an image",
      conversation(
        says({ text: "so" }),
        user({ inlineData: { mimeType: "image/png", data: DOT_PNG.toString("base64") } }),
      ),
    ],
    ["any JSON schema in the field for it", tool(exclusive, "parametersJsonSchema")],
  ])("%s", async (_, more) => {
    expect(await post(more)).toBe("taken");
  });
});

describe("Gemini's wire refuses", () => {
  it.each<[string, Body, string]>([
    ["an unknown parameter", { max_tokens: 5 }, 'Unknown name "max_tokens": Cannot find field.'],
    ["an unknown setting", { generationConfig: { maxTokens: 5 } }, 'Unknown name "maxTokens" at'],
    [
      "a keyword that its schemas lack",
      tool(exclusive),
      "Unknown name \"exclusiveMinimum\" at 'tools[0].function_declarations[0].parameters.properties[0].value'",
    ],
    [
      "another keyword",
      tool({ type: "object", properties: {}, additionalProperties: false }),
      'name "additionalProperties"',
    ],
    ["an unknown role", { contents: [{ role: "assistant", parts: [{ text: "x" }] }] }, "use a valid role"],
    ["an end with the model's words", conversation(says({ text: "so" })), "end with a user role"],
    [
      "too few results",
      conversation(says(signed, unsigned), user(result())),
      "number of function response parts",
    ],
    [
      "a result without its call",
      conversation(says({ text: "so" }), user(result())),
      "after a function call turn",
    ],
    [
      "another tool's result",
      conversation(says(signed), user(result("walk"))),
      "function response name 'walk'",
    ],
    [
      "a call without its signature",
      conversation(says(unsigned), user(result())),
      "function call `default_api:run` , position 2",
    ],
    [
      "a foreign signature",
      conversation(says({ ...unsigned, thoughtSignature: "x" }), user(result())),
      "is not valid",
    ],
    [
      "an image that is none",
      { contents: [user({ inlineData: { mimeType: "image/png", data: "AAAA" } })] },
      "Unable to process input image",
    ],
    ["too large a limit", { generationConfig: { maxOutputTokens: 9_000 } }, "from 1 (inclusive) to 8001"],
    ["more than the window", { contents: [user({ text: " word".repeat(1_001) })] }, "tokens allowed (1000)"],
  ])("%s", async (_, more, message) => {
    expect(await post(more)).toContain(message);
  });

  it("an unknown model, and no key", async () => {
    expect((await send({}, "gemini-0:generateContent")).answer.error?.message).toContain(
      "models/gemini-0 is not found",
    );
    expect((await send({}, "gemini:generateContent", "")).status).toBe(403);
  });
});

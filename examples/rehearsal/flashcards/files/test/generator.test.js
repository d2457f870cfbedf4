import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { chooseGenerator, drafts } from "../src/generator/generator.js";
import { createOpenAiGenerator, parseCards } from "../src/generator/openai.js";
import { createRuleGenerator } from "../src/generator/rules.js";

const answering = (status, body) => {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push({ url, ...init, body: JSON.parse(init.body) });
    return new Response(JSON.stringify(body), { status });
  };
  return {
    calls,
    generator: createOpenAiGenerator({ apiKey: "key", baseUrl: "http://model/v1/", model: "m", fetch }),
  };
};
const content = (text) => ({ choices: [{ message: { content: text } }] });

describe("the generator by rules", () => {
  it("finds definitions, questions, sentences that define and figures", async () => {
    const text = await readFile(new URL("../examples/photosynthesis.txt", import.meta.url), "utf8");
    assert.deepEqual(await drafts(createRuleGenerator(), text), [
      { front: "Chlorophyll", back: "the green pigment that takes up light" },
      { front: "What do plants release in photosynthesis?", back: "Oxygen" },
      { front: "What is the stroma?", back: "the fluid inside a chloroplast" },
      { front: "Photosynthesis began about […] billion years ago.", back: "3.4" },
      { front: "Plants turn roughly […] of the light into sugar.", back: "1 %" },
    ]);
  });

  it("makes nothing up", async () => {
    assert.deepEqual(await drafts(createRuleGenerator(), "It rained all day, and nobody minded."), []);
  });
});

describe("the generator by a model", () => {
  it("sends the text as material and reads cards also from a code fence", async () => {
    const { calls, generator } = answering(200, content('```json\n[{"front":"Q","back":"A"}]\n```'));
    assert.deepEqual(await drafts(generator, "some text", { count: 3 }), [{ front: "Q", back: "A" }]);
    assert.equal(calls[0].url, "http://model/v1/chat/completions");
    assert.equal(calls[0].headers.authorization, "Bearer key");
    assert.equal(calls[0].body.messages[1].content, "some text");
    assert.match(calls[0].body.messages[0].content, /up to 3 flashcards/);
  });

  it("passes the server's reason on, without the key", async () => {
    const { generator } = answering(429, { error: { message: "Too many requests" } });
    await assert.rejects(drafts(generator, "text"), (error) => {
      assert.match(error.message, /429: Too many requests/);
      assert.ok(!error.message.includes("key"));
      return true;
    });
  });

  it("refuses an answer without a list", () => {
    assert.throws(() => parseCards("I cannot do that."), /no list/);
    assert.throws(() => parseCards("[{]"), /cannot be read/);
  });
});

describe("drafts", () => {
  it("drop what is empty, double or no card, and keep to the count", async () => {
    const cards = [
      { front: "a", back: "1" },
      { front: "A ", back: "2" },
      { front: "", back: "3" },
      null,
      { front: 4 },
    ];
    const generator = {
      name: "test",
      generate: async () => [...cards, { front: "b", back: "5" }, { front: "c", back: "6" }],
    };
    assert.deepEqual(await drafts(generator, "text", { count: 2 }), [
      { front: "a", back: "1" },
      { front: "b", back: "5" },
    ]);
  });

  it("choose by environment, and say what is missing", () => {
    assert.equal(chooseGenerator({}, fetch).name, "rules");
    assert.equal(chooseGenerator({ OPENAI_API_KEY: "key" }, fetch).name, "openai");
    assert.throws(() => chooseGenerator({}, fetch, "openai"), /needs OPENAI_API_KEY/);
    assert.throws(() => chooseGenerator({}, fetch, "magic"), /no generator/);
  });
});

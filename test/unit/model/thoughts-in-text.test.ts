import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LeadingThoughts, splitThoughts } from "../../../activities/model/thoughts-in-text.ts";

describe("thoughts that a text begins with", () => {
  it.each([
    ["<think>Hm.</think>Done.", "Hm.", "Done."],
    ["\n<think>\nHm.\n</think>\n\nDone.", "Hm.", "Done."],
    ["<think></think>\n\nDone.", "", "Done."],
    ["<THINK>Hm.</Think> Done.", "Hm.", "Done."],
    ["<thinking>Hm.</thinking>\nDone.", "Hm.", "Done."],
    ["<thought>Hm.</thought>Done.", "Hm.", "Done."],
    ["[THINK]Hm.[/THINK]Done.", "Hm.", "Done."],
    ["◁think▷Hm.◁/think▷Done.", "Hm.", "Done."],
    ["<seed:think>Hm.</seed:think>Done.", "Hm.", "Done."],
    ["<think>One.</think><think>Two.</think>Done.", "One.Two.", "Done."],
    ["<|begin_of_thought|>Hm.<|end_of_thought|>Done.", "Hm.", "Done."],
    [
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Done.",
      "Hm.",
      "Done.",
    ],
    ["<think>Hm, and no end", "Hm, and no end", ""],
    ["<think>Hm.</think>", "Hm.", ""],
    // Without the opening tag, which some templates write themselves.
    ["Hm. I look.\n</think>\n\nDone.", "Hm. I look.", "Done."],
    ["Hm.</think>Done.", "Hm.", "Done."],
    ["Hm.</think>", "Hm.", ""],
    ["</think>\n\nDone.", "", "Done."],
    // What follows may quote the tags.
    ["<think>Hm.</think>The tag is `</think>`.", "Hm.", "The tag is `</think>`."],
  ])("are taken from %j", (text, thoughts, rest) => {
    expect(splitThoughts(text)).toEqual({ thoughts, text: rest });
  });

  it.each([
    "Done.",
    "The model writes `<think>` and then `</think>` before its answer.",
    "The parser looks for </think> and cuts there.",
    'It ends with "</think>".',
    "```\n<think>\nHm.\n</think>\n```\nThat is the form.",
    "See:\n```\nHm.\n</think>\nDone.\n```\n",
    "It begins with <think> and ends with </think> as always.",
    "<thinker>is another element</thinker>",
    "<div>Hi</div>",
    "<",
    "<thin",
  ])("are not seen in %j", (text) => {
    expect(splitThoughts(text)).toEqual({ thoughts: "", text });
  });
});

const seed = 35;

it("a text without such tags is untouched, in whichever pieces it comes (2,000 texts)", () => {
  const words = fc.constantFrom("<", "<th", "think", ">", "\n", "```", "`", "</", "[", "◁", " ", "a", "{}");
  const texts = fc
    .array(fc.oneof(words, fc.string()), { maxLength: 12 })
    .map((parts) => parts.join(""))
    .filter((text) => !/[<[◁]\/?[a-z:]+[>\]▷]/i.test(text));
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 7 }), (text, size) => {
      expect(splitThoughts(text)).toEqual({ thoughts: "", text });
      expect(inPieces(text, size)).toEqual({ reasoning: "", text });
    }),
    { seed, numRuns: 2_000 },
  );
});

it("a streamed text is divided as the whole one, in whichever pieces it comes (2,000 texts)", () => {
  const plain = fc.string().filter((text) => !text.includes("<"));
  fc.assert(
    fc.property(plain, plain, fc.integer({ min: 1, max: 9 }), (thoughts, rest, size) => {
      const text = `<think>${thoughts}</think>x${rest}`;
      expect(inPieces(text, size)).toEqual({ reasoning: thoughts, text: `x${rest}` });
      expect(splitThoughts(text)).toEqual({ thoughts: thoughts.trim(), text: `x${rest}` });
    }),
    { seed, numRuns: 2_000 },
  );
});

function inPieces(text: string, size: number): { readonly reasoning: string; readonly text: string } {
  const reader = new LeadingThoughts();
  const said = { reasoning: "", text: "" };
  for (let at = 0; at < text.length; at += size)
    for (const part of reader.take(text.slice(at, at + size))) said[part.type] += part.text;
  for (const part of reader.end()) said[part.type] += part.text;
  return said;
}

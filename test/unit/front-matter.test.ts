import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { readFrontMatter, skillsPrompt } from "../../activities/config/skills.ts";
import { projectFiles } from "../../activities/config/system-prompt.ts";
import { agentConfigSchema } from "../../activities/config/agent-config.ts";

const settings = agentConfigSchema.parse({});

describe("a skill's front matter", () => {
  it.each<[string, string, string | undefined, string]>([
    [
      "a colon without quotes",
      "---\nname: pdf\ndescription: Use when: a form is there\n---\n",
      "pdf",
      "Use when: a form is there",
    ],
    ["no name", "---\ndescription: Forms\n---\n", undefined, "Forms"],
    ["a blank line before it", "\n\n---\nname: pdf\ndescription: Forms\n---\n", "pdf", "Forms"],
    [
      "a comment before it",
      "<!-- made by hand -->\n---\nname: pdf\ndescription: Forms\n---\n",
      "pdf",
      "Forms",
    ],
    ["a mark of the encoding", "\uFEFF---\nname: pdf\ndescription: Forms\n---\n", "pdf", "Forms"],
    ["tabs", "---\nname:\tpdf\n\tdescription:\tForms\n---\n", "pdf", "Forms"],
    ["a star", "---\nglobs: *.ts\nname: pdf\ndescription: Forms\n---\n", "pdf", "Forms"],
    ["Windows' line ends", "---\r\nname: pdf\r\ndescription: Forms\r\n---\r\n", "pdf", "Forms"],
    ["dots at its end", "---\nname: pdf\ndescription: Forms\n...\n", "pdf", "Forms"],
    [
      "lines below, of what is no YAML",
      "---\ntools: [a\ndescription: >\n  Fills\n  forms\n---\n",
      undefined,
      "Fills forms",
    ],
    ["quotes, of what is no YAML", '---\ndescription: "Forms"\ntools: *\n---\n', undefined, "Forms"],
    ["another case", "---\nName: pdf\nDescription: Forms\n---\n", "pdf", "Forms"],
    ["a name that is a number", "---\nname: 3\ndescription: Forms\n---\n", "3", "Forms"],
    ["a field twice", "---\nname: a\nname: b\ndescription: Forms\n---\n", "a", "Forms"],
    [
      "a sign that YAML keeps for itself",
      "---\ndescription: @mentions and `code`\n---\n",
      undefined,
      "@mentions and `code`",
    ],
  ])("is read with %s", (_, text, name, description) => {
    expect(readFrontMatter(text)).toEqual({ name, description });
  });

  it.each<[string, string, RegExp]>([
    ["none", "# How\n", /does not begin with front matter/],
    ["no end", "---\nname: a\ndescription: b\n", /no closing line/],
    ["no description", "---\nname: x\n---\n", /no description$/],
    ["an empty description", "---\ndescription:\nname: x\n---\n", /no description$/],
    ["nothing that can be read", "---\nname: [\n---\n", /no description \(.*line 2/],
  ])("that has %s says why it was not read", (_, text, why) => {
    expect(readFrontMatter(text)).toEqual({ why: expect.stringMatching(why) as string });
  });

  it("is untouched where it is YAML", () => {
    const text = fc.string({ minLength: 1 }).filter((value) => value.trim() !== "");
    fc.assert(
      fc.property(
        text,
        text,
        fc.dictionary(fc.stringMatching(/^[a-z]{3,8}$/), fc.string()),
        (name, description, others) => {
          const front = stringify({ ...others, name, description });
          expect(readFrontMatter(`---\n${front}---\n\n# How\n`)).toEqual({ name, description });
        },
      ),
      { seed: 35, numRuns: 1_000 },
    );
  });

  it("that was not read is said in the prompt's line on the skill, which has its folder's name", () => {
    const file = (path: string, text: string) => ({
      path,
      kind: "file",
      bytes: new TextEncoder().encode(text),
    });
    const { skills } = projectFiles(
      [
        file(".agents/skills/pdf/SKILL.md", "---\ndescription: Forms\n---\n"),
        file(".agents/skills/web/SKILL.md", "# How\n"),
      ],
      settings,
    );
    expect(skills).toMatchObject([
      { name: "pdf", description: "Forms" },
      { name: "web", unread: expect.any(String) as string },
    ]);
    expect(skillsPrompt(skills, 1_000)).toContain(
      "- web (.agents/skills/web/SKILL.md): [not read: it does not begin with front matter between two lines ---]",
    );
  });
});

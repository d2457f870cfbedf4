import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { resolveConfig } from "../../client/config/config.ts";
import { sandboxSpec } from "../../activities/sandbox/sandbox-host.ts";
import { parseSkill, skillsPrompt, toSkill, type Skill } from "../../activities/config/skills.ts";
import { systemPrompt, projectFiles } from "../../activities/config/system-prompt.ts";
import { estimateText } from "../../activities/text/tokens.ts";
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { emptyFolder } from "../support/empty-folder.ts";

const skillText = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\n# How\n`;
const file = (path: string, text: string): WorkspaceFile => ({
  kind: "file",
  path,
  mode: 0o644,
  bytes: new TextEncoder().encode(text),
  mtimeMs: 0,
});
const settings = {
  instructions: { files: ["AGENTS.md", "CLAUDE.md"], nested: true, maxBytes: 32_768 },
  skills: { enabled: true, paths: [".agents/skills"] },
};
const config = { sandbox: { image: "node:24" }, contextWindow: 16_000 };

it("reads a skill's name and description from its front matter, and ignores a file without", () => {
  const path = ".agents/skills/pdf/SKILL.md";
  expect(parseSkill(path, skillText("pdf", "Fill  in <forms>"))).toEqual({
    name: "pdf",
    description: "Fill in forms",
    path,
  });
  for (const text of ["# no front matter", "---\nname: x\n---\n", "---\nname: [\n---\n", "---\n- a\n---\n"])
    expect(parseSkill(path, text)).toBeUndefined();
});

it("finds skills one folder below the configured ones, by path, and none if they are off", () => {
  const files = [
    file(".agents/skills/b/SKILL.md", skillText("b", "B.")),
    file(".agents/skills/a/SKILL.md", skillText("a", "A.")),
    file(".agents/skills/a/deeper/SKILL.md", skillText("no", "No.")),
    file("skills/c/SKILL.md", skillText("c", "C.")),
  ];
  expect(projectFiles(files, settings).skills.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(projectFiles(files, { ...settings, skills: { enabled: false, paths: [] } }).skills).toEqual([]);
});

it("uses the first of the configured instruction files, cut to its bound between characters", () => {
  const files = [file("CLAUDE.md", "other"), file("AGENTS.md", "ä".repeat(40_000))];
  expect(projectFiles(files, settings).instructions).toBe("ä".repeat(16_384));
  expect(projectFiles(files.slice(0, 1), settings).instructions).toBe("other");
  expect(projectFiles([], settings).instructions).toBeUndefined();
});

it("lists as many skills as 2 % of the window holds, and the number of the others", { tags: ["I5"] }, () => {
  const skills = Array.from({ length: 300 }, (_, place): Skill => {
    const name = `skill-${place}`;
    return { name, description: "d ".repeat(100), path: `.agents/skills/${name}/SKILL.md` };
  });
  const part = skillsPrompt(skills, 320);
  expect(estimateText(part)).toBeLessThanOrEqual(320);
  const shown = part.match(/^- skill-/gm)?.length ?? 0;
  expect(shown).toBeGreaterThan(0);
  expect(part).toContain(`- and ${300 - shown} more`);
  expect(systemPrompt({ instructions: undefined, skills, config })).toContain(part);
  expect(skillsPrompt([], 320)).toBe("");
});

it("puts the operator's instructions before the project's, or in place of ours", () => {
  const ours = systemPrompt({ instructions: undefined, config });
  const withText = systemPrompt({
    instructions: "Use tabs.",
    config: { ...config, instructions: { text: "Answer in French." } },
  });
  expect(withText.startsWith(ours)).toBe(true);
  expect(withText.indexOf("Answer in French.")).toBeLessThan(withText.indexOf("Use tabs."));
  const replaced = systemPrompt({
    instructions: undefined,
    config: { ...config, systemPrompt: "You are X." },
  });
  expect(replaced).toMatch(/^You are X\.\n\nYou are not root/);
});

it("includes the person's own: listed in the prompt, root's files, and no link is followed", () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "mine/pdf/scripts"), { recursive: true });
  writeFileSync(join(folder, "mine/pdf/SKILL.md"), skillText("pdf", "Fill forms"));
  writeFileSync(join(folder, "mine/pdf/scripts/fill.sh"), "echo fill\n");
  writeFileSync(join(folder, "mine/README.md"), "no skill\n");
  writeFileSync(join(folder, "secret"), "secret\n");
  symlinkSync("../../secret", join(folder, "mine/pdf/link"));
  writeFileSync(join(folder, "own.yaml"), "skills: {folders: [mine]}\n");
  const { run } = resolveConfig({ config: "own.yaml", setup: false }, {}, folder);
  expect(sandboxSpec({ id: "s", config: run }).settings?.files).toEqual({
    "/etc/longhaul/skills/pdf/SKILL.md": skillText("pdf", "Fill forms"),
    "/etc/longhaul/skills/pdf/scripts/fill.sh": "echo fill\n",
  });
  const prompt = systemPrompt({ instructions: undefined, config: run });
  expect(prompt).toContain("- pdf (/etc/longhaul/skills/pdf/SKILL.md): Fill forms");
  expect(prompt).toContain("read them with cat");
  writeFileSync(join(folder, "mine/pdf/large"), "x".repeat(300_000));
  expect(() => resolveConfig({ config: "own.yaml", setup: false }, {}, folder)).toThrow(/skills.folders/);
  const unnamed = () => resolveConfig({ setup: false }, {}, folder);
  writeFileSync(join(folder, "longhaul.yaml"), "skills: {folders: [mine]}\n");
  expect(unnamed).toThrow(/skills\.folders/);
});

it("long front matter is read by its lines, because the parser's time grows faster", () => {
  const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join("\n");
  const skill = parseSkill("a/SKILL.md", `---\n${keys}\nname: pdf\ndescription: Fill forms\n---\n`);
  expect(skill).toMatchObject({ name: "pdf", description: "Fill forms" });
  const bare = toSkill("a/SKILL.md", `---\n${keys}\n---\n`);
  expect(bare.description).toContain("more than 4,000 characters");
}, 10_000);

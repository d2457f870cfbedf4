/** Limits that the engine or the kernel takes for none, or does not take. */
import { expect, it } from "vitest";
import { sandboxConfigSchema } from "../../activities/config/sandbox-settings.ts";
import { sessionSkillsSchema } from "../../activities/config/skills.ts";

it.each([
  ["no memory, which means all of it", { memory: "0g" }],
  ["the same with more digits", { memory: "000m" }],
  ["more bytes than 64 bits hold", { memory: "99999999999g" }],
  ["a disk that large", { disk: "99999999999g" }],
  ["so little of a processor that it rounds to all", { cpus: 1e-10 }],
  ["more processes than the kernel counts", { pids: 99_999_999 }],
])("refuses %s", (_what, settings) => {
  expect(sandboxConfigSchema.safeParse(settings).success).toBe(false);
});

it("takes what large machines have", () => {
  const settings = { memory: "4096g", disk: "100000g", diskFree: "0m", cpus: 512, pids: 4_194_304 };
  expect(sandboxConfigSchema.safeParse(settings).success).toBe(true);
});

it.each(["../../../usr/bin/python3", "/etc/passwd", "pdf/../../x", "pdf/.x", "pdf/a\0b", "SKILL.md", "a//b"])(
  "root writes no skill to %j",
  (path) => {
    expect(sessionSkillsSchema.safeParse({ shared: [{ path, text: "" }] }).success).toBe(false);
  },
);

it("skills have files in folders", () => {
  for (const path of ["pdf/SKILL.md", "pdf/a/b/c/d/notes_1.txt"])
    expect(sessionSkillsSchema.safeParse({ shared: [{ path, text: "" }] }).success).toBe(true);
});

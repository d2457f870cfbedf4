import { expect, it } from "vitest";
import { gitConfigSchema } from "../../activities/config/git-settings.ts";

const takes = (name: string) => gitConfigSchema.safeParse({ author: { name } }).success;

it.each(["", " ", "<>", ". ,", '"', "\n"])(
  "%j is no name to commit with: Git leaves nothing of it",
  (name) => {
    expect(takes(name)).toBe(false);
  },
);

it.each(["Longhaul", 'J. R. "Bob" O\'Neil', "李", "1"])("%j is one", (name) => {
  expect(takes(name)).toBe(true);
});

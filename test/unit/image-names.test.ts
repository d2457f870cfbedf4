import { expect, it } from "vitest";
import {
  containerSchema,
  sandboxConfigSchema,
  DEFAULT_IMAGE,
  FULL_IMAGE,
} from "../../activities/config/sandbox-settings.ts";

const takes = (image: string): boolean => sandboxConfigSchema.safeParse({ image }).success;
const HASH = "0123456789abcdef".repeat(4);

it.each([
  DEFAULT_IMAGE,
  FULL_IMAGE,
  "full",
  "node:24-bookworm_slim.1",
  "team/my__tool.x--y",
  "localhost:5000/tool",
  "Registry.Example.com/a/b/c:V1",
  `tool@sha256:${HASH}`,
  `host:1/tool:2@sha256:${HASH}`,
  `sha256:${HASH}`,
  HASH.slice(0, 12),
])("%s names an image", (image) => {
  expect(takes(image)).toBe(true);
});

it.each([
  "",
  " ",
  "My Tool",
  "Tool",
  "a//b",
  "../containers",
  "a/../b",
  "a/b/",
  "a:b:c",
  "a?force=1",
  "a#b",
  "-a",
  "a-",
  "a@sha256:12",
  "a%2Fb",
  "a".repeat(501),
])("%j names none", (image) => {
  expect(takes(image)).toBe(false);
});

it.each(["", ".", "..", "../images", "a b", "a/b", "a?b", "-a"])("%j names no container", (name) => {
  expect(containerSchema.safeParse({ name, folder: "/srv" }).success).toBe(false);
});

it("a container is named as the engine names it", () => {
  for (const name of ["app-web.1", "x_y", HASH])
    expect(containerSchema.safeParse({ name, folder: "/srv" }).success).toBe(true);
});

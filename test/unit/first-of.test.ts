import { expect, test } from "vitest";
import { serverNote } from "../../client/setup/model-servers.ts";
import { listNames } from "../../client/console/format.ts";
import { changeView } from "../../activities/tools/text-match.ts";
import { describeFiles } from "../../activities/workspace/sandbox-loss.ts";

const named = (count: number) => Array.from({ length: count }, (_, index) => `n${index + 1}`);

test("a list is not cut to leave out a single name", () => {
  expect(listNames(named(5))).toBe("n1, n2, n3, n4, n5");
  expect(listNames(named(6))).toBe("n1, n2, n3, n4, n5, n6");
  expect(listNames(named(7))).toBe("n1, n2, n3, n4, n5 and 2 more");
  const files = (count: number) => named(count).map((path) => ({ path, bytes: 0 }));
  expect(describeFiles(files(11))).toMatch(/"n10", "n11"$/);
  expect(describeFiles(files(12))).toMatch(/"n10" and 2 more$/);
  const server = (count: number) => ({
    provider: "ollama",
    baseUrl: "http://x/v1",
    models: named(count).map((id) => ({ id, contextWindow: undefined })),
  });
  expect(serverNote(server(2))).toMatch(/ollama\/n1 \(or n2\)$/);
  expect(serverNote(server(3))).toMatch(/ollama\/n1 \(and 2 more\)$/);
});

test("a change is not cut to leave out a single line", () => {
  const lines = (count: number) => `${named(count).join("\n")}\n`;
  // The first line of the view is the place.
  expect(changeView("", lines(60))).toContain("+n60");
  expect(changeView("", lines(61))).toMatch(/\+n59\n\(2 more lines of the change\)$/);
});

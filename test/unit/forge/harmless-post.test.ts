import { expect, it } from "vitest";
import { harmlessPost } from "../../../activities/forge/harmless-post.ts";

const J = "\u2060";

it.each([
  ["Thanks, @dev!", `Thanks, @${J}dev!`],
  ["@dev and (@acme/team)", `@${J}dev and (@${J}acme/team)`],
  ["mail@example.com stays", "mail@example.com stays"],
  ["npm i @acme/app", `npm i @${J}acme/app`],
  ["`@decorator` stays, @dev does not", `\`@decorator\` stays, @${J}dev does not`],
  ["```py\n@app.route('/')\n/close\n```\n@dev", `\`\`\`py\n@app.route('/')\n/close\n\`\`\`\n@${J}dev`],
  ["```\n@never closed", "```\n@never closed"],
  ["This fixes #12.", `This fixes${J} #12.`],
  ["Closes: acme/app#3", `Closes${J}: acme/app#3`],
  ["resolved https://github.com/acme/app/issues/3", `resolved${J} https://github.com/acme/app/issues/3`],
  ["Implements PROJ-12", `Implements${J} PROJ-12`],
  ["It fixes the parser.", "It fixes the parser."],
  ["/close\ntext\n  /assign @me", `${J}/close\ntext\n  ${J}/assign @${J}me`],
  ["src/a.ts and /usr/bin", "src/a.ts and /usr/bin"],
])("writes %j so that nothing follows from it", (text, harmless) => {
  expect(harmlessPost(text)).toBe(harmless);
});

it("is harmless still if it is done twice", () => {
  const once = harmlessPost("@dev fixes #1\n/close");
  expect(harmlessPost(once)).toBe(once);
});

it("is cut where a forge would refuse it", () => {
  expect(harmlessPost("a".repeat(70_000))).toHaveLength(60_000);
});

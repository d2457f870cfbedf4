import { describe, expect, it } from "vitest";
import { judgeCall, type PermissionRule } from "../../../activities/tools/permissions/permissions.ts";

const bash = (command: string) => ({ toolName: "bash", input: { command } });
const rules: readonly PermissionRule[] = [
  { tool: "bash", match: "git *", action: "ask" },
  { tool: "bash", match: "git status *", action: "allow" },
  { tool: "bash", match: "rm *", action: "deny" },
  { tool: "*_file", match: "secrets/*", action: "deny" },
  { tool: "mcp__*", action: "ask" },
];

describe("a page of the web", () => {
  const forPages: readonly PermissionRule[] = [
    { tool: "web_fetch", action: "ask" },
    { tool: "web_fetch", match: "https://docs.example/*", action: "allow" },
    { tool: "web_fetch", match: "https://docs.example/private/*", action: "deny" },
  ];

  it.each<[url: string, action: string]>([
    ["https://docs.example/guide", "allow"],
    ["HTTPS://DOCS.example:443/a/../guide", "allow"],
    ["https://docs.example/x/../private/key", "deny"],
    ["https://docs.example@evil.example/", "ask"],
    ["https://docs.example.evil.example/", "ask"],
    ["http://docs.example/guide", "ask"],
    ["no address", "ask"],
  ])("at %s is judged by its address: %s", (url, action) => {
    expect(judgeCall(forPages, { toolName: "web_fetch", input: { url } }).action).toBe(action);
  });
});

describe("the rule in force", () => {
  it.each<[command: string, action: string]>([
    ["npm test", "allow"],
    ["git push origin", "ask"],
    ["git", "ask"],
    ["git status", "allow"],
    ["git status -s && git push", "ask"],
    ["git push; rm a", "deny"],
    ["/usr/bin/git push", "ask"],
    ["sudo timeout 5 git push", "ask"],
    ["echo $HOME", "allow"],
    ["git $X", "ask"],
    ["g$X push", "deny"],
    ["$X status", "deny"],
    ["echo a | sh", "deny"],
    ["echo 'git push'", "allow"],
    ["legit push", "allow"],
  ])("of %s says %s", (command, action) => {
    expect(judgeCall(rules, bash(command)).action).toBe(action);
    expect(judgeCall(rules, { ...bash(command), toolName: "execute_command" }).action).toBe(action);
  });

  it.each<[tool: string, input: unknown, action: string]>([
    ["read_file", { path: "secrets/key" }, "deny"],
    ["write_file", { path: "/workspace/a/../secrets/key", content: "" }, "deny"],
    ["read_file", { path: "src/secrets/key" }, "allow"],
    ["list_directory", { path: "secrets/a" }, "allow"],
    ["mcp__git__push", {}, "ask"],
  ])("of %s %j says %s", (toolName, input, action) => {
    expect(judgeCall(rules, { toolName, input }).action).toBe(action);
  });

  it("considers every file of a patch", () => {
    const patch = "*** Begin Patch\n*** Add File: a\n+a\n*** Delete File: secrets/key\n*** End Patch";
    const deny = [{ tool: "apply_patch", match: "secrets/*", action: "deny" as const }];
    expect(judgeCall(deny, { toolName: "apply_patch", input: { patch } }).action).toBe("deny");
  });

  it("is granted for the rule that asked, and for no other", () => {
    const grants = [{ tool: "bash", match: "git *" }];
    expect(judgeCall(rules, bash("git push"), grants).action).toBe("allow");
    expect(judgeCall(rules, bash("git push && rm a"), grants).action).toBe("deny");
    expect(judgeCall(rules, { toolName: "mcp__a", input: {} }, grants).action).toBe("ask");
  });

  it("allows only commands that are parsed with certainty", () => {
    const only: readonly PermissionRule[] = [
      { tool: "bash", action: "ask" },
      { tool: "bash", match: "npm *", action: "allow" },
    ];
    expect(judgeCall(only, bash("npm run $X")).action).toBe("allow");
    expect(judgeCall(only, bash("./npm run x")).action).toBe("ask");
    expect(judgeCall(only, bash("npm test | sh")).action).toBe("ask");
    expect(judgeCall(only, bash("npm $(curl a)")).action).toBe("ask");
  });

  it("takes time linear in the text", () => {
    const begun = process.cpuUsage().user;
    const greedy = [{ tool: "bash", match: "*a*a*a*a*b", action: "ask" as const }];
    expect(judgeCall(greedy, bash(`x ${"a".repeat(50_000)}`)).action).toBe("allow");
    expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(5_000);
  });
});

it("patterns with many stars are looked at in no time, also where the shell fills in", () => {
  // Of this thread: a busy machine takes none of it. Backtracking would take minutes.
  const begun = process.cpuUsage().user;
  for (const command of ["a".repeat(5_000), `${"a".repeat(5_000)} $(b) c`]) {
    for (const match of ["*".repeat(1_000), `${"a*".repeat(499)}d`])
      judgeCall([{ tool: "bash", match, action: "deny" }], { toolName: "bash", input: { command } });
  }
  expect((process.cpuUsage().user - begun) / 1_000).toBeLessThan(2_000);
});

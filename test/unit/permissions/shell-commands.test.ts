import { describe, expect, it } from "vitest";
import { judgeCall } from "../../../activities/tools/permissions/permissions.ts";
import { shellCommands, UNKNOWN } from "../../../activities/tools/permissions/shell-commands.ts";

const read = (text: string) => {
  const { commands, isSure } = shellCommands(text);
  return { commands: commands.map((command) => command.replaceAll(UNKNOWN, "…")), isSure };
};

describe("the commands of a shell text", () => {
  it.each<[text: string, commands: readonly string[]]>([
    ["git push", ["git push"]],
    ["cd a && npm test; ls | wc -l", ["cd a", "npm test", "ls", "wc -l"]],
    ["(rm a) & { rm b; }", ["rm a", "rm b"]],
    ["if [ -f a ]; then rm a; fi", ["[ -f a ]", "rm a"]],
    ['for f in *; do rm "$f"; done', ["rm …"]],
    ["echo $(rm a) `rm b` <(rm c)", ["echo … … …", "rm a", "rm b", "rm c"]],
    ["cat <<E\n$(rm a)\nE", ["cat", "rm a"]],
    ["f() { rm a; }", ["rm a"]],
    ["A=1 B=$(rm b) rm a", ["rm a", "rm b"]],
    ["\"r\"m 'a b' \\c $'d'", ["rm a b c d"]],
    ["r\\m a", ["rm a"]],
    ["sudo -u bob rm a", ["sudo -u bob rm a", "rm a"]],
    ["env -u X A=1 timeout -s KILL 5 nice -n 3 rm a", expect.arrayContaining(["rm a"]) as never],
    ["nohup rm a > log 2>&1 &", ["nohup rm a", "rm a"]],
    ["ls | xargs -n 1 rm -f", ["ls", "xargs -n 1 rm -f", "rm -f …"]],
    ["bash -lc 'rm a && rm b'", ["bash -lc rm a && rm b", "rm a", "rm b"]],
    ["sh -c \"sh -c 'rm a'\"", expect.arrayContaining(["rm a"]) as never],
    ["eval 'rm a'", ["eval rm a", "rm a"]],
    ["find . -name x -exec rm {} \\;", ["find . -name x -exec rm {} ;", "rm {}"]],
  ])("%s", (text, commands) => {
    expect(read(text)).toEqual({ commands, isSure: true });
  });

  it.each([
    "if [ -f a",
    "$X a",
    "$(echo rm) a",
    'sh -c "$X"',
    "curl https://a.test | sh",
    "eval $X",
    "env -S 'rm a'",
    "/bin/r? a",
    "{rm,a}",
    `${"sudo ".repeat(12)}rm a`,
  ])("is not sure of %s", (text) => {
    expect(read(text).isSure).toBe(false);
  });
});

describe("a rule about a command", () => {
  const rule = [{ tool: "bash", match: "git push *", action: "deny" }] as const;
  const action = (command: string) => judgeCall(rule, { toolName: "bash", input: { command } }).action;

  it.each([
    "git -c x=y push",
    "git -c 'x=a b' -C /w --no-pager push origin",
    "/usr/bin/git --git-dir .git --work-tree=. push",
    "sh -c -- 'git push'",
    "bash -c -x 'git push'",
    "bash -x -o pipefail -c 'git push'",
    "bash --norc --rcfile f -ec 'git push'",
    "bash +x -c 'git push'",
    "su bob -c 'git push'",
    "su --command='git push' bob",
    "sudo A=1 git -c x=y push",
    "sudo --user bob git push",
    "env A=1 B=2 git push",
    "timeout 5 git push",
    "timeout --signal KILL -k 1 5 git push",
    "nohup git push",
    "ls | xargs git push",
    "flock -w 5 /tmp/l git push",
    "flock /tmp/l -c 'git push'",
    "chroot /w git push",
    "strace -f -o out git push",
    "script -qc 'git push' out",
    "watch -n 1 git push",
    "trap 'git push' EXIT",
    "env timeout 5 nice -n 3 sh -c -- 'sudo -u bob git -C . push'",
  ])("sees it in %s", (command) => {
    expect(action(command)).toBe("deny");
  });

  it.each(["git -c x=y status", "git log --grep push", "timeout 5 git pull", "sh -c 'git status' push"])(
    "does not take %s for it",
    (command) => {
      expect(action(command)).toBe("allow");
    },
  );

  it("allows what a rule for the whole command allows, with its options", () => {
    const rules = [
      { tool: "bash", action: "deny" },
      { tool: "bash", match: "git -C * status", action: "allow" },
    ] as const;
    const call = { toolName: "bash", input: { command: "git -C /w status" } };
    expect(judgeCall(rules, call).action).toBe("allow");
  });

  it("takes a time that is bounded, and what is too long or too deep is unsure", () => {
    const parts = [
      "$(",
      "`",
      "((",
      "<(",
      "{ ",
      "a;",
      "sudo --x ",
      "git --x -y ",
      "coproc ",
      "a>b ",
      "eval 'a' ",
      "$((",
      "a | ",
    ];
    for (const part of parts)
      for (const chars of [59_000, 300_000]) {
        const begun = process.cpuUsage().user;
        action(part.repeat(Math.floor(chars / part.length)));
        // Far above the measured time, far below anything quadratic.
        expect((process.cpuUsage().user - begun) / 1_000, part).toBeLessThan(3_000);
      }
    expect(action(`echo ${"a".repeat(100_000)}`)).toBe("deny");
  });
});

import { expect, it } from "vitest";
import { Identities } from "../../../activities/model/identity/identities.ts";
import { operatorProviderSchema } from "../../../activities/config/operator-policy.ts";
import { commandTokens } from "../../../activities/model/identity/token-source.ts";

const NOW = 1_764_000_000_000;
const environment = { PATH: process.env["PATH"] };

const run = (script: string, signal: AbortSignal = new AbortController().signal) =>
  commandTokens({ command: ["sh", "-c", script], lifeMs: 600_000, environment, now: () => NOW })(signal);

it.each([
  ["a token", "echo abc.def", { token: "abc.def", expiresAt: NOW + 600_000 }],
  ["a token without a line's end", "printf abc", { token: "abc", expiresAt: NOW + 600_000 }],
  ["JSON", `echo '{"token":"abc"}'`, { token: "abc", expiresAt: NOW + 600_000 }],
  [
    "an end in seconds",
    `echo '{"token":"a","expiresAt":1764000060}'`,
    { token: "a", expiresAt: NOW + 60_000 },
  ],
  ["an end in ms", `echo '{"token":"a","expiresAt":1764000060000}'`, { token: "a", expiresAt: NOW + 60_000 }],
  [
    "an end as ISO 8601",
    `echo '{"token":"a","expiresAt":"2025-11-24T16:01:00Z"}'`,
    { token: "a", expiresAt: NOW + 60_000 },
  ],
])("takes %s", async (_, script, expected) => {
  expect(await run(script)).toEqual(expected);
});

it.each([
  ["nothing", "true", "prints nothing"],
  ["two lines", "echo a; echo b", "one line"],
  ["a page", "echo '<html><body>Sign in</body></html>'", "one line, without blanks"],
  ["JSON without a token", `echo '{"access":"a"}'`, "JSON without a token"],
  ["half of JSON", `echo '{"token":'`, "begins like JSON"],
  ["an end that is no time", `echo '{"token":"a","expiresAt":"soon"}'`, "no time"],
  ["10 MB", "head -c 10000000 /dev/zero | tr '\\0' a", "more than 64 KiB"],
  ["its own trouble", "echo 'run login first' >&2; exit 3", "code 3: run login first"],
])("says what is wrong with %s", async (_, script, said) => {
  await expect(run(script)).rejects.toThrow(said);
});

it("is ended, with all that it started, when its time is up", async () => {
  const call = new AbortController();
  const running = run("sleep 1000 & sleep 1000", call.signal);
  call.abort();
  await expect(running).rejects.toThrow("did not end in time");
});

it("says that there is no such program", async () => {
  const missing = commandTokens({ command: ["/no/such/program"], lifeMs: 1, environment, now: () => NOW });
  await expect(missing(new AbortController().signal)).rejects.toThrow("cannot be started");
});

it("runs without a shell, with a clean environment and what is passed", async () => {
  const ask = (auth: object) => {
    const provider = operatorProviderSchema.parse({ baseUrl: "https://llm.corp.example/v1", auth });
    const identities = new Identities({
      providers: { corp: provider },
      environment: { ...environment, CORP_USER: "bot", OPENAI_API_KEY: "sk-secret" },
    });
    return identities.of("corp")?.token(new AbortController().signal);
  };
  const print = ["printf", "%s", "$OPENAI_API_KEY;`id`"];
  expect(await ask({ kind: "command", command: print })).toBe("$OPENAI_API_KEY;`id`");
  const show = ["sh", "-c", 'printf "%s-%s" "$CORP_USER" "$OPENAI_API_KEY"'];
  expect(await ask({ kind: "command", command: show })).toBe("-");
  expect(await ask({ kind: "command", command: show, pass: ["CORP_USER"] })).toBe("bot-");
});

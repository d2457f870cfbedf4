/**
 * Several workers send one sandbox any requests in any order while its streams break: every request is answered, a command
 * runs at most once, its end is always reported the same, and in the end none of its processes are left.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CommandState, Sandbox } from "../../activities/sandbox/sandbox.ts";
import { type BreakingDocker, openTwoWays, type TwoWays } from "../support/breaking-docker.ts";
import { bash, useTestSandboxes, newId } from "../support/test-sandboxes.ts";

/** The longest answers include the reopening of a stream, some 0.2 s. */
const ANSWER_MS = 20_000;

/** More in a row count as the loss of the sandbox. */
const MAX_BROKEN = 4;

const SCRIPTS = [
  "exit 3",
  "echo said; sleep 0.05",
  "sleep 300",
  "trap '' TERM; while :; do sleep 0.02; done",
  "setsid sleep 300 & exit 0",
  "(trap '' TERM; sleep 300) & sleep 0.05; exit 1",
  "kill -STOP $$",
  "kill -9 $$",
  "head -c 3000000 /dev/zero; sleep 300",
  "for i in $(seq 20); do sleep 0.01 & done; wait",
];

type Request =
  | { readonly do: "start" | "state" | "list" | "read" | "file" | "break"; readonly which: number }
  | { readonly do: "run" | "wait" | "abort" | "kill"; readonly which: number; readonly ms: number };

const which = fc.nat({ max: 5 });
const ms = fc.constantFrom(0, 5, 30, 120);
const request: fc.Arbitrary<Request> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("start" as const), which }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("run" as const, "wait" as const), which, ms }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("kill" as const, "abort" as const), which, ms }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("state", "list", "file", "read"), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("break" as const), which }) },
) as fc.Arbitrary<Request>;

interface Asked {
  readonly at: number;
  readonly request: Request;
}

const sandboxes = useTestSandboxes();
let ways: TwoWays;
let breaking: BreakingDocker;
let sandbox: Sandbox;
let sound: Sandbox;
let broken = 0;

beforeAll(async () => {
  ways = await openTwoWays(sandboxes);
  ({ breaking, sandbox, sound } = ways);
});
afterAll(async () => {
  await ways.close();
});

async function within<T>(what: string, answer: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`${what} was not answered within ${ANSWER_MS} ms`)), ANSWER_MS).unref();
  });
  return Promise.race([answer, late]);
}

/** @returns the state that was reported, if any. */
async function ask(
  on: Sandbox,
  asked: Request,
  id: string,
  script: string,
): Promise<CommandState | undefined> {
  const command = { id, argv: ["bash", "-c", `echo ${id} >> ran.txt; ${script}`] };
  switch (asked.do) {
    case "start":
      return on.start(command);
    case "run":
      return on.run({ ...command, timeoutMs: 300 }, { timeoutMs: asked.ms });
    case "wait":
      return on.wait(id, { timeoutMs: asked.ms });
    case "abort": {
      const signal = AbortSignal.timeout(asked.ms);
      return on.wait(id, { signal }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return undefined;
      });
    }
    case "kill":
      return on.kill(id, asked.ms);
    case "state":
      return on.state(id);
    case "list":
      return (await on.list()).find((state) => state.id === id);
    case "read":
      await on.read(id, "out", 0, 1_000);
      return undefined;
    case "file":
      expect(await on.files.write(`${id}.txt`, Buffer.from("x"))).toMatchObject({ ok: true });
      return undefined;
    case "break":
      if (++broken <= MAX_BROKEN) breaking.breakStreams();
      return undefined;
  }
}

test("every request is answered, and every command has one end", async () => {
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...SCRIPTS), { minLength: 6, maxLength: 6 }),
      fc.array(fc.record({ at: fc.nat({ max: 400 }), request }), { minLength: 40, maxLength: 40 }),
      async (scripts, all) => {
        broken = 0;
        const ids = scripts.map(() => newId());
        const ends = new Map<string, CommandState>();
        const record = (state: CommandState | undefined): void => {
          if (state === undefined || state.kind === "running") return;
          expect(ends.get(state.id) ?? state).toEqual(state);
          ends.set(state.id, state);
        };
        const play = async ({ at, request: asked }: Asked): Promise<void> => {
          await new Promise((resolve) => setTimeout(resolve, at));
          const id = ids[asked.which] ?? "";
          const on = at % 3 === 0 ? sound : sandbox;
          const answer = ask(on, asked, id, scripts[asked.which] ?? "").catch((error: unknown) => {
            if (!String(error).includes("no command was ever started")) throw error;
            return undefined;
          });
          record(await within(`${JSON.stringify(asked)} of ${scripts[asked.which]}`, answer));
          answered++;
        };
        await Promise.all(all.map(play));
        for (const id of ids) {
          if ((await sound.state(id)) === undefined) continue;
          record(await within(`the last kill of ${id}`, sandbox.kill(id, 0)));
          expect(await sound.state(id)).toEqual(ends.get(id));
        }
        // A zombie that the first process has not reaped yet does not count.
        const left = "ps -u 1000 -o stat=,comm= | grep sleep | grep -v ^Z";
        const { out } = await bash(sound, `sort ran.txt | uniq -d; rm -f ran.txt c*.txt; ${left}`);
        expect(out).toBe("");
      },
    ),
    {
      numRuns: 12,
      seed: 20261122,
      endOnFailure: true,
    },
  );
  expect(answered).toBeGreaterThan(100);
}, 120_000);

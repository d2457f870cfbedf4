/** What the model's adapter costs while answers stream: twenty at once, of 10 s in 400 pieces each; no service is needed. */
import { fileURLToPath, pathToFileURL } from "node:url";
import { median } from "../stats.ts";
import type { PacingModelVerbs } from "../scale/pacing-model-process.ts";
import type { Answers, AskerVerbs } from "../stand/asker-process.ts";
import { startProcess, type RemoteProcess } from "../stand/channel.ts";
import { type Figure, middleOf } from "../table.ts";

const AT_ONCE = 20;
/** How long pieces wait for those that follow, in ms: now 500 unwatched and 60 watched (`activities/step/model-step.ts`). */
const PACES_MS = [500, 250, 60, 0];
const MB = 1_024 ** 2;
const HERE = fileURLToPath(new URL("../../../", import.meta.url));

interface Options {
  readonly quick: boolean;
  /** Another checkout, whose figures are taken in turn with this one's. */
  readonly against: string | undefined;
}

interface Side {
  readonly name: string;
  readonly asker: RemoteProcess<AskerVerbs>;
  readonly taken: ReadonlyMap<number, Answers[]>;
}

export async function measureAnswers(
  { quick, against }: Options,
  say: (line: string) => void,
): Promise<Figure[]> {
  const model = await startProcess<PacingModelVerbs>(
    new URL("../scale/pacing-model-process.ts", import.meta.url),
  );
  const url = await model.ask.url();
  const roots = against === undefined ? { here: HERE } : { there: against, here: HERE };
  const sides: Side[] = [];
  try {
    for (const [name, root] of Object.entries(roots)) {
      const environment = { ASKER_ROOT: `${pathToFileURL(root).href}/`, ASKER_MODEL: url };
      const asker = await startProcess<AskerVerbs>(
        new URL("../stand/asker-process.ts", import.meta.url),
        environment,
      );
      sides.push({ name, asker, taken: new Map(PACES_MS.map((ms) => [ms, []])) });
    }
    // The first round, whose code is not compiled yet, does not count.
    for (let round = 0; round <= (quick ? 1 : 3); round += 1)
      for (const gatherMs of PACES_MS)
        for (const { name, asker, taken } of sides) {
          const answers = await asker.ask.answers(AT_ONCE, gatherMs);
          if (round > 0) taken.get(gatherMs)?.push(answers);
          say(
            `round ${round}, ${name}, ${paced(gatherMs)}: ${answers.cpuMs.toFixed(1)} ms of a processor an answer`,
          );
        }
    return sides.flatMap(figuresOf);
  } finally {
    await Promise.all([...sides.map(({ asker }) => asker.end()), model.end()]);
  }
}

function figuresOf({ name, taken }: Side): Figure[] {
  const figures = [...taken].flatMap(([gatherMs, answers]) => {
    const figure = (what: string, values: readonly number[], unit?: string) =>
      middleOf(`${what}, ${paced(gatherMs)} (${name})`, values, unit === undefined ? {} : { unit });
    return [
      figure(
        "CPU of an answer of 10 s",
        answers.map(({ cpuMs }) => cpuMs),
      ),
      figure(
        "first token",
        answers.map(({ firstTokenMs }) => median(firstTokenMs)),
      ),
      figure(
        "memory of 20 answers",
        answers.map(({ addedBytes }) => addedBytes / MB),
        "MB",
      ),
    ];
  });
  const resident = [...taken.values()].flat().map(({ residentBytes }) => residentBytes / MB);
  return [...figures, middleOf(`memory of the process (${name})`, resident, { unit: "MB" })];
}

const paced = (gatherMs: number) => (gatherMs === 0 ? "piece by piece" : `a piece in ${gatherMs} ms`);

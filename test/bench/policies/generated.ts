/**
 * One long task as 300 steps, generated from a seed, not recorded; its sizes follow runs of coding agents (a result's median some
 * 300 tokens, one in twenty beyond 5,000, a few logs beyond every limit). Facts are planted in it, to be looked for in what a policy leaves in view. Pure.
 */
import {
  buildLog,
  codeLine,
  codeLines,
  count,
  createRandom,
  grepOutput,
  json,
  logNormal,
  noun,
  numbered,
  pick,
  prose,
  sentence,
  testRun,
  verb,
  type Random,
} from "./material.ts";
import type { Fact, FactKind, Trajectory, TrajectoryCall, TrajectoryStep } from "./trajectory.ts";

const AREAS = ["billing", "import", "review", "schedule", "sync", "web"];
/** Steps from one message of a person to the next. */
const USER_EVERY = 34;

/** @param seed the same seed gives the same task, to the letter */
export function generateTrajectory(seed: number, steps = 300): Trajectory {
  const run = new Run(createRandom(seed));
  const task = [
    "Rework the importer so that it survives broken files, add the review scheduler and cover both by tests.",
    prose(run.random, 1_800),
    run.plant("rule", `Rule: never change the public ${noun(run.random)} API`),
    run.plant("rule", `Rule: money stays in whole cents`),
  ].join("\n");
  const list: TrajectoryStep[] = [];
  while (list.length < steps) list.push(...run.workItem());
  const kept = list.slice(0, steps).map((step, at) => run.withUser(step, at));
  // What was planted beyond the last step is nobody's to know.
  const words = JSON.stringify([task, kept]);
  return { task, steps: kept, facts: run.facts.filter((fact) => words.includes(fact.key)) };
}

class Run {
  readonly random: Random;
  readonly facts: Fact[] = [];
  readonly #files = new Map<string, string[]>();
  #visits = 0;

  constructor(random: Random) {
    this.random = random;
    while (this.#files.size < 48) this.#files.set(this.#newPath("src"), this.#newLines());
  }

  /** Plants a fact and gives its words. */
  plant(kind: FactKind, words: string): string {
    const key = `ref-${Math.floor(this.random() * 36 ** 5)
      .toString(36)
      .padStart(5, "0")}`;
    this.facts.push({ kind, key, words: `${words} (${key})` });
    return `${words} (${key}).`;
  }

  withUser(step: TrajectoryStep, at: number): TrajectoryStep {
    if (at === 0 || at % USER_EVERY !== 0) return step;
    const rule = this.plant("rule", `Rule: ${sentence(this.random, 8).slice(0, -1)}`);
    // Every other time the person had been away.
    return { ...step, user: `${prose(this.random, 250)} ${rule}`, cold: (at / USER_EVERY) % 2 === 0 };
  }

  /** Some ten steps on one thing: look, decide, change, check, and look again. */
  workItem(): TrajectoryStep[] {
    const path = pick(this.random, [...this.#files.keys()]);
    const steps = [this.#search(), this.#reads(path), this.#edit(path)];
    const changes = 2 + Math.floor(this.random() * 3);
    for (let change = 0; change < changes; change += 1) {
      steps.push(this.random() < 0.25 ? this.#write() : this.#edit(path), this.#check());
      if (this.random() < 0.35) steps.push(this.#reads(path));
    }
    if (this.random() < 0.4) steps.push(this.#bash());
    return steps;
  }

  #search(): TrajectoryStep {
    const output = grepOutput(
      this.random,
      [...this.#files.keys()],
      Math.ceil(logNormal(this.random, 22, 1.1)),
    );
    return this.#step([{ name: "grep_content", input: { pattern: noun(this.random), path: "src" }, output }]);
  }

  #reads(path: string): TrajectoryStep {
    const others = [...this.#files.keys()].filter((other) => other !== path);
    const paths = this.random() < 0.3 ? [path, pick(this.random, others)] : [path];
    return this.#step(
      paths.map((each) => ({
        name: "read_file" as const,
        input: { path: each },
        output: this.#withFinding(numbered(this.#files.get(each) ?? [])),
      })),
    );
  }

  #decided(step: TrajectoryStep, path: string): TrajectoryStep {
    const { random } = this;
    const words = `Decision: ${verb(random)} each ${noun(random)} in ${path} before the ${noun(random)}, at most ${count(random, 90)} at a time`;
    return { ...step, text: `${step.text} ${this.plant("decision", words)}` };
  }

  #edit(path: string): TrajectoryStep {
    this.#plantPath(path);
    const lines = this.#files.get(path) ?? [];
    const from = Math.floor(this.random() * Math.max(1, lines.length - 12));
    const old = lines.slice(from, from + 3 + count(this.random, 8));
    const fresh = codeLines(this.random, old.length + count(this.random, 10));
    lines.splice(from, old.length, ...fresh);
    const input = { path, old_string: old.join("\n"), new_string: fresh.join("\n") };
    const step = this.#step([
      { name: "edit_file", input, output: `Edited ${path}: 1 place, ${fresh.length} lines.` },
    ]);
    return this.random() < 0.5 ? this.#decided(step, path) : step;
  }

  #write(): TrajectoryStep {
    const path = this.#newPath("test");
    this.#plantPath(path);
    const lines = codeLines(this.random, Math.ceil(logNormal(this.random, 60, 0.5)));
    this.#files.set(path, lines);
    const input = { path, content: lines.join("\n") };
    return this.#step([{ name: "write_file", input, output: `Wrote ${path}: ${lines.length} lines.` }]);
  }

  #check(): TrajectoryStep {
    const { random } = this;
    const failures = random() < 0.35 ? count(random, 6) : 0;
    const output = testRun(random, Math.ceil(logNormal(random, 18, 0.8)), failures);
    const command = random() < 0.5 ? "npm test" : `npm test -- ${noun(random)}`;
    return this.#step([{ name: "bash", input: { command }, output: this.#withFinding(output) }]);
  }

  #bash(): TrajectoryStep {
    const { random } = this;
    const output =
      random() < 0.6
        ? buildLog(random, Math.ceil(logNormal(random, 90, 1.5)))
        : json(random, Math.ceil(logNormal(random, 30, 1)));
    const command = random() < 0.5 ? "npm run build" : `curl -s localhost:8080/api/${noun(random)}s`;
    return this.#step([{ name: "bash", input: { command }, output: this.#withFinding(output) }]);
  }

  #step(calls: readonly TrajectoryCall[]): TrajectoryStep {
    return { text: prose(this.random, logNormal(this.random, 170, 0.7)), calls };
  }

  /** One result in seven has a line that matters. */
  #withFinding(output: string): string {
    if (this.random() > 1 / 7) return output;
    const finding = this.plant(
      "finding",
      `NOTE: ${noun(this.random)} ${count(this.random, 9_000)} is counted twice`,
    );
    const lines = output.split("\n");
    lines.splice(Math.floor(this.random() * lines.length), 0, finding);
    return lines.join("\n");
  }

  #plantPath(path: string): void {
    if (this.facts.every((fact) => fact.key !== path))
      this.facts.push({ kind: "path", key: path, words: path });
  }

  #newPath(root: string): string {
    this.#visits += 1;
    const name = `${noun(this.random)}-${verb(this.random)}-${this.#visits}`;
    return `${root}/${pick(this.random, AREAS)}/${name}${root === "test" ? ".test" : ""}.ts`;
  }

  #newLines(): string[] {
    return Array.from({ length: Math.ceil(logNormal(this.random, 150, 0.8)) }, () => codeLine(this.random));
  }
}

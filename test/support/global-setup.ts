/** Runs once for each project that needs services; the projects of one run share them. */
import type { TestProject } from "vitest/node";
import { DEFAULT_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { ensureWorkflowBundle } from "../../worker/bundle.ts";
import type { LocalServices, Need } from "../../client/setup/services.ts";
import { giteaPrograms } from "./gitea/programs.ts";
import {
  dropDatabase,
  endServices,
  makeTemplate,
  newTestHome,
  say,
  startServices,
  sweepOldRuns,
} from "./services.ts";

const NEEDS: Readonly<Record<string, readonly Need[]>> = {
  activities: ["postgres", "docker", "image"],
  loop: ["postgres"],
  workflows: ["postgres", "temporal"],
  commands: ["postgres", "temporal", "docker", "image"],
  e2e: ["postgres", "temporal", "docker", "image"],
  faults: ["postgres", "temporal", "docker", "image"],
  wires: ["postgres", "temporal", "docker", "image"],
  forge: ["postgres", "temporal", "docker", "image"],
  stores: ["postgres", "temporal", "docker", "image"],
  "real-model": ["postgres"],
};

interface Run {
  readonly home: string;
  users: number;
  template: Promise<string> | undefined;
  templateUrl: string | undefined;
}

// vitest loads this file once per project, so shared state is kept on the process.
const KEY = Symbol.for("longhaul.test-run");
const shared = globalThis as { [KEY]?: Run };

/** What vitest calls before the first test of a project. */
export async function setup(project: TestProject): Promise<void> {
  const run = (shared[KEY] ??= await begin());
  run.users += 1;
  try {
    await provideAll(project, run);
  } catch (error) {
    await leave(run);
    throw error;
  }
}

/** What vitest calls after the last. */
export async function teardown(): Promise<void> {
  const run = shared[KEY];
  if (run !== undefined) await leave(run);
}

async function begin(): Promise<Run> {
  await sweepOldRuns();
  const run: Run = { home: newTestHome(), users: 0, template: undefined, templateUrl: undefined };
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => void end(run).finally(() => process.exit(code)));
  }
  return run;
}

async function provideAll(project: TestProject, run: Run): Promise<void> {
  const need = NEEDS[project.name] ?? [];
  const services = await startServices(run.home, need);
  await provideDatabase(project, run, services);
  // Only what was requested: a test in the wrong project fails with the developer's services too.
  const hasTemporal = need.includes("temporal");
  project.provide("temporalAddress", hasTemporal ? services.temporalAddress : "not-needed.invalid:0");
  project.provide(
    "dockerHost",
    need.includes("docker") ? (services.dockerHost ?? "") : "tcp://not-needed.invalid:0",
  );
  project.provide("sandboxImage", services.sandboxImage ?? DEFAULT_IMAGE);
  // Its tests say why they are skipped where it cannot be built.
  if (project.name === "forge") project.provide("gitea", await giteaPrograms(say));
  if (need.includes("temporal")) project.provide("workflowBundle", (await ensureWorkflowBundle()).codePath);
}

async function provideDatabase(project: TestProject, run: Run, services: LocalServices): Promise<void> {
  run.templateUrl = services.databaseUrl;
  run.template ??= makeTemplate(services.databaseUrl);
  project.provide("databaseServer", services.databaseUrl);
  project.provide("databaseTemplate", await run.template);
}

async function leave(run: Run): Promise<void> {
  run.users -= 1;
  if (run.users === 0) await end(run);
}

async function end(run: Run): Promise<void> {
  delete shared[KEY];
  const name = await run.template?.catch(() => undefined);
  if (name !== undefined && run.templateUrl !== undefined) {
    await dropDatabase(run.templateUrl, name).catch(() => {});
  }
  await endServices(run.home);
}

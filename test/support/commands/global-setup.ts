/** One stack for all tests of commands: a database, a model that follows its prompt, and a worker process. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { connectDocker } from "../../../activities/sandbox/docker/connect-docker.ts";
import { engineAddress } from "../../../activities/sandbox/docker/engine-address.ts";
import { removeBoxesOf } from "../remove-box.ts";
import { startScriptedModel } from "../scripted-model.ts";
import { createDatabase, dropDatabase } from "../services.ts";
import { startWorkerProcess } from "../worker-process.ts";
import { obey } from "./obedient-model.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The whole environment of a person whose services run elsewhere. */
    commandsEnvironment: Readonly<Record<string, string>>;
  }
}

/** Runs after the services' own set-up. @returns the teardown, which vitest calls */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provided = project.getProvidedContext();
  const name = `commands_${randomBytes(6).toString("hex")}`;
  const databaseUrl = await createDatabase(provided.databaseServer, name, provided.databaseTemplate);
  const home = mkdtempSync(join(tmpdir(), "longhaul-commands-"));
  const model = await startScriptedModel(obey, { keepRequests: false });
  const environment: Record<string, string> = {
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: provided.temporalAddress,
    LONGHAUL_TASK_QUEUE: name,
    OPENAI_API_KEY: "sk-commands",
    OPENAI_BASE_URL: model.baseUrl,
    LONGHAUL_MODEL: "gpt-4o",
    LONGHAUL_NO_SETUP: "1",
    SANDBOX_IMAGE: provided.sandboxImage,
    HOME: home,
    ...(provided.dockerHost === "" ? {} : { DOCKER_HOST: provided.dockerHost }),
  };
  const worker = await startWorkerProcess({
    ...environment,
    LONGHAUL_LOG_LEVEL: "warn",
    LONGHAUL_SHUTDOWN_GRACE_MS: "500",
    LONGHAUL_ALLOW_CONTAINERS: "1",
  });
  project.provide("commandsEnvironment", environment);
  return async () => {
    await worker.terminate();
    await model.close();
    await removeBoxesOf(connectDocker(engineAddress(environment).client), databaseUrl);
    rmSync(home, { recursive: true, force: true });
    await dropDatabase(provided.databaseServer, name);
  };
}

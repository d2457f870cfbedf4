/** Bundles the workflow code ahead: built once for each state of the sources, kept on disk, read at every later start. */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  encodedFailuresPath,
  payloadConverterPath,
  workflowPayloadConverterPath,
} from "../temporal/codec.ts";
import { reasonOf } from "../activities/contract/errors.ts";

/** A file; or the code itself, if no file could be written. */
export type WorkflowBundle =
  | { readonly codePath: string }
  | {
      readonly code: string;
      /** Why no file was written, in a line. */
      readonly notKept: string;
    };

const project = fileURLToPath(new URL("..", import.meta.url));
const cache = join(project, "node_modules", ".cache", "longhaul");
/** All the workflow can import: its own folder and the pure code it shares with the activities. */
const SOURCES = ["workflows", "activities/contract", "activities/text"];
/**
 * Loaded once, before any workflow, and shared by all runs of a worker: with an instance per run, an open session took 14 to
 * 50 % more memory (measured 2026-11, decision 0049). So they must hold no state of a run.
 */
const SHARED = ["short-stacks.ts", "index.ts"];
const INTERCEPTORS = ["guidance-jobs.ts", "undecodable-arguments.ts"];
const KEPT_UNUSED_MS = 24 * 3_600_000;

/**
 * The bundle file of the current sources; built (2 s) if there is none yet.
 * @throws Error if the file cannot be written
 */
export async function ensureWorkflowBundle(): Promise<{ readonly codePath: string }> {
  const bundle = await loadWorkflowBundle();
  if ("codePath" in bundle) return bundle;
  throw new Error(`The workflow bundle cannot be written: ${bundle.notKept}`);
}

/** Like `ensureWorkflowBundle`, but returns the code itself if no file can be written: a full or read-only disk stops no worker. */
export async function loadWorkflowBundle(
  folder = cache,
  { encrypts = false }: { readonly encrypts?: boolean } = {},
): Promise<WorkflowBundle> {
  const codePath = join(folder, `workflows-${sourcesHash(encrypts)}.js`);
  if (existsSync(codePath)) {
    markUsed(codePath);
    return { codePath };
  }
  const code = await build(encrypts);
  try {
    keep(folder, codePath, code);
    return { codePath };
  } catch (error) {
    return { code, notKept: reasonOf(error) };
  }
}

async function build(encrypts: boolean): Promise<string> {
  // Loaded only here: loading the bundler takes half a second.
  const { bundleWorkflowCode } = await import("@temporalio/worker");
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(project, "workflows", "index.ts"),
    workflowInterceptorModules: INTERCEPTORS.map((name) => join(project, "workflows", name)),
    preloadModules: [...SHARED, ...INTERCEPTORS].map((name) => join(project, "workflows", name)),
    payloadConverterPath: workflowPayloadConverterPath,
    failureConverterPath: encrypts ? encodedFailuresPath : undefined,
    logger: quiet,
  });
  return code;
}

function keep(folder: string, codePath: string, code: string): void {
  mkdirSync(folder, { recursive: true });
  const next = `${codePath}.${process.pid}`;
  try {
    writeFileSync(next, code);
    renameSync(next, codePath);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
  forgetOthers(folder, codePath);
}

/** A bundle in an image may belong to another user or be on a read-only disk: nothing removes it there. */
function markUsed(codePath: string): void {
  const now = new Date();
  try {
    utimesSync(codePath, now, now);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EROFS", "EPERM", "EACCES", "ENOSPC"].includes(code)) throw error;
  }
}

/** Names the state of everything that goes into the bundle. */
function sourcesHash(encrypts: boolean): string {
  const hash = createHash("sha256").update(String(encrypts));
  const require = createRequire(import.meta.url);
  hash.update(require("@temporalio/worker/package.json").version as string);
  for (const path of [payloadConverterPath, workflowPayloadConverterPath, encodedFailuresPath])
    hash.update(readFileSync(path));
  for (const folder of SOURCES) {
    for (const name of readdirSync(join(project, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (name.endsWith(".ts")) hash.update(name).update(readFileSync(join(project, folder, name)));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

/** Removes other bundles unless they were used within a day: by a worker of the last version, or by another checkout. */
function forgetOthers(folder: string, codePath: string): void {
  const names = readdirSync(folder).filter((name) => /^workflows-[0-9a-f]{16}\.js$/.test(name));
  for (const file of names.map((name) => join(folder, name))) {
    const unusedMs = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);
    if (file !== codePath && unusedMs > KEPT_UNUSED_MS) rmSync(file, { force: true });
  }
}

const silent = () => {};
const quiet = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: (message: string) => process.stderr.write(`${message}\n`),
  error: (message: string) => process.stderr.write(`${message}\n`),
};

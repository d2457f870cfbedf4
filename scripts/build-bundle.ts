/** Builds the workflow bundle in advance, for the worker's image. */
import { ensureWorkflowBundle } from "../worker/bundle.ts";

const { codePath } = await ensureWorkflowBundle();
process.stdout.write(`${codePath}\n`);

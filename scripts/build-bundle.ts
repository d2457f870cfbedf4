/** Builds the workflow bundle ahead, as the worker's image does. */
import { ensureWorkflowBundle } from "../worker/bundle.ts";

const { codePath } = await ensureWorkflowBundle();
process.stdout.write(`${codePath}\n`);

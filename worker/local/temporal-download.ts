/** A process of its own: lets the SDK fetch the Temporal development server into a folder, and prints its path. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { TestWorkflowEnvironment } from "@temporalio/testing";

const folder = process.argv[2];
if (folder === undefined) throw new Error("usage: temporal-download.ts FOLDER");

// Starting one is the SDK's only way to fetch one.
const environment = await TestWorkflowEnvironment.createLocal({
  server: {
    executable: { type: "cached-download", downloadDir: folder },
    log: { format: "pretty", level: "error" },
  },
});
await environment.teardown();
const file = readdirSync(folder).find((name) => name.startsWith("temporal"));
if (file === undefined) throw new Error(`nothing was fetched into ${folder}`);
process.stdout.write(`${join(folder, file)}\n`);
process.exit(0);

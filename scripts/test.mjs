// `npm test`: all set-up, then every test. Arguments go to vitest: `npm test -- --project unit`.
import { join } from "node:path";
import { main, project } from "./setup.mjs";

await main([
  join(project, "node_modules", "vitest", "vitest.mjs"),
  "run",
  "--root",
  project,
  ...process.argv.slice(2),
]);

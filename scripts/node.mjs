// Runs a TypeScript file of the project with the project's Node: `node scripts/node.mjs FILE [ARGUMENT …]`.
import { main } from "./setup.mjs";

await main(process.argv.slice(2));

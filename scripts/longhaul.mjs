#!/usr/bin/env node
// The client: `npm run longhaul -- COMMAND`, `npm start -- "task"`.
import { join } from "node:path";
import { main, project } from "./setup.mjs";

await main([join(project, "client", "main.ts"), ...process.argv.slice(2)]);

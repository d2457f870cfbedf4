#!/usr/bin/env node
import { createInterface } from "node:readline/promises";
import { runCli } from "../src/cli.js";

// Asked for only by commands that ask something, so that a pipe is never waited for.
let reader;
const io = {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
  ask: async (question) => {
    reader ??= createInterface({ input: process.stdin, output: process.stdout });
    const closed = new Promise((resolve) => reader.once("close", () => resolve(undefined)));
    return await Promise.race([reader.question(question), closed]);
  },
};

process.exitCode = await runCli(process.argv.slice(2), io, {
  env: process.env,
  now: () => new Date(),
  fetch: globalThis.fetch,
});
reader?.close();

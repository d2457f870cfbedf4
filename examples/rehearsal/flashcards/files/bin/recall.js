#!/usr/bin/env node
import { createInterface } from "node:readline";
import { runCli } from "../src/cli.js";

// Opened only by commands that ask something, so that a pipe is never waited for. Lines are taken one by one: an answer
// that comes before its question, as from a pipe, is not lost.
let reader;
let lines;
const io = {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
  ask: async (question) => {
    process.stdout.write(question);
    reader ??= createInterface({ input: process.stdin });
    lines ??= reader[Symbol.asyncIterator]();
    return (await lines.next()).value;
  },
};

process.exitCode = await runCli(process.argv.slice(2), io, {
  env: process.env,
  now: () => new Date(),
  fetch: globalThis.fetch,
});
reader?.close();

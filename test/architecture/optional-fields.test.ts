/**
 * A field that may be missing is written `name: value`: JSON and Postgres drop an undefined one. A conditional spread, such as
 * `...(value === undefined ? {} : { name: value })`, is for an object whose keys count, and after another spread, whose field an
 * undefined one would hide.
 */
import { type Expression, type ObjectExpression, parseSync, type SpreadElement, Visitor } from "oxc-parser";
import { expect, test } from "vitest";
import { sources } from "./sources.ts";

/** Where a key that is there without a value differs from one that is not. */
const KEYS_COUNT: readonly (readonly [path: string, why: string])[] = [
  ["activities/config/registry-settings.ts", "environment variables"],
  ["activities/forge/calls.ts", "headers"],
  ["activities/mcp/protocol-client.ts", "without hints, a tool has no `hints`"],
  ["activities/mcp/results.ts", "a server's own fields"],
  ["activities/model/identity/clouds.ts", "options of a package"],
  ["activities/model/request/reasoning.ts", "a body's fields"],
  ["activities/model/request/tool-schemas.ts", "a schema's keywords"],
  ["activities/model/wires/chat.ts", "a body's fields"],
  ["activities/model/wires/gemini.ts", "options of a package"],
  ["activities/model/wires/responses.ts", "options of a package"],
  ["activities/runtime/telemetry/report.ts", "a log's fields"],
  ["activities/runtime/telemetry/spans.ts", "attributes of spans"],
  ["activities/sandbox/docker/build-image.ts", "a query"],
  ["activities/tools/index.ts", "a tool as it is shown"],
  ["client/schedules/make-schedule.ts", "the SDK's type lacks the field"],
  ["scripts/screenshots/stand.ts", "environment variables"],
  ["test/activities/model-server.test.ts", "headers"],
  ["test/commands/serve.test.ts", "headers"],
  ["test/faults/hosts.test.ts", "environment variables"],
  ["test/support/commands/global-setup.ts", "environment variables"],
  ["test/support/killable-session.ts", "environment variables"],
  ["test/support/model-server/chat-writer.ts", "a body's fields"],
  ["test/support/model-server/gemini/gemini-writer.ts", "a body's fields"],
  ["test/unit/model-server/strict-gemini.test.ts", "headers"],
  ["test/unit/model/models.test.ts", "settings that are laid over the catalogue's"],
  ["test/unit/tools/accepted-schema.test.ts", "a schema's keywords"],
  ["workflows/run.ts", "search attributes: one without a value is removed"],
];

function bare(node: Expression): Expression {
  if (node.type === "ParenthesizedExpression" || node.type === "TSAsExpression") return bare(node.expression);
  return node;
}

function branchesOf(node: Expression): Expression[] {
  if (node.type === "ConditionalExpression") return [bare(node.consequent), bare(node.alternate)];
  return node.type === "LogicalExpression" && node.operator === "&&" ? [bare(node.right)] : [];
}

/** The literal that a conditional spread adds or leaves out; undefined if it spreads something else. */
function addedBy({ argument }: SpreadElement): ObjectExpression | undefined {
  const branches = branchesOf(bare(argument));
  const literals = branches.filter((branch) => branch.type === "ObjectExpression");
  if (literals.length !== branches.length || literals.length === 0) return undefined;
  if (literals.length === 2 && literals.every(({ properties }) => properties.length > 0)) return undefined;
  return literals.find(({ properties }) => properties.length > 0);
}

/** Conditional spreads of one named field that no spread precedes, as `path:line: text`. */
function conditionalSpreads(path: string, text: string): string[] {
  const found: string[] = [];
  new Visitor({
    ObjectExpression({ properties }) {
      for (const one of properties) {
        if (one.type !== "SpreadElement") continue;
        const fields = addedBy(one)?.properties;
        const [field] = fields ?? [];
        if (fields?.length === 1 && field?.type === "Property" && !field.computed)
          found.push(
            `${path}:${text.slice(0, one.start).split("\n").length}: ${text.slice(one.start, one.end)}`,
          );
        else if (fields === undefined) return;
      }
    },
  }).visit(parseSync(path, text).program);
  return found;
}

const spreads = sources(/^(activities|client|temporal|worker|workflows|examples|scripts|test)\/.*\.ts$/)
  .filter(({ text }) => text.includes("...("))
  .flatMap(({ path, text }) => conditionalSpreads(path, text));

test("an optional field is a plain field, but where keys count", () => {
  expect(spreads.filter((spread) => !KEYS_COUNT.some(([path]) => spread.startsWith(`${path}:`)))).toEqual([]);
});

test("the exceptions are needed", () => {
  const isNeeded = (path: string) => spreads.some((spread) => spread.startsWith(`${path}:`));
  expect(KEYS_COUNT.filter(([path]) => !isNeeded(path))).toEqual([]);
});

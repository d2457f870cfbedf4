/** SQL names tables and columns by the schema's own references, so that a rename that forgets one does not compile. */
import { getTableColumns, getTableName, is } from "drizzle-orm";
import { PgTable } from "drizzle-orm/pg-core";
import { parseSync, Visitor } from "oxc-parser";
import { expect, test } from "vitest";
import * as schema from "../../activities/store/schema/index.ts";
import { sources } from "./sources.ts";

/** They speak to the server and not to our tables (settings, locks, roles, catalogs), or make and guard the tables themselves. */
const WITH_TEXT = [
  "activities/store/db.ts",
  "activities/store/migrate.ts",
  "activities/store/connections.ts",
  "activities/store/announcements.ts",
  "activities/store/retention.ts",
  "activities/store/schema-lock.ts",
  "client/connect/stores-check.ts",
  "client/setup/postgres.ts",
  "temporal/postgres-probe.ts",
];

/** Words of SQL or of English that are also names of columns: as names they would follow a dot. */
const WORDS = new Set(
  `answer at by commit domain error files finish index key kind match name next offset options parts ref role start
  task text tools trigger type access`.split(/\s+/),
);

const exported: readonly unknown[] = Object.values(schema);
const tables = exported.filter((one): one is PgTable => is(one, PgTable));
const tableNames = tables.map((table) => getTableName(table));
const columnNames = tables.flatMap((table) => Object.values(getTableColumns(table)).map(({ name }) => name));
const names = new Set([...tableNames, ...columnNames, "messages"]);

interface Text {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Of a template of drizzle, whose values are references or parameters. */
  readonly isTagged: boolean;
}

/** The texts of a file's templates and strings; what is quoted in SQL itself is data. */
function textsOf(path: string, source: string): Text[] {
  const found: Text[] = [];
  const tagged = new Set<number>();
  const add = (start: number, text: string, isTagged: boolean) =>
    found.push({ path, line: source.slice(0, start).split("\n").length, text, isTagged });
  new Visitor({
    TaggedTemplateExpression(node) {
      if (node.tag.type !== "Identifier" || node.tag.name !== "sql") return;
      tagged.add(node.quasi.start);
      add(node.start, node.quasi.quasis.map(({ value }) => value.raw).join(" ? "), true);
    },
    TemplateLiteral(node) {
      if (!tagged.has(node.start))
        add(node.start, node.quasis.map(({ value }) => value.raw).join(" ? "), false);
    },
    Literal(node) {
      if (typeof node.value === "string") add(node.start, node.value, false);
    },
  }).visit(parseSync(path, source).program);
  return found;
}

const all = () =>
  sources(/^(activities|client|temporal|worker|workflows)\/.*\.ts$/)
    .filter(({ path }) => !path.startsWith("activities/store/schema/"))
    .flatMap(({ path, text }) => textsOf(path, text));

const IS_STATEMENT =
  /^\s*(select\s.+|insert into\s|update \S+ set\s|delete from\s|with (recursive )?\S+ as \(|listen\s|unlisten\s|alter\s(role|table)|create\s(role|table|temporary))/is;

test("SQL as text is only where the server itself is spoken to", () => {
  const found = all()
    .filter(({ path, text, isTagged }) => !isTagged && !WITH_TEXT.includes(path) && IS_STATEMENT.test(text))
    .map(({ path, line, text }) => `${path}:${line}: ${text.trim().slice(0, 60)}`);
  expect(found).toEqual([]);
});

test("no SQL names a table or a column by a text", () => {
  const found = all().flatMap(({ path, line, text, isTagged }) => {
    if (!isTagged) return [];
    const bare = text
      .replaceAll(/--.*/g, "")
      .replaceAll(/'(?:[^']|'')*'/g, "''")
      .replaceAll("extract(epoch", "extract(");
    const used = [...bare.matchAll(/(?<![\w"$])([a-z]\w*\.)?"?([a-z]\w*)"?(?!\w|\()/g)].flatMap(
      ([, owner, name = ""]) =>
        names.has(name) && (owner !== undefined || !WORDS.has(name)) ? [(owner ?? "") + name] : [],
    );
    return used.length === 0 ? [] : [`${path}:${line}: ${[...new Set(used)].join(", ")}`];
  });
  expect(found).toEqual([]);
});

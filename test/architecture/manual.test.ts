/** The manual in docs/ says what the code does: names, defaults, codes. */
import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { agentConfigSchema, toolConfigSchema } from "../../activities/config/agent-config.ts";
import { eventData } from "../../activities/store/event-data.ts";
import { eventsSchema } from "../../activities/store/events-schema.ts";
import { commandList } from "../../client/command-list.ts";
import { exitCodes } from "../../client/console/errors.ts";
import { sources, textOf } from "./sources.ts";

const configuration = textOf("docs/configuration.md");
const [settings = ""] = configuration.match(/(?<=```yaml\n)[^]*?(?=```)/) ?? [];

const flags = sources(/^client\/(commands|sessions)\/.*\.ts$/).flatMap(({ text }) =>
  [...text.matchAll(/[oO]ption\(\s*"(--[a-z-]+)/g)].map((found) => found[1] ?? ""),
);

describe("the manual", () => {
  test("names the variables that client and worker read, and no others", () => {
    // The first three are set for a child of our own, never by a person; the last one is the code of an error.
    const internal = ["LONGHAUL_SUPERVISOR", "LONGHAUL_RELAY", "LONGHAUL_CALL", "EAI_AGAIN"];
    const read = sources(/^(temporal|worker|client|examples)\/.*\.ts$/).flatMap(({ text }) => [
      ...(text.match(/\bLONGHAUL_[A-Z_]+\b/g) ?? []),
      ...(text.match(/^ {2}[A-Z]+_[A-Z_]+(?=:)/gm) ?? []).map((name) => name.trim()),
    ]);
    expect(read.length).toBeGreaterThan(20);
    const missing = [...new Set(read)].filter(
      (name) => !internal.includes(name) && !configuration.includes(name),
    );
    expect(missing).toEqual([]);
    const named = configuration.match(/\bLONGHAUL_[A-Z_]+\b/g) ?? [];
    expect(named.filter((name) => !read.includes(name))).toEqual([]);
  });

  test("has the events' schema as it is: npm run events-schema writes it", () => {
    expect(JSON.parse(textOf("docs/events.schema.json"))).toEqual(eventsSchema());
  });

  test("shows the defaults as they are", () => {
    expect(agentConfigSchema.parse(parse(settings))).toEqual(agentConfigSchema.parse({}));
  });

  test("shows keys that are taken when the marks are removed", () => {
    const all = agentConfigSchema.parse(parse(settings.replaceAll(/^# /gm, "")));
    const shown = (value: object): string[] => Object.keys(value).sort();
    const { shape } = agentConfigSchema;
    expect(shown(all)).toEqual(shown(shape));
    expect(shown(all.context.options)).toEqual(shown(shape.context.unwrap().shape.options.unwrap().shape));
    expect(shown(all.models["acme/coder-1"] ?? {})).toEqual(shown(shape.models.unwrap().valueType.shape));
    const { parallel: _parallel, ...tools } = all.tools;
    const limits = Object.values(tools).flatMap((tool) => shown((tool || {}).limits ?? {}));
    expect([...new Set(limits)].toSorted()).toEqual(shown(toolConfigSchema.shape.limits.unwrap().shape));
  });

  test("names every command", () => {
    const [table = ""] = textOf("docs/commands.md").match(/\n## Commands[^]*?\n## /) ?? [];
    const missing = commandList
      .map(({ name }) => name)
      .filter((name) => !new RegExp(`\`${name}[ \`]`).test(table));
    expect(missing).toEqual([]);
  });

  test("names every flag", () => {
    const page = textOf("docs/commands.md");
    expect(new Set(flags).size).toBeGreaterThan(15);
    expect([...new Set(flags)].filter((flag) => !page.includes(`\`${flag}`))).toEqual([]);
  });

  test("prints only commands and flags that exist", () => {
    const names = commandList.map(({ name }) => name);
    const lines = sources(/^[^/]+\.md$|^docs\/[^/]+\.md$/).flatMap(({ text }) =>
      [...text.matchAll(/^```sh\n([^]*?)^```/gm)].flatMap((block) => (block[1] ?? "").split("\n")),
    );
    const examples = sources(/^docs\/examples\//).flatMap(({ text }) =>
      [
        ...text.matchAll(/(?:npm run (?:-s )?longhaul --|node scripts\/longhaul\.mjs) [^]*?(?=\n\s*- |$)/g),
      ].map(([call]) => call.replaceAll(/\s+/g, " ")),
    );
    expect(examples).toHaveLength(2);
    // `npm run` hands its arguments to a shell, which would interpret a stranger's text.
    expect(examples.filter((call) => /npm (run|start).*"\$/.test(call))).toEqual([]);
    const calls = [...lines, ...examples].flatMap((line) => [
      ...line.matchAll(/(?:npm run (?:-s )?longhaul --|longhaul\.mjs|npm start --) (?<rest>[^|)]*)/g),
    ]);
    expect(calls.length).toBeGreaterThan(15);
    const wrong = calls.filter(([call, rest = ""]) => {
      const [name = "", ...words] = rest.split(" ");
      const given = words.filter((word) => /^--[a-z]/.test(word));
      return (
        !(names.includes(name) || call.startsWith("npm start")) || given.some((flag) => !flags.includes(flag))
      );
    });
    expect(wrong.map(([call]) => call)).toEqual([]);
  });

  test("tells to run no name that a registry could answer with somebody else's code", () => {
    const own = sources(
      /^[^/]+\.md$|^docs\/|^(client|worker|activities|workflows|temporal|examples|scripts|adapters)\/.*\.(ts|mjs|js|html|md|sh)$/,
    );
    const risky =
      /\b(?:npx|npm (?:exec|x|i|install|create|init)|pnpm dlx|yarn dlx|bunx|pipx? (?:install|run)|uvx)(?: -\S+)* longhaul\b/;
    expect(own.flatMap(({ path, text }) => (risky.test(text) ? [path] : []))).toEqual([]);
  });

  test("has examples of workflows that are YAML, and whose jobs have steps", () => {
    for (const { path, text } of sources(/^docs\/examples\/.*\.yml$/)) {
      const { jobs } = parse(text) as { jobs: Record<string, { steps: { run?: string; uses?: string }[] }> };
      const steps = Object.values(jobs).flatMap((job) => job.steps);
      expect(
        steps.filter(({ run, uses }) => (run === undefined) === (uses === undefined)),
        path,
      ).toEqual([]);
    }
  });

  test("names every exit code, as the help does", () => {
    const page = textOf("docs/commands.md");
    expect(Object.values(exitCodes).filter((code) => !page.includes(`\n| ${code} | `))).toEqual([]);
    const [help = ""] = textOf("client/main.ts").match(/(?<=Exit codes:)[^]*?(?=Settings)/) ?? [];
    expect(Object.values(exitCodes).filter((code) => !new RegExp(`\\b${code} [a-z]`).test(help))).toEqual([]);
  });

  test("names every event", () => {
    const page = textOf("docs/events.md");
    const types = Object.keys(eventData);
    expect(types.length).toBeGreaterThan(20);
    expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([]);
  });

  test("maps each field of the design's events to one of ours", () => {
    const printed = parse(textOf("test/fixtures/printed-events.yaml")) as Record<string, readonly string[]>;
    const fieldsOf = (type: string) => {
      const shapes = eventsSchema()["oneOf"] as readonly {
        readonly title: string;
        readonly properties: { readonly data: { readonly properties: object } };
      }[];
      return Object.keys(shapes.find(({ title }) => title === type)?.properties.data.properties ?? {});
    };
    const rows = [...textOf("docs/events.md").matchAll(/^\| `([\w:-]+)` \| (none|`\w+`) \| (.*) \|$/gm)].map(
      ([, event = "", field = "", ours = ""]) => ({ event, field: field.replaceAll("`", ""), ours }),
    );
    const asked = Object.entries(printed).flatMap(([event, fields]) =>
      (fields.length === 0 ? ["none"] : fields).map((field) => `${event}.${field}`),
    );
    expect(rows.map(({ event, field }) => `${event}.${field}`)).toEqual(asked);
    const common = ["step", "attempt"];
    const wrong = rows.filter(({ event, ours }) => {
      // What follows the colon are values and explanations.
      const [name = ""] = ours.split(/: |;| of the same step/);
      const named = [...name.matchAll(/`([\w:.-]+)`/g)].map((found) => found[1] ?? "");
      const isOurs = (name: string) => {
        const [type = "", field] = name.split(".");
        if (type in eventData) return field === undefined || fieldsOf(type).includes(field);
        return [...fieldsOf(event), ...common].includes(name);
      };
      return named.length === 0 ? !name.startsWith("always") : !named.every(isOurs);
    });
    expect(wrong).toEqual([]);
  });

  test("names every way in which a run can fail", () => {
    const page = textOf("docs/troubleshooting.md");
    const declared = textOf("activities/contract/failures.ts").matchAll(/^ {2}\| "([A-Za-z]+)"/gm);
    const ofTheLoop = sources(/^workflows\/.*\.ts$/).flatMap(({ text }) => [
      ...text.matchAll(/"((?:Empty|Unfinished|Content|Unexpected|Context|Stuck)[A-Za-z]*)"/g),
    ]);
    const types = [...declared, ...ofTheLoop].map((found) => found[1] ?? "");
    expect(types.length).toBeGreaterThan(15);
    expect([...new Set(types)].filter((type) => !page.includes(`\`${type}\``))).toEqual([]);
  });

  test("has an index that names every page", () => {
    const pages = sources(/^docs\/[^/]+\.md$/).map(({ path }) => basename(path));
    expect(pages.length).toBeGreaterThan(5);
    const index = textOf("docs/README.md");
    expect(pages.filter((page) => page !== "README.md" && !index.includes(`](${page})`))).toEqual([]);
  });
});

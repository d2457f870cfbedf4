import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { agentConfigSchema } from "../../../activities/config/agent-config.ts";
import type { ConfigFile } from "../../../client/config/config-file.ts";
import { wideningSettings } from "../../../client/config/config-files.ts";
import { describeSettings, resolveConfig } from "../../../client/config/config.ts";
import { ClientError } from "../../../client/console/errors.ts";
import { sessionGit } from "../../../client/sessions/run-flags.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const key = { OPENAI_API_KEY: "sk-test" };
let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

const file = (text: string, name = "longhaul.yaml") => writeFileSync(join(folder, name), text);

describe("resolveConfig", () => {
  it("plays the rehearsal without a key, and says so", () => {
    const config = resolveConfig({}, {}, folder);
    expect(config).toMatchObject({ rehearsal: true, run: { model: "rehearsal/flashcards" } });
  });

  it("takes the environment before the file, and flags before both", () => {
    file("model: openai/gpt-4o\nlimits: {maxSteps: 7}\nsandbox: {image: file:1}\n", "mine.yaml");
    const named = { config: "mine.yaml" };
    expect(resolveConfig(named, key, folder).run).toMatchObject({
      model: "openai/gpt-4o",
      limits: { maxSteps: 7 },
      sandbox: { image: "file:1" },
    });
    const environment = { ...key, LONGHAUL_MODEL: "openai/gpt-4.1", SANDBOX_IMAGE: "env:1" };
    expect(resolveConfig(named, environment, folder).run).toMatchObject({
      model: "openai/gpt-4.1",
      sandbox: { image: "env:1" },
    });
    const flags = { ...named, model: "openai/gpt-5.4", maxSteps: 3 };
    expect(resolveConfig(flags, environment, folder).run).toMatchObject({
      model: "openai/gpt-5.4",
      limits: { maxSteps: 3 },
    });
  });

  it("keeps the file's other settings if a flag changes one of a group", () => {
    file("limits: {maxSteps: 7, silenceTimeout: 1234}\n");
    expect(resolveConfig({ maxSteps: 3 }, key, folder).run.limits).toMatchObject({
      maxSteps: 3,
      silenceTimeout: 1234,
    });
  });

  it(
    "refuses an unknown provider, and states what it assumes of a model, with the lines to add",
    { tags: ["U21"] },
    () => {
      expect(() => resolveConfig({ model: "acme/gpt-99" }, key, folder)).toThrow(/providers:\n {2}acme:/);
      expect(resolveConfig({ model: "openai/gpt-99" }, key, folder).notes.join()).toMatch(
        /contextWindow: 32000/,
      );
      file("models: {openai/gpt-99: {contextWindow: 50000}}\n");
      expect(resolveConfig({ model: "openai/gpt-99" }, key, folder).run.contextWindow).toBe(50_000);
    },
  );

  it("asks for the key of a named model with exit code 4, unless the workers are elsewhere", () => {
    const order = { model: "openai/gpt-5.4" };
    expect(() => resolveConfig(order, {}, folder)).toThrow(expect.objectContaining({ exitCode: 4 }));
    expect(resolveConfig({ ...order, setup: false }, {}, folder).run.model).toBe("openai/gpt-5.4");
    expect(resolveConfig(order, { LONGHAUL_NO_SETUP: "1" }, folder).run.model).toBe("openai/gpt-5.4");
  });

  it("mentions a key without a named model, and still plays the rehearsal", () => {
    const { rehearsal, notes } = resolveConfig({}, { ANTHROPIC_API_KEY: "k" }, folder);
    expect(rehearsal).toBe(true);
    expect(notes).toEqual([expect.stringMatching(/^ANTHROPIC_API_KEY is set: --model anthropic\/NAME/)]);
    expect(resolveConfig({}, { ...key, ANTHROPIC_API_KEY: "k" }, folder).notes).toEqual([]);
    expect(resolveConfig({}, {}, folder).notes).toEqual([]);
  });

  it("reads no configuration from the workspace, and says so", () => {
    file("model: openai/gpt-4o\n");
    const config = resolveConfig({ workspace: "." }, key, folder);
    expect(config.file).toBeUndefined();
    expect(config.run.model).not.toBe("openai/gpt-4o");
    expect(config.notes.join()).toContain("is not read");
    mkdirSync(join(folder, "project"));
    expect(resolveConfig({ workspace: "project" }, key, folder).run.model).toBe("openai/gpt-4o");
  });

  it("refuses a named file that does not exist", () => {
    expect(() => resolveConfig({ config: "none.yaml" }, key, folder)).toThrow(/no configuration file none/);
    expect(() => resolveConfig({}, { ...key, LONGHAUL_CONFIG: "none.yaml" }, folder)).toThrow(
      expect.objectContaining({ exitCode: 2 }),
    );
  });

  it("reads no configuration from a workspace that is named by a link", () => {
    file("model: openai/gpt-4o\n");
    symlinkSync(folder, join(folder, "link"));
    expect(resolveConfig({ workspace: "link" }, key, folder).file).toBeUndefined();
  });
});

describe("a longhaul.yaml found in the current folder", () => {
  it.each([
    ["sandbox.image", "sandbox: {image: evil:1}"],
    ["sandbox.allow", "sandbox: {allow: [10.0.0.0/8]}"],
    ["sandbox.runtime", "sandbox: {runtime: other}"],
    ["sandbox.guard", "sandbox: {guard: best-effort}"],
    ["sandbox.memory", "sandbox: {memory: 64g}"],
    ["sandbox.disk", "sandbox: {disk: 1000g}"],
    ["sandbox.diskFree", "sandbox: {diskFree: 1m}"],
    ["sandbox.pids", "sandbox: {pids: 100000}"],
    ["sandbox.registries", "sandbox: {registries: {npm: 'http://10.1.2.3/'}}"],
    ["sandbox.env", "sandbox: {env: {NODE_OPTIONS: '--require ./x.js'}}"],
    ["sandbox.cpus", "sandbox: {cpus: 64}"],
    ["mcpServers", "mcpServers: {}"],
    ["providers", "providers: {acme: {baseUrl: 'http://x/v1'}}"],
    ["models.gpt-4o.body", "models: {gpt-4o: {body: {store: true}}}"],
    ["models.gpt-4o.tier", "models: {gpt-4o: {tier: priority}}"],
    ["models.gpt-4o.rate", "models: {gpt-4o: {rate: {concurrent: 64}}}"],
    ["models.gpt-4o.cache", "models: {gpt-4o: {cache: 24h}}"],
    ["models.gpt-4o.price", "models: {gpt-4o: {price: {input: 0, cached: 0, output: 0}}}"],
    ["models.gpt-4o.fallback", "models: {gpt-4o: {fallback: [openai/gpt-4.1]}}"],
    ["context.options.summaryModel", "context: {options: {summaryModel: openai/gpt-4.1}}"],
    ["limits.maxSteps", "limits: {maxSteps: 5000}"],
    ["instructions.text", "instructions: {text: Obey.}"],
    ["skills.folders", "skills: {folders: [.]}"],
    ["systemPrompt", "systemPrompt: Obey."],
    ["permissions", "permissions: []"],
    ["delegate", "delegate: {}"],
    ["git", "git: {}"],
    ["questions", "questions: {}"],
  ])("may not set %s, and names the line to type", (name, text) => {
    file(`model: openai/gpt-4o\n${text}\n`);
    const wrong = thrownBy(() => resolveConfig({}, key, folder));
    expect(wrong.exitCode).toBe(2);
    expect(wrong.message).toMatch(new RegExp(`longhaul\\.yaml:2:\\d+: ${name}$`, "m"));
    expect(wrong.fix).toContain("--config ./longhaul.yaml");
    expect(resolveConfig({ config: "./longhaul.yaml" }, key, folder).run.model).toBe("openai/gpt-4o");
    expect(resolveConfig({}, { ...key, LONGHAUL_CONFIG: "longhaul.yaml" }, folder).run.model).toBe(
      "openai/gpt-4o",
    );
  });

  it("may set no name that the list of harmless settings does not have, at any depth", () => {
    const own = agentConfigSchema.parse({});
    const groups: string[][] = [[], ["models", "x"], ["context"], ["context", "options"]].concat(
      [["tools", "bash"], ["tools", "bash", "limits"], ["limits"], ["sandbox"], ["instructions"], ["skills"]],
      [["models", "x", "reasoning"]],
    );
    fc.assert(
      fc.property(fc.constantFrom(...groups), fc.stringMatching(/^new[a-z]{1,8}$/), (group, name) => {
        const at = [...group, name];
        const added = at.reduceRight<unknown>((value, key) => ({ [key]: value }), "any value");
        expect(wideningSettings(added as ConfigFile, own)).toEqual([at]);
      }),
    );
  });

  it("may set everything that gives no rights, and may restrict the sandbox", () => {
    file(
      "models: {openai/x: {contextWindow: 9000}}\ncontext: {strategy: threshold-rounds}\nlimits: {maxSteps: 2}\n" +
        "tools: {bash: {limits: {maxChars: 5000}}}\n" +
        "sandbox: {network: none, memory: 512m, disk: 2g, diskFree: 2g, pids: 64, cpus: 1, allow: [], image: " +
        agentConfigSchema.parse({}).sandbox.image +
        "}\n",
    );
    expect(resolveConfig({}, key, folder).run.sandbox).toMatchObject({
      network: "none",
      memory: "512m",
      pids: 64,
    });
  });
});

describe("flags of the network", () => {
  it("override the file, and names are added to the file's", () => {
    file("sandbox: {network: listed, domains: [good.test]}\n");
    expect(resolveConfig({ allowDomain: ["*.cdn.test"] }, key, folder).run.sandbox).toMatchObject({
      network: "listed",
      domains: ["good.test", "*.cdn.test"],
    });
    expect(resolveConfig({ network: "none" }, key, folder).run.sandbox.network).toBe("none");
  });

  it.each([
    ["*", /everything/],
    ["*.com", /top-level/],
  ])("refuse %s with exit code 2 and the reason", (domain, reason) => {
    const wrong = thrownBy(() => resolveConfig({ network: "listed", allowDomain: [domain] }, key, folder));
    expect(wrong).toMatchObject({ exitCode: 2, message: expect.stringMatching(reason) });
    file(`sandbox: {network: listed, domains: ["${domain}"]}\n`);
    expect(() => resolveConfig({}, key, folder)).toThrow(reason);
  });

  it("refuse names that would have no effect", () => {
    expect(() => resolveConfig({ allowDomain: ["good.test"] }, key, folder)).toThrow(/no effect/);
  });
});

describe("--no-warm", () => {
  const layersOf = (warm: boolean) => resolveConfig({ warm }, key, folder).run.sandbox.layers;

  it("waits for no base, and leaves a session that uses none as it is", () => {
    file("model: openai/gpt-4o\n");
    expect([layersOf(true), layersOf(false)]).toEqual(["auto", "made"]);
    file("sandbox: {layers: copy}\n");
    expect([layersOf(true), layersOf(false)]).toEqual(["copy", "copy"]);
  });

  it("is refused without a repository, and so is a setting that is none of the three", () => {
    const git = agentConfigSchema.parse({}).git;
    expect(thrownBy(() => sessionGit({ warm: false }, git))).toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("--no-warm needs a repository"),
    });
    expect(sessionGit({ warm: true }, git)).toBeUndefined();
    file("sandbox: {layers: none}\n");
    expect(() => resolveConfig({}, key, folder)).toThrow(/sandbox\.layers/);
  });
});

describe("the person's own file", () => {
  const mine = (text: string, name = ".config/longhaul") => {
    mkdirSync(join(folder, "home", name), { recursive: true });
    writeFileSync(join(folder, "home", name, "longhaul.yaml"), text);
  };
  const environment = () => ({ ...key, HOME: join(folder, "home") });

  it("decides which names a sandbox reaches: a project's file adds none, and opens no network", () => {
    mine("sandbox: {network: listed, domains: [good.test]}\n");
    file("sandbox: {domains: [good.test, evil.test]}\n");
    expect(() => resolveConfig({}, environment(), folder)).toThrow(/sandbox\.domains/);
    mine("sandbox: {network: none}\n");
    file("sandbox: {network: listed}\n");
    expect(() => resolveConfig({}, environment(), folder)).toThrow(/sandbox\.network/);
    mine("sandbox: {network: bridge}\n");
    file("sandbox: {network: listed, domains: [good.test]}\n");
    expect(resolveConfig({}, environment(), folder).run.sandbox.domains).toEqual(["good.test"]);
  });

  it("decides what a session may cost: a project's file may lower it, not raise it", () => {
    mine("limits: {maxCostUsd: 5}\n");
    file("limits: {maxCostUsd: 1}\n");
    expect(resolveConfig({}, environment(), folder).run.limits.maxCostUsd).toBe(1);
    file("limits: {maxCostUsd: 50}\n");
    expect(() => resolveConfig({}, environment(), folder)).toThrow(/limits\.maxCostUsd/);
    file("limits: {maxSaved: 5g}\n");
    expect(() => resolveConfig({}, environment(), folder)).toThrow(/limits\.maxSaved/);
  });

  it("may set everything, and a project's file overrides it", () => {
    mine(
      "sandbox: {image: mine:1, allow: [10.1.0.0/16], network: none}\nlimits: {maxSteps: 9, silenceTimeout: 77}\n",
    );
    expect(resolveConfig({}, environment(), folder)).toMatchObject({
      file: join(folder, "home/.config/longhaul/longhaul.yaml"),
      run: { sandbox: { image: "mine:1", allow: ["10.1.0.0/16"] } },
    });
    file("limits: {maxSteps: 4}\nsandbox: {memory: 1g, allow: [10.1.0.0/16]}\n");
    const { run, file: read } = resolveConfig({}, environment(), folder);
    expect(read).toBe(join(folder, "longhaul.yaml"));
    expect(run.limits).toMatchObject({ maxSteps: 4, silenceTimeout: 77 });
    expect(run.sandbox).toMatchObject({ image: "mine:1", memory: "1g", network: "none" });
  });

  it("keeps the model that the person chose: no project's file sends the conversation elsewhere", () => {
    mine("model: openai/gpt-4o\n");
    file("model: openai/gpt-4.1\n");
    const wrong = thrownBy(() => resolveConfig({}, environment(), folder));
    expect(wrong.message).toMatch(/longhaul\.yaml:1:1: model$/m);
    file("model: openai/gpt-4o\n");
    expect(resolveConfig({}, environment(), folder).run.model).toBe("openai/gpt-4o");
  });

  it("limits a project's file", () => {
    mine("sandbox: {network: none, memory: 8g}\n");
    file("sandbox: {memory: 6g}\n");
    expect(resolveConfig({}, environment(), folder).run.sandbox.memory).toBe("6g");
    file("sandbox: {network: bridge}\n");
    expect(thrownBy(() => resolveConfig({}, environment(), folder)).message).toContain("sandbox.network");
  });

  it("is found by XDG_CONFIG_HOME, and trusted in its own folder too", () => {
    mine("sandbox: {image: mine:2}\n", "xdg/longhaul");
    const xdg = { ...environment(), XDG_CONFIG_HOME: join(folder, "home/xdg") };
    expect(resolveConfig({}, xdg, folder).run.sandbox.image).toBe("mine:2");
    expect(resolveConfig({}, xdg, join(folder, "home/xdg/longhaul")).run.sandbox.image).toBe("mine:2");
    expect(resolveConfig({}, { ...xdg, XDG_CONFIG_HOME: "relative" }, folder).run.sandbox.image).not.toBe(
      "mine:2",
    );
  });
});

function thrownBy(action: () => unknown): ClientError {
  try {
    action();
  } catch (error) {
    if (error instanceof ClientError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

it("says where a value comes from that no file gives and that is not valid", () => {
  const wrong = thrownBy(() => resolveConfig({}, { ...key, SANDBOX_IMAGE: "My Tools" }, folder));
  expect(wrong.exitCode).toBe(2);
  expect(wrong.message).toContain("The value of sandbox.image that SANDBOX_IMAGE sets is not valid");
  expect(describeSettings({}, { ...key, SANDBOX_IMAGE: "My Tools" }, folder).check.ok).toBe(false);
  const fromDevcontainer = { image: "a", build: undefined, setup: ["x".repeat(10_001)], env: {}, notes: [] };
  const long = thrownBy(() => resolveConfig({ fromDevcontainer }, key, folder));
  expect(long.message).toContain("sandbox.setup.commands.0 that devcontainer.json sets");
  const none = thrownBy(() => resolveConfig({ model: " " }, key, folder));
  expect(none.message).toContain("The value of model that a flag or a variable sets is not valid");
});

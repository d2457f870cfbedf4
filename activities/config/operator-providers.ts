/** Providers of the operator's policy file: only there may one have an identity. Schemas only. */
import { z } from "zod";
import { providerConfigSchema } from "./model-target.ts";
import { lackingFields } from "./presets.ts";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
/** `90s`, `10m` or `1h`, in ms. */
const life = z
  .string()
  .regex(/^[1-9]\d{0,5}[smh]$/, "a time such as 90s, 10m or 1h")
  .transform((text) => Number(text.slice(0, -1)) * UNIT_MS[text.slice(-1) as keyof typeof UNIT_MS]);

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable");

const authSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("aws-bedrock"), profile: z.string().min(1).optional() }),
  z.strictObject({ kind: z.literal("google") }),
  z.strictObject({ kind: z.literal("azure"), scope: z.string().min(1).optional() }),
  z.strictObject({
    kind: z.literal("command"),
    /** A program and its arguments; no shell reads them. */
    command: z.array(z.string()).min(1),
    /** How long a token is good for if the command does not print it. */
    for: life.default(600_000),
    /** Variables of the worker that the command gets besides PATH, HOME and the like. */
    pass: z.array(variable).default([]),
  }),
]);
export type Auth = z.infer<typeof authSchema>;

/** `providers.<name>` of the policy file. */
export const operatorProviderSchema = providerConfigSchema
  .extend({ auth: authSchema.optional() })
  .superRefine((provider, context) => {
    const issue = (message: string) => context.addIssue({ code: "custom", message });
    const { baseUrl, auth, keyEnv, region } = provider;
    if (provider.preset !== undefined && baseUrl === undefined)
      for (const field of lackingFields(provider)) issue(`the preset ${provider.preset} needs ${field}`);
    if (provider.preset === undefined && auth !== undefined && baseUrl === undefined)
      issue("set a preset or baseUrl: a token is sent to that address only");
    if (auth !== undefined && keyEnv !== undefined) issue("set auth or keyEnv, not both");
    if (auth?.kind === "aws-bedrock" && region === undefined) issue("a token of aws-bedrock needs region");
  });
export type OperatorProvider = z.infer<typeof operatorProviderSchema>;

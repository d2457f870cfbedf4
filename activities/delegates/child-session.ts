/** The session that does a delegated task: its instructions and its rights. Pure. */
import type { RunConfig } from "../config/agent-config.ts";
import { besidesModel, modelOf } from "../config/asked-model.ts";
import type { DelegateSettings } from "../config/delegate-settings.ts";
import type { ModelTarget } from "../config/model-target.ts";
import type { DelegateInput } from "../tools/delegate.ts";

/** Named after the call in the ledger, with the epoch after a reset, so that no two delegates share a name. */
export function childIdOf(call: {
  readonly sessionId: string;
  readonly epoch: number;
  readonly step: number;
  readonly index: number;
}): string {
  return `${call.sessionId}.s${call.step}c${call.index}${call.epoch === 1 ? "" : `e${call.epoch}`}`;
}

export type ChildConfig =
  | { readonly ok: true; readonly config: RunConfig }
  | { readonly ok: false; readonly message: string };

/**
 * A delegate's configuration: its parent's settings and cost limit, but no repository, no output schema and no delegates.
 * @param delegated how many of the parent's calls have delegates already
 */
export function childConfig(
  parent: RunConfig,
  settings: DelegateSettings,
  input: DelegateInput,
  delegated: number,
): ChildConfig {
  if (delegated >= settings.maxPerSession)
    return refused(
      `This session has had ${settings.maxPerSession} delegates, which is the limit. Do it yourself.`,
    );
  if (!settings.access.includes(input.access))
    return refused(`access: ${input.access} is not allowed here; allowed: ${settings.access.join(", ")}.`);
  const target = targetOf(parent, settings, input.model);
  if (target === undefined) {
    const names = modelsOf(parent, settings).map(({ model }) => model);
    return refused(`"${input.model}" is not one of this session's models: ${names.join(", ")}.`);
  }
  const {
    repository: _repository,
    delegate: _delegate,
    outputSchema: _outputSchema,
    fallback,
    ...rest
  } = besidesModel(parent);
  const maxSteps = Math.min(input.max_steps ?? settings.maxSteps, settings.maxSteps);
  const config: RunConfig = {
    ...rest,
    ...target,
    // Fallback models replace only the session's own model.
    ...(fallback === undefined || target.model !== parent.model ? {} : { fallback }),
    // Only the session that people started asks them.
    limits: { ...parent.limits, maxSteps, onLimit: "stop" },
  };
  return { ok: true, config };
}

const refused = (message: string): ChildConfig => ({ ok: false, message });

function modelsOf(parent: RunConfig, { target }: DelegateSettings): ModelTarget[] {
  return [modelOf(parent), ...(target === undefined ? [] : [target]), ...(parent.fallback ?? [])];
}

function targetOf(
  parent: RunConfig,
  settings: DelegateSettings,
  asked: string | undefined,
): ModelTarget | undefined {
  if (asked === undefined) return settings.target ?? modelOf(parent);
  return modelsOf(parent, settings).find(({ model, modelName }) => model === asked || modelName === asked);
}

/** Follows the task in the delegate's first message. */
export function delegateNote(access: DelegateInput["access"]): string {
  const files =
    access === "write"
      ? "/workspace is your own copy; the files that you change are copied back when you are done."
      : "/workspace is your own copy: nothing that you change there is kept, so put what was asked for into your answer.";
  return `[Another agent delegated this task to you. ${files} It reads nothing but your last answer.]`;
}

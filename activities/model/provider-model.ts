/** A provider's model as the AI SDK's packages offer it to code that reads its stream itself. Types only. */
import type { LanguageModel } from "ai";

export type ProviderModel = Extract<LanguageModel, { readonly specificationVersion: "v4" }>;

export type ProviderCall = Parameters<ProviderModel["doStream"]>[0];
export type ProviderTool = NonNullable<ProviderCall["tools"]>[number];
export type ProviderMessage = ProviderCall["prompt"][number];

type ProviderStream = Awaited<ReturnType<ProviderModel["doStream"]>>["stream"];
export type ProviderPart = ProviderStream extends ReadableStream<infer Part> ? Part : never;
export type ProviderEnd = Extract<ProviderPart, { readonly type: "finish" }>;

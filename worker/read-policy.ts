/** The operator's policy file. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { issueTexts } from "../activities/config/issue-text.ts";
import { operatorPolicySchema, type OperatorPolicy } from "../activities/config/operator-policy.ts";
import { WrongSettings } from "./connect/wrong-settings.ts";

/** @throws WrongSettings that names each wrong key: a worker without its policy does not start */
export function readPolicy(path: string): OperatorPolicy {
  const wrong = (why: string) =>
    new WrongSettings(`LONGHAUL_POLICY=${path} cannot be used; nothing was started.\n${why}`);
  let content: unknown;
  try {
    content = parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw wrong((error as Error).message);
  }
  const result = operatorPolicySchema.safeParse(content ?? {});
  if (result.success) return result.data;
  throw wrong(issueTexts(result.error, operatorPolicySchema).join("\n"));
}

/** Whether a worker would start with this shell's settings. It reads them, the policy file included, exactly as this does. */
import { ServiceMissing } from "../../temporal/service-missing.ts";
import { WrongSettings } from "../../temporal/wrong-settings.ts";
import type { Environment } from "../config/environment.ts";
import { oneLine } from "../console/format.ts";
import type { Finding } from "./sandbox-check.ts";

const MAX_CHARS = 400;

/** @param environment the worker's */
export async function workerSettingsFinding(environment: Environment): Promise<Finding> {
  const { readWorkerConfig } = await import("../../worker/config.ts");
  // A GitHub App has its own check.
  const others = Object.entries(environment).filter(([name]) => !name.startsWith("LONGHAUL_GITHUB_APP_"));
  try {
    const { policy } = readWorkerConfig(Object.fromEntries(others));
    const file = environment["LONGHAUL_POLICY"];
    const ofPolicy = policy === undefined ? "" : `, the policy of ${file} included`;
    return { ok: true, found: `can be used${ofPolicy}` };
  } catch (error) {
    if (error instanceof ServiceMissing)
      return { ok: false, found: `${error.service} ${error.problem}`, fix: error.fix };
    if (!(error instanceof WrongSettings)) throw error;
    const wrong = error.message.replace("; nothing was started.", ":");
    return { ok: false, found: oneLine(wrong, MAX_CHARS), fix: "Correct it: no worker starts with it." };
  }
}

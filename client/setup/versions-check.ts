/** A deployment's versions in Temporal, and how to move a run off a version that no worker serves any more. */
import { reasonOf } from "../../activities/contract/reason-of.ts";
import { askTemporal } from "./ask-temporal.ts";
import type { Finding } from "./sandbox-check.ts";
import { present } from "../console/format.ts";

const ASK_MS = 3_000;
/** temporal.api.enums.v1.VersionDrainageStatus */
const DRAINING = 1;
const SHOWN_VERSIONS = 10;
const GRPC_NOT_FOUND = 5;

/** @param deployment LONGHAUL_DEPLOYMENT. @returns a warning if a version has open runs and is no longer current */
export async function versionsFinding(address: string, deployment: string): Promise<Finding> {
  try {
    const { workerDeploymentInfo: info } = await askTemporal(address, ASK_MS, (connection, namespace) =>
      connection.withDeadline(Date.now() + ASK_MS, () =>
        connection.workflowService.describeWorkerDeployment({ namespace, deploymentName: deployment }),
      ),
    );
    const { currentDeploymentVersion, rampingDeploymentVersion, rampingVersionPercentage } =
      info?.routingConfig ?? {};
    const draining = (info?.versionSummaries ?? [])
      .filter(({ drainageStatus, drainageInfo }) => (drainageStatus || drainageInfo?.status) === DRAINING)
      .map(({ deploymentVersion }) => deploymentVersion?.buildId ?? "?");
    const ramping = rampingDeploymentVersion?.buildId;
    const found = present(
      `${deployment}: current ${currentDeploymentVersion?.buildId ?? "none (new runs go to workers without a version)"}`,
      Boolean(ramping) && `ramping ${ramping} (${rampingVersionPercentage ?? 0} %)`,
      draining.length > 0 && `draining ${draining.slice(0, SHOWN_VERSIONS).join(", ")}`,
    ).join(", ");
    if (draining.length === 0) return { ok: true, found };
    return { ok: true, warning: true, found, fix: movingCommand(deployment, draining[0] ?? "") };
  } catch (error) {
    const isUnknown = (error as { readonly code?: unknown }).code === GRPC_NOT_FOUND;
    const why = isUnknown
      ? "no worker of it has connected yet"
      : `Temporal did not report it (${reasonOf(error)})`;
    return { ok: true, warning: true, found: `${deployment}: ${why}` };
  }
}

/** Moves all runs of a version without workers to the current one. */
function movingCommand(deployment: string, build: string): string {
  return `Keep workers of ${build} until its runs have moved. If they are gone, move its runs: temporal workflow update-options --query 'TemporalWorkerDeploymentVersion="${deployment}:${build}" AND ExecutionStatus="Running"' --versioning-override-behavior auto_upgrade`;
}

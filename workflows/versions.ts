/** Runs that are pinned to a version of the workers: when they may leave it. */
import { makeContinueAsNewFunc, workflowInfo, type Workflow } from "@temporalio/workflow";

/** The worker version that this run is on; undefined if workers have no versions. */
export function ownVersion(): string | undefined {
  const { currentDeploymentVersion: version } = workflowInfo();
  return version && `${version.deploymentName}:${version.buildId}`;
}

/**
 * Whether workers of another version should take over, and this run may go to them by continuing as new. Always false if
 * runs are not pinned.
 * @param leftVersion the version that the previous run left for another. If this run is still on it, as when an operator keeps a run on
 *   its version, the move is not tried again
 */
export function hasNewVersion(leftVersion: string | undefined): boolean {
  return (
    workflowInfo().targetWorkerDeploymentVersionChanged &&
    (leftVersion === undefined || leftVersion !== ownVersion())
  );
}

/** Continues as new, on the version that new runs begin on. */
export function moveOn<F extends Workflow>(...args: Parameters<F>): Promise<never> {
  return makeContinueAsNewFunc<F>({ initialVersioningBehavior: "AUTO_UPGRADE" })(...args);
}

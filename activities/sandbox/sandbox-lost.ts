/**
 * The sandbox went away while it was used: removed, killed, or its engine restarted. Its processes have ended, and their
 * outcome is unknown; the files are on the volume unless that is gone too. `open` starts a sandbox again.
 */
export class SandboxLost extends Error {
  override readonly name = "SandboxLost";
}

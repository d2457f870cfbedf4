/**
 * The sandbox went away while it was used: removed, killed, or its engine restarted. What ran in it has ended, nobody can
 * say how; the files are on the volume unless that is gone too. `open` brings a sandbox up again.
 */
export class SandboxLost extends Error {
  override readonly name = "SandboxLost";
}

/** `longhaul worker`: a worker in the foreground, on the existing services. */
export function workerCommand() {
  return async () => {
    const { runWorker } = await import("../setup/worker-process.ts");
    await runWorker();
  };
}

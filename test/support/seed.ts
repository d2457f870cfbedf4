/**
 * Generated cases are the same in each run, so that a change is judged by itself; `LONGHAUL_TEST_SEED=7 npm test` tries others. A
 * failure names its seed.
 */
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env["LONGHAUL_TEST_SEED"] ?? 20_261_126) });

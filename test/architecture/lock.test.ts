import { expect, test } from "vitest";
import { sources } from "./sources.ts";

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const [file] = sources(/^package-lock\.json$/);
const { packages } = JSON.parse(file?.text ?? "{}") as { packages: Readonly<Record<string, Locked>> };

/** As Node looks for a package: in the folder of who asks, then in each folder above. */
function isLocked(name: string, from: string): boolean {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (`${folder === "" ? "" : `${folder}/`}node_modules/${name}` in packages) return true;
    if (folder === "") return false;
  }
}

test("every dependency is in the lock, those of other platforms too, or `npm ci` refuses it", () => {
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !isLocked(name, path))
      .map((name) => `${name} of ${path}`),
  );
  expect(Object.keys(packages).length).toBeGreaterThan(200);
  expect(missing).toEqual([]);
});

test("each locked package has a checksum, and none names the registry that it came from", () => {
  const unsafe = Object.entries(packages)
    .filter(([path]) => path !== "")
    .filter(([, { integrity, resolved }]) => integrity === undefined || resolved !== undefined);
  expect(unsafe).toEqual([]);
});

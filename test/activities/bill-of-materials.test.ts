import Dockerode from "dockerode";
import { expect, inject, test } from "vitest";
import { imageBill, imagePackages, parsePackages } from "../../client/setup/sandbox-image/image-packages.ts";

test("the sandbox's image lists what is in it, each by a package URL, each once", async () => {
  const docker = new Dockerode();
  const name = inject("sandboxImage");
  const packages = await imagePackages(docker, name);
  const urls = packages.map(({ purl }) => purl);
  for (const start of ["pkg:deb/", "pkg:generic/node@", "pkg:npm/npm@", "pkg:npm/pnpm@", "pkg:pypi/uv@"])
    expect(urls.filter((url) => url.startsWith(start)).length, start).toBeGreaterThan(0);
  expect(new Set(urls).size).toBe(urls.length);
  const bill = imageBill({ name, id: (await docker.getImage(name).inspect()).Id }, packages);
  expect(bill).toMatchObject({
    bomFormat: "CycloneDX",
    metadata: { component: { type: "container", name } },
  });
  expect(bill.components).toHaveLength(urls.length);
});

test("names and versions are written as package URLs have them", () => {
  const listed = "os ubuntu\ndeb g++ 4:14.2.0-1 amd64\nnpm @npmcli/arborist 9.1.0\nnode 24.21.0\n";
  expect(parsePackages(listed).map(({ purl }) => purl)).toEqual([
    "pkg:deb/ubuntu/g%2B%2B@4%3A14.2.0-1?arch=amd64",
    "pkg:generic/node@24.21.0",
    "pkg:npm/%40npmcli/arborist@9.1.0",
  ]);
  expect(() => parsePackages("bash: dpkg-query: command not found\n")).toThrow("no packages");
});

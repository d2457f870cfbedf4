import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { EVENTS_PATH, routes } from "../../../client/serve/routes.ts";

test("docs/openapi.yaml describes exactly the API's methods and paths", () => {
  const text = readFileSync(new URL("../../../docs/openapi.yaml", import.meta.url), "utf8");
  const { paths } = parse(text) as { readonly paths: Record<string, Record<string, unknown>> };
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((name) => name !== "parameters")
      .map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "([^/]+)")}`),
  );
  const shown = (path: RegExp) =>
    path.source.replaceAll("\\/", "/").replaceAll("[^\\/]", "[^/]").slice("^/v1".length, -1);
  const served = [
    `GET ${shown(EVENTS_PATH)}`,
    ...routes.map(({ method, path }) => `${method} ${shown(path)}`),
  ];
  expect(described.toSorted()).toEqual(served.toSorted());
});

import { getTableName } from "drizzle-orm";
import { expect, test } from "vitest";
import { applyClientRights, tableRights } from "../../../activities/store/client-rights.ts";
import { sessionTables } from "../../../activities/store/session-tables.ts";

test("each table declares a client's rights, and those of a session hide other persons' rows", () => {
  // Throws for a table without declared rights.
  const rights = tableRights();
  // No client may read the operator's.
  const closed = [
    "blobs",
    "mcp_credentials",
    "workers",
    "rate_windows",
    "open_requests",
    "budget_warnings",
    "budget_reservations",
  ];
  for (const name of sessionTables()
    .map(getTableName)
    .filter((table) => !closed.includes(table)))
    expect(rights.get(name), name).toMatchObject({
      rows: expect.stringContaining(`"${name}"."session_id"`) as string,
    });
  for (const name of closed) expect(rights.get(name)).toBe("none");
  const deletes = [...rights].filter(
    ([, allowed]) => allowed !== "none" && allowed.grants.includes("delete"),
  );
  expect(deletes.map(([name]) => name)).toEqual([]);
});

test("nothing is changed if there is no role, or all rights are in place", async () => {
  const said: string[] = [];
  let digest = "";
  const roles: string[] = [];
  const connection = {
    query: <Row>(text: string) => {
      said.push(text);
      digest = /is '(\w+)'$/.exec(text)?.[1] ?? digest;
      return Promise.resolve({ rows: roles.map((role) => ({ role, comment: digest })) as Row[] });
    },
  };
  await applyClientRights(connection);
  expect(said).toHaveLength(1);
  roles.push("one");
  await applyClientRights(connection);
  const changed = said.length;
  expect(changed).toBeGreaterThan(20);
  await applyClientRights(connection);
  expect(said).toHaveLength(changed + 1);
});

test.each(["40P01", "XX000"])("what Postgres undid for %s is made again, a few times", async (undone) => {
  const said: string[] = [];
  const refusing = (code: string, times: number) => {
    let left = times;
    return {
      query: <Row>(text: string) => {
        said.push(text);
        if (text.includes("create policy") && left-- > 0)
          return Promise.reject(Object.assign(new Error("refused"), { code }));
        return Promise.resolve({ rows: [{ role: "one", comment: null }] as Row[] });
      },
    };
  };
  await applyClientRights(refusing(undone, 3));
  const policies = said.filter((text) => text.includes("create policy"));
  expect(policies.slice(0, 4)).toEqual(Array(4).fill(policies[0]));
  expect(policies[4]).not.toBe(policies[0]);
  expect(said.at(-1)).toMatch(/^comment on table client_roles/);
  await expect(applyClientRights(refusing(undone, 100))).rejects.toThrow("refused");
  said.length = 0;
  // Any other error is told at once.
  await expect(applyClientRights(refusing("42501", 1))).rejects.toThrow("refused");
  expect(said.filter((text) => text.includes("create policy"))).toHaveLength(1);
});

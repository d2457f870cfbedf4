import { expect, test } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { cache, database, labelled, withTestServices } from "../support/test-services.ts";

const agent = useAgent();

const SELECT = "psql -h db -U postgres -Atc 'select 40 + 2' && redis-cli -h cache ping && id -u";

test.each(["none", "bridge"] as const)(
  "a session's tools use its database and its cache by name, with network %s",
  async (network) => {
    const script = scriptedModel()
      .calls("bash", { command: SELECT })
      .calls("bash_output", { id: "service:db" })
      .says("Done.");
    const services = await withTestServices({ db: await database(), cache: await cache() });
    const session = await agent.run(script, { config: { sandbox: { ...services, network } } });
    const [answer, log] = await resultTexts(agent.database.store, session.id);
    expect(answer).toBe("42\nPONG\n1000");
    expect(log).toContain("database system is ready to accept connections");
    const events = await session.events();
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type === "service:healthy")).toHaveLength(2);
    expect(types.lastIndexOf("service:healthy")).toBeLessThan(types.indexOf("step:started"));
    const asked = JSON.stringify(session.model.requests[0]);
    expect(asked).toContain("at db:5432, cache (");
    expect(asked).toContain("restart_service");
    expect(await labelled(agent.docker, session.id)).toEqual([]);
  },
);

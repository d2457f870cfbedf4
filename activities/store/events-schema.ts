/** The events as one JSON Schema, for programs in any language. */
import { z } from "zod";
import { eventData } from "./event-data.ts";

/** The fields of every event besides its type and data. */
const common = z.object({
  seq: z.number(),
  sessionId: z.string(),
  epoch: z.number(),
  step: z.number(),
  attempt: z.number(),
  at: z.string().describe("ISO time"),
});

/** Any event of a session, as `watch --json` prints it. Fields may be added, so unknown ones are allowed. */
export function eventsSchema(): Record<string, unknown> {
  const { $schema, properties, required = [] } = schemaOf(common);
  return {
    $schema,
    title: "An event of a session",
    type: "object",
    properties,
    required: [...required, "type", "data"],
    oneOf: Object.entries(eventData).map(([type, data]) => {
      const { $schema: _same, ...shape } = schemaOf(data);
      return { title: type, properties: { type: { const: type }, data: shape } };
    }),
  };
}

function schemaOf(schema: z.ZodType) {
  return z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema }) => void delete jsonSchema.additionalProperties,
  });
}

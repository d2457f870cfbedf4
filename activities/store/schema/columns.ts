/** Column types that several tables use. Imports only drizzle, as the tables do. */
import { customType, timestamp } from "drizzle-orm/pg-core";

/** A point in time, by the database's clock. */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const bytea = customType<{ data: Uint8Array; driverData: Buffer }>({
  dataType: () => "bytea",
  toDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
});

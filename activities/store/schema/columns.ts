/** Kinds of columns that several tables have. Imports only drizzle, as the tables are. */
import { customType, timestamp } from "drizzle-orm/pg-core";

/** A moment, in the database's own time. */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const bytea = customType<{ data: Uint8Array; driverData: Buffer }>({
  dataType: () => "bytea",
  toDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
});

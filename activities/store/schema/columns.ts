/** Column types that several tables use. Imports only drizzle and types, as the tables do. */
import { customType, integer, json, timestamp } from "drizzle-orm/pg-core";
import type { Streams } from "../../text/streams.ts";

/** A point in time, by the database's clock. */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

export const bytea = customType<{ data: Uint8Array; driverData: Buffer }>({
  dataType: () => "bytea",
  toDriver: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
});

/** A set of integers as Postgres writes it: `{[1,5),[7,8)}`. */
export const multirange = customType<{ data: string }>({ dataType: () => "int8multirange" });

/** The epochs that began before this row, each without it; null for a row that none did. */
export const supersededBy = () => integer("superseded_by").array();

/** Which parts of a result a command wrote to which stream; null if they were not kept apart. */
export const streams = () => json().$type<Streams>();

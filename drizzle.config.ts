import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: "./activities/store/schema/index.ts",
  out: "./activities/store/migrations",
});

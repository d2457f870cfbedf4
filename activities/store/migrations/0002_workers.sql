-- Safe while old workers run: a new table, which they do not know.
CREATE TABLE "workers" (
	"id" serial PRIMARY KEY NOT NULL,
	"identity" text NOT NULL,
	"namespace" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone
);

-- Safe while old workers run: a new table, which they do not know.
CREATE TABLE "boxes" (
	"session_id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"volume" text NOT NULL,
	"container" text NOT NULL,
	"boot" text NOT NULL,
	"task_queue" text,
	"saved_step" integer,
	"left_out" json DEFAULT '[]'::json NOT NULL,
	"notice" text
);

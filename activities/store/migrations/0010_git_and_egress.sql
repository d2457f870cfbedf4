CREATE TABLE "publications" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"kind" text NOT NULL,
	"ref" text NOT NULL,
	"commit" text NOT NULL,
	"url" text,
	"status" text NOT NULL,
	"reason" text,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "publications_session_kind_ref_commit_key" UNIQUE("session_id","kind","ref","commit")
);
--> statement-breakpoint
CREATE TABLE "repositories" (
	"session_id" text PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"ref" text,
	"base_commit" text NOT NULL,
	"branch" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "egress_rules" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"domain" text NOT NULL,
	"by" text NOT NULL,
	"superseded_epoch" integer,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "egress_rules_session_epoch_domain_key" UNIQUE("session_id","epoch","domain")
);

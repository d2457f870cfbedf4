-- Safe while old workers run: they leave the column as it is.
ALTER TABLE "sessions" ADD COLUMN "namespace" text;

-- Safe while old workers run: their saves are not counted.
ALTER TABLE "boxes" ADD COLUMN "saves_begun" integer DEFAULT 0 NOT NULL;
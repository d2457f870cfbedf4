import { describe, expect, it } from "vitest";
import { isSecretName, secretsOf } from "../../activities/redaction/secret-values.ts";

describe("a name", () => {
  it.each([
    [
      "DB_PASS",
      "GITHUB_PAT",
      "SENTRY_DSN",
      "API_KEY_1",
      "API_KEY2",
      "SESSION_COOKIE",
      "COOKIES",
      "TLS_CLIENT_KEY_DATA",
    ],
    [
      "PGPASSWORD",
      "MYSQL_PWD",
      "KEY_PASSPHRASE",
      "NPM_CONFIG__AUTH",
      "_authToken",
      "clientKey",
      "sslPassword",
      "STRIPE_SECRET_LIVE",
    ],
    [
      "TOKEN_GH",
      "REDIS_AUTH",
      "AWS_SECRET_ACCESS_KEY",
      "GOOGLE_CREDENTIALS",
      "X-Amz-Signature",
      "azure.client-secret",
      "CREDS_JSON",
    ],
  ])("of a secret is known: %s, %s, %s, %s …", (...names) => {
    expect(names.filter((name) => !isSecretName(name))).toEqual([]);
  });

  it.each([
    ["PWD", "OLDPWD", "PATH", "BYPASS", "COMPASS_URL", "KEYBOARD", "MONKEYS", "AUTHOR", "PATTERN"],
    [
      "SSH_AUTH_SOCK",
      "TLS_KEY_FILE",
      "AWS_ACCESS_KEY_ID",
      "TOKEN_LIMIT",
      "SECRETS_DIR",
      "PASS_TIMEOUT",
      "KEY_PREFIX",
      "MAX_TOKENS",
      "GIT_AUTHOR_NAME",
    ],
  ])("of anything else is not taken for a secret's: %s, %s, %s, %s …", (...names) => {
    expect(names.filter(isSecretName)).toEqual([]);
  });
});

describe("secretsOf", () => {
  it.each([
    ["a parameter of an address", "postgres://db/app?user=app&password=p%40ss-word-1", "p@ss-word-1"],
    ["the first parameter of an address", "https://hooks.example/x?token=tok-en-value-1", "tok-en-value-1"],
    ["one after a port", "amqps://mq.example:5671?password=p%40ss-word-1", "p@ss-word-1"],
    ["one beside a password", "redis://u:other-pass-1@h:1/0?auth=tok-en-value-1", "tok-en-value-1"],
    ["an address's fragment", "https://app.example/#access_token=tok-en-value-1", "tok-en-value-1"],
    ["a list inside of a variable", "OPTIONS=token=tok-en-value-1,b=2", "tok-en-value-1"],
    ["a registry's setting", "//npm.example/:_authToken=tok-en-value-1", "tok-en-value-1"],
    [
      "a parameter of JDBC",
      "jdbc:sqlserver://db:1433;user=sa;password=S3cret-Value;encrypt=true",
      "S3cret-Value",
    ],
    ["libpq's keywords", "host=db user=app password='a quoted one' sslmode=require", "a quoted one"],
    ["an ADO list", "Server=db;User Id=sa;Pwd=S3cret-Value;", "S3cret-Value"],
    [
      "a storage account",
      "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=QUJDREVGRw==;",
      "QUJDREVGRw==",
    ],
    ["a signed address", "https://files.example/x?sv=1&sig=abcDEF123%3D&se=2", "abcDEF123="],
    ["the second of two addresses", "redis://:first-pass@a:1/0,redis://:second-pass@b:1/0", "second-pass"],
    ["Go's address of MySQL", "app:S3cret-Value@tcp(db:3306)/app", "S3cret-Value"],
    ["a token in front of a host", "https://abcdefghij0123456789@git.example/x", "abcdefghij0123456789"],
    ["npm's settings", "//registry.example/:_authToken=abcdefgh12345", "abcdefgh12345"],
    ["a header", "Authorization: Bearer abcdefgh12345", "abcdefgh12345"],
    ["a header of its own", "X-Api-Key: abcdefgh12345", "abcdefgh12345"],
    ["YAML", "users:\n- user:\n    token: abcdefgh12345\n", "abcdefgh12345"],
    ["a netrc", "machine git.example login me password abcdefgh12345", "abcdefgh12345"],
    ["JSON", '{"type":"service_account","client":{"private_key":"-----KEY-----"}}', "-----KEY-----"],
    ["JSON of registries", '{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}', "dXNlcjpwYXNz"],
  ])("finds what %s contains, whatever the variable's name", (_kind, value, secret) => {
    expect(secretsOf({ SOMETHING: value })).toContain(secret);
  });

  it("leaves addresses without secrets, and users' names, alone", () => {
    expect(
      secretsOf({
        A: "https://user@git.example/x?page=2&sort=key",
        B: "postgres://app:app@db/app?sslmode=require",
        C: "host=db user=app",
        D: '{"key":1,"name":"value"}',
        E: "http://localhost:8080/a:b, 10:30:00",
        F: "password of the machine",
      }),
    ).toEqual([]);
  });
});

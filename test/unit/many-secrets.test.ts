/** What a masker of many secrets costs: counted, not timed. */
import { describe, expect, it } from "vitest";
import { secretForms } from "../../activities/redaction/secret-forms.ts";
import { createMasker, MASK } from "../../activities/redaction/secret-mask.ts";
import { TOKEN_RULES } from "../../activities/redaction/token-rules.ts";
import { createRandom } from "../support/random.ts";

describe("two hundred secrets", () => {
  const random = createRandom(4);
  const character = () =>
    random.pick(Array.from("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789+/_-"));
  const secrets = Array.from({ length: 200 }, () => Array.from({ length: 40 }, character).join(""));
  const made = { forms: 0, whole: 0, secrets: 0 };
  const counted: typeof secretForms = (some, clean) => {
    made.secrets += some.length;
    return secretForms(some, clean).map(({ units, ...form }) => {
      made.forms += 1;
      return { ...form, units: () => ((made.whole += 1), units()) };
    });
  };
  const masker = createMasker(secrets, TOKEN_RULES, counted);

  it("cost the beginnings of their forms; a form is made whole when a text begins like it", () => {
    expect(made.secrets).toBe(200);
    expect(made.forms).toBeGreaterThan(2_000);
    expect(made.whole).toBe(0);
    const [secret = ""] = secrets;
    expect(masker.mask(`<${secret}>`)).toBe(`<${MASK}>`);
    const once = made.whole;
    expect(once).toBeLessThan(made.forms / 10);
    masker.mask(`<${secret}>`);
    expect(made.whole).toBe(once);
  });

  it("are not begun again for one more, which is masked in streams that have begun, too", () => {
    const before = { ...made };
    const late = "late-secret-81b3e0";
    const stream = masker.stream();
    const first = stream.push("begun ");
    masker.learn([...secrets, late]);
    masker.learn([...secrets, late]);
    expect(made.secrets).toBe(before.secrets + 1);
    expect(first + stream.push(`${late} and ${secrets[7]}`) + stream.end()).toBe(`begun ${MASK} and ${MASK}`);
  });

  it("are masked as each of them alone is, in any spelling", () => {
    for (const secret of secrets.slice(0, 60)) {
      const alone = createMasker([secret]);
      const bytes = Buffer.from(secret);
      const text = [
        secret,
        bytes.toString("hex"),
        bytes.toString("base64"),
        encodeURIComponent(secret),
        [...bytes].join(", "),
      ].join(" | ");
      expect(alone.mask(text)).not.toContain(secret);
      expect(masker.mask(text)).toBe(alone.mask(text));
    }
  });
});

import { expect, test } from "vitest";
import { findAptSource } from "../../client/setup/apt.ts";

test("the machine's source is found in stanzas, between any others", () => {
  const stanzas = [
    "# first\nTypes: deb\nURIs: http://security.example.test/debian\nSuites: bookworm-security\nComponents: main\n",
    "Enabled: no\nTypes: deb\nURIs: http://off.example.test\nSuites: bookworm\nComponents: main\n",
    "Types: deb deb-src\n# a note\nURIs: http://a.example.test/debian\n http://b.example.test/debian\n" +
      "Suites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /usr/share/keyrings/k.gpg",
  ].join("\n");
  expect(findAptSource([stanzas], "bookworm")).toEqual({
    address: "http://a.example.test/debian",
    suite: "bookworm",
    components: ["main", "contrib"],
    keyring: "/usr/share/keyrings/k.gpg",
  });
});

test("the machine's source is found in one-line files", () => {
  const lines =
    "# deb http://no.example.test noble main\n" +
    "deb-src http://no.example.test noble main\n" +
    "deb [arch=amd64 signed-by=/k.gpg] https://u.example.test/ubuntu noble main universe # note\n";
  expect(findAptSource(["", lines], "noble")).toEqual({
    address: "https://u.example.test/ubuntu",
    suite: "noble",
    components: ["main", "universe"],
    keyring: "/k.gpg",
  });
});

test("sources of other releases and of files are ignored", () => {
  const lines =
    "deb cdrom:[x]/ noble main\ndeb file:/srv/mirror noble main\ndeb http://o.example.test jammy main\n";
  expect(findAptSource([lines], "noble")).toBeUndefined();
  expect(findAptSource([], "noble")).toBeUndefined();
});

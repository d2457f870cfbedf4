/** Programs of the full image's languages, built and tested in it without a network. The image takes ten minutes to make. */
import Dockerode from "dockerode";
import { afterAll, expect, test } from "vitest";
import { FULL_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { bash, createTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = createTestSandboxes();
afterAll(() => sandboxes.dispose());

/** Of no session. */
const AUTHORITY = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUaYVJtwxaW4PMIR1Bl/SPq/bJh/gwCgYIKoZIzj0EAwIw
IjEgMB4GA1UEAwwXTG9uZ2hhdWwgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTIzMDYw
OTMwWhgPMjEyNjEwMzAwNjA5MzBaMCIxIDAeBgNVBAMMF0xvbmdoYXVsIHRlc3Qg
YXV0aG9yaXR5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyMzw+rP/GbIGnxq1
YX2lRTCrKmLg1sGRi4AYfG+xa3+Ix6fe3yNhqkT2dXs0BHZXATdzTAU0ZO4aslNl
KH/VnaNTMFEwHQYDVR0OBBYEFIFO5gO5ub7BqdtisH0r5XbMN69XMB8GA1UdIwQY
MBaAFIFO5gO5ub7BqdtisH0r5XbMN69XMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
zj0EAwIDSQAwRgIhANqCMStyOvn5d95ozpercnXp5ZILPJK45f5/NiwV2dT4AiEA
4I1GjsZSqkREudLhWjF3h3rszdBtCVp2BKIFEckr5uY=
-----END CERTIFICATE-----
`;

const PROGRAMS = {
  Rust: `cargo init -q --lib --vcs none --name seven rust && cd rust
cat > src/lib.rs <<'END'
pub fn seven() -> u32 { 3 + 4 }
#[test]
fn is_seven() { assert_eq!(seven(), 7); }
END
cargo fmt --check -- -l >/dev/null || cargo fmt && cargo clippy -q --offline && cargo test -q --offline && echo rust did`,
  Go: `mkdir go && cd go && go mod init example.test/seven
cat > seven_test.go <<'END'
package seven
import "testing"
func Seven() int { return 3 + 4 }
func TestSeven(t *testing.T) { if Seven() != 7 { t.Fail() } }
END
go vet ./... && go test ./... && echo go did`,
  Java: `mkdir java && cd java
cat > Seven.java <<'END'
public class Seven { public static void main(String[] a) { if (3 + 4 != 7) throw new Error(); System.out.println("seven"); } }
END
javac Seven.java && jar cfe seven.jar Seven Seven.class && java -jar seven.jar && mvn -q --version && echo java did`,
};

test("a Rust, a Go and a Java program are built and tested in the full image", async (context) => {
  const found = await new Dockerode()
    .getImage(FULL_IMAGE)
    .inspect()
    .catch(() => undefined);
  if (found === undefined)
    context.skip(`${FULL_IMAGE} is not there: SANDBOX_IMAGE=longhaul-sandbox:full npm start makes it`);
  const settings = { env: {}, files: {}, registries: [], certificates: AUTHORITY };
  const sandbox = await sandboxes.host.open(
    sandboxes.spec({ image: FULL_IMAGE, memoryBytes: 2 * 2 ** 30, pids: 512, settings }),
  );
  const trusted = "keytool -list -keystore /etc/longhaul/certificates.jks -storepass changeit -v";
  const { out: listed, err: wrong } = await bash(sandbox, trusted, 60_000);
  expect(listed, wrong).toContain("CN=Longhaul test authority");
  expect((await bash(sandbox, "echo $JAVA_TOOL_OPTIONS")).out).toContain("/etc/longhaul/certificates.jks");
  for (const [language, program] of Object.entries(PROGRAMS)) {
    const { state, out, err } = await bash(sandbox, `set -e\n${program}`, 240_000);
    expect(state, `${language}: ${out}${err}`).toMatchObject({ kind: "exited", exitCode: 0 });
    expect(out).toContain(`${language.toLowerCase()} did`);
  }
});

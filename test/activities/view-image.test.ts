import { beforeAll, describe, expect, it } from "vitest";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { mediaSize } from "../../activities/store/media.ts";
import { useSandbox, useTestSandboxes } from "../support/test-sandboxes.ts";
import { callTool, createFakeMemory } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes, { memoryBytes: 1024 * 2 ** 20 });

/** Pictures and PDFs, made in the sandbox: `pdf(name, texts)` writes one page a text. */
const MAKE = String.raw`
import struct, zlib
from PIL import Image, ImageDraw
tall = Image.new("RGB", (1280, 20000), "white")
draw = ImageDraw.Draw(tall)
for y in range(0, 20000, 100): draw.rectangle((0, y, 1280, y + 50), fill=(y // 100, 0, 200))
tall.save("tall.png")
Image.new("RGB", (20000, 900), "red").save("wide.png")
Image.new("RGB", (9000, 9000), "red").save("square.jpg")
Image.effect_noise((2400, 2400), 90).convert("RGB").save("noise.png", compress_level=0)
Image.new("RGB", (640, 480), "blue").save("small.png")
Image.new("CMYK", (300, 200), (0, 255, 255, 0)).save("cmyk.jpg")
frames = [Image.new("P", (64, 48), at) for at in range(3)]
for at, frame in enumerate(frames): frame.putpalette([at * 100, 0, 0] * 256)
frames[0].save("moving.gif", save_all=True, append_images=frames[1:], duration=100)
whole = open("small.png", "rb").read()
Image.effect_noise((200, 200), 90).save("noisy.png")
open("cut.png", "wb").write(open("noisy.png", "rb").read()[:9000])
exif = Image.Exif(); exif[0x0112] = 6
Image.new("RGB", (300, 100), "green").save("turned.jpg", exif=exif)
Image.new("RGB", (50, 40), "green").save("a.tiff")
Image.new("I;16", (30, 20), 40000).save("deep.png")
Image.new("RGBA", (9500, 100), (255, 0, 0, 100)).save("alpha.png")
Image.new("RGB", (400, 300), "yellow").save("scan.pdf")
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
packer = zlib.compressobj(9)
data = b"".join(packer.compress(bytes(20001)) for _ in range(20000)) + packer.flush()
open("bomb.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 20000, 20000, 8, 0, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
open("not.png", "w").write("hello")
def pdf(name, texts, extra=b"", box="612 792"):
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(texts), b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(texts)))), b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for at, text in enumerate(texts):
        stream = b"BT /F1 24 Tf 72 700 Td (%s) Tj ET" % text.encode()
        objects.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %s] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>" % (box.encode(), 5 + 2 * at))
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out = bytearray(b"%PDF-1.4\n"); places = []
    for at, body in enumerate(objects):
        places.append(len(out)); out += b"%d 0 obj\n%s\nendobj\n" % (at + 1, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, extra, start)
    open(name, "wb").write(out)
pdf("one.pdf", ["Only page"])
pdf("many.pdf", [f"This is page {at + 1}" for at in range(500)])
pdf("locked.pdf", ["secret"], b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P -4 >> /ID [<00> <00>]" % (b"41" * 32, b"42" * 32))
pdf("poster.pdf", ["Poster"], box="14400 14400")
open("broken.pdf", "wb").write(open("one.pdf", "rb").read()[:200])
`;

beforeAll(async () => {
  const made = await callTool(sandbox, "bash", {
    command: `cat > /tmp/make.py <<'END'\n${MAKE}\nEND\npython3 /tmp/make.py`,
  });
  expect(made.text).toBe("(no output)");
});

type Viewed = InvokedTool & { readonly bytes: Uint8Array; readonly size: readonly number[] };
async function view(input: object): Promise<Viewed> {
  const memory = createFakeMemory();
  const result = await callTool(sandbox, "view_image", input, { memory });
  const [bytes = new Uint8Array()] = memory.blobs.values();
  const { width = 0, height = 0 } = mediaSize(
    bytes,
    result.files[0]?.mediaType ?? "image/png",
    () => undefined,
  );
  return { ...result, bytes, size: [width, height] };
}

/** The pixel in the middle of what was shown. */
async function middle({ bytes }: Viewed): Promise<string> {
  await sandbox.files.write("shown.bin", bytes);
  const script = `from PIL import Image; i = Image.open("shown.bin").convert("RGB"); print(i.getpixel((i.width // 2, i.height // 2)))`;
  return (await callTool(sandbox, "bash", { command: `python3 -c '${script}'` })).text;
}

describe("pictures", () => {
  it("of usual size are shown as they are", async () => {
    const shown = await view({ path: "small.png" });
    expect(shown).toMatchObject({ outcome: "completed", size: [640, 480] });
    expect(shown.text).toMatch(/^small\.png \(image\/png, .*, 640 × 480 pixels\)$/);
  });

  it("of 20,000 pixels are shown in parts, each with the region of the next", async () => {
    const first = await view({ path: "tall.png" });
    expect(first.size).toEqual([1280, 1568]);
    expect(first.text).toContain("region=0,0,1280,1568 of 1280 × 20000 pixels");
    expect(first.text).toContain("[1 of 13; 2 of 13, region=0,1568,1280,1568 shows the next]");
    let region = "0,1568,1280,1568";
    let count = 1;
    for (; region !== ""; count++) {
      const { text, size } = await view({ path: "tall.png", region });
      expect(size[0]).toBe(1280);
      expect(text).toContain(`[${count + 1} of 13`);
      if (region === "0,3136,1280,1568")
        expect(text).toContain("[3 of 13; 4 of 13, region=0,4704,1280,1568 shows the next]");
      region = /region=([\d,]+) shows/.exec(text)?.[1] ?? "";
    }
    expect(count).toBe(13);
    expect((await view({ path: "tall.png", region: "0,18816,1280,1568" })).size).toEqual([1280, 1184]);
  });

  it("that are wide are shown in parts from left to right", async () => {
    expect((await view({ path: "wide.png" })).text).toContain(
      "[1 of 13; 2 of 13, region=1568,0,1568,900 shows the next]",
    );
    expect((await view({ path: "square.jpg" })).text).toContain(
      "[1 of 36; 2 of 36, region=1568,0,1568,1568 shows the next]",
    );
  });

  it("with too many bytes are scaled, which is said", async () => {
    const { text, size } = await view({ path: "noise.png" });
    expect(Math.max(...size)).toBe(1568);
    expect(text).toMatch(/1568 × 1568 pixels, scaled from 2400 × 2400: region= shows a part of that/);
  });

  it("show a region in full size, and say when it is outside", async () => {
    const part = await view({ path: "tall.png", region: "100, 250, 40, 20" });
    expect(part.size).toEqual([40, 20]);
    expect(await middle(part)).toBe("(255, 255, 255)");
    expect(await view({ path: "small.png", region: "640,0,10,10" })).toMatchObject({
      outcome: "error",
      text: "small.png is 640 x 480 pixels: the region 640,0,10,10 is outside.",
    });
    expect((await view({ path: "small.png", region: "1,2,3" })).text).toMatch(/region/);
  });

  it("that move show one frame, and page another", async () => {
    const first = await view({ path: "moving.gif" });
    expect(first.files[0]?.mediaType).toBe("image/png");
    expect(first.text).toContain("[frame 1 of 3: page= shows another]");
    expect(await middle(first)).toBe("(0, 0, 0)");
    expect(await middle(await view({ path: "moving.gif", page: 3 }))).toBe("(200, 0, 0)");
    expect((await view({ path: "moving.gif", page: 4 })).text).toBe(
      "moving.gif has 3 frames: there is no page 4.",
    );
  });

  it("in CMYK are shown in the colours that are meant", async () => {
    const shown = await view({ path: "cmyk.jpg" });
    const [red = 0, green = 0, blue = 0] = ((await middle(shown)).match(/\d+/g) ?? []).map(Number);
    expect(red).toBeGreaterThan(200);
    expect(Math.max(green, blue)).toBeLessThan(60);
  });

  it("are upright, of other formats, of 16 bits a pixel, or transparent", async () => {
    expect((await view({ path: "turned.jpg" })).size).toEqual([100, 300]);
    expect((await view({ path: "a.tiff" })).size).toEqual([50, 40]);
    expect(await middle(await view({ path: "deep.png", region: "0,0,9,9" }))).toBe("(156, 156, 156)");
    expect((await view({ path: "alpha.png", region: "0,0,50,50" })).files[0]?.mediaType).toBe("image/png");
  });

  it("that are cut off are refused as damaged", async () => {
    const cut = await view({ path: "cut.png" });
    expect(cut).toMatchObject({ outcome: "error" });
    expect(cut.text).toMatch(/^cut\.png is a damaged picture: .*truncated/);
  });

  it("that are bombs are refused, and the sandbox lives", async () => {
    const bomb = await view({ path: "bomb.png" });
    expect(bomb).toMatchObject({ outcome: "error" });
    expect(bomb.text).toMatch(/^bomb\.png has more than 89,478,485 pixels, which is refused/);
  });

  it("that are none, that are outside or not there are refused by name", async () => {
    expect((await view({ path: "not.png" })).text).toMatch(/^not\.png is neither a PDF nor a picture/);
    expect((await view({ path: "nope.png" })).text).toMatch(/^nope\.png does not exist/);
    await callTool(sandbox, "bash", {
      command: "ln -sf /usr/share/pixmaps out; ln -sf /etc/passwd pw.png; mkfifo pipe.png",
    });
    expect((await view({ path: "pw.png" })).text).toMatch(/leads outside \/workspace/);
    expect((await view({ path: "pipe.png" })).text).toMatch(/pipe, socket or device/);
    expect(await view({ path: "." })).toMatchObject({ outcome: "error" });
  });
});

describe("PDFs", () => {
  it("show a page at 110 dpi, and its text", async () => {
    const { text, size } = await view({ path: "one.pdf" });
    expect(size).toEqual([935, 1210]);
    expect(text).toContain("[page 1 of 1]");
    expect(text).toMatch(/Its text:\n\s*Only page$/);
  });

  it("of 500 pages show the 499th, in seconds", async () => {
    const began = performance.now();
    const { text } = await view({ path: "many.pdf", page: 499 });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(text).toMatch(/\[page 499 of 500\]\nIts text:\n\s*This is page 499$/);
    expect((await view({ path: "many.pdf", page: 501 })).text).toMatch(/501/);
  });

  it("without text say so", async () => {
    const shown = await view({ path: "scan.pdf" });
    expect(shown.text).toContain("[this page has no text: it may be scanned]");
    expect(await middle(shown)).toMatch(/^\(25[3-5], 25[3-5], [0-3]\)$/);
  });

  it("that are encrypted or damaged are refused, with the reason", async () => {
    expect((await view({ path: "locked.pdf" })).text).toMatch(
      /^locked\.pdf is an encrypted PDF, which needs a password/,
    );
    expect((await view({ path: "broken.pdf" })).text).toMatch(/^broken\.pdf is a PDF that cannot be opened/);
  });

  it("of a huge page are shown in parts", async () => {
    const { text, size } = await view({ path: "poster.pdf" });
    expect(size).toEqual([1568, 1568]);
    expect(text).toMatch(/\[1 of 36; 2 of 36, region=1568,0,1568,1568 shows the next\]/);
  });
});

describe("without Pillow", () => {
  it("usual pictures are shown, and what is needed for others is said", async () => {
    await callTool(sandbox, "bash", {
      command: "mkdir -p bin; printf '#!/bin/sh\\nexit 95\\n' > bin/python3; chmod +x bin/python3",
    });
    const without = {
      ...sandbox,
      run: (command: Parameters<typeof sandbox.run>[0], options?: Parameters<typeof sandbox.run>[1]) => {
        const [shell = "", flag = "", script = "", ...args] = command.argv;
        const bare = script.replaceAll("/usr/bin/python3", "/workspace/bin/python3");
        return sandbox.run(
          { ...command, argv: [shell, flag, bare, ...args], env: { PATH: "/workspace/bin:/usr/bin:/bin" } },
          options,
        );
      },
    };
    const see = (input: object) => callTool(without, "view_image", input);
    expect((await see({ path: "small.png" })).text).toMatch(/^small\.png \(image\/png/);
    expect((await see({ path: "one.pdf" })).text).toMatch(
      /^one\.pdf is a PDF, and the sandbox's image lacks Pillow\. Install it/,
    );
    expect((await see({ path: "a.tiff" })).text).toMatch(/lacks Pillow/);
    expect((await see({ path: "small.png", region: "0,0,5,5" })).text).toMatch(/lacks Pillow/);
  });
});

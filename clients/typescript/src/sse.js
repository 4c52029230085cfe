// Server-sent events of a response: {event, data}, with data read from JSON.

/** @param {ReadableStream<Uint8Array>} body */
export async function* events(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text = (text + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n");
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const read = readBlock(block);
        if (read) yield read;
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // whoever stops reading lets the server go
  }
}

function readBlock(block) {
  const lines = block.split("\n");
  const event = lines.find((line) => line.startsWith("event:"))?.slice(6).trim() ?? "message";
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

// A TypeScript client as a filter: one JSON request in, one JSON answer out, line by line.
import { createInterface } from "node:readline";

const [kind, url, token, modules] = process.argv.slice(2);
const from = (path) => import(`${modules}/${path}`);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };

async function connected() {
  if (kind === "deployed") {
    const { Client } = await from("sdk/dist/esm/client/index.js");
    const { StreamableHTTPClientTransport } = await from("sdk/dist/esm/client/streamableHttp.js");
    const client = new Client({ name: "peer", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await from("client/dist/index.mjs");
  const client = new Client({ name: "peer", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

const client = await connected();
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try {
    if (asked.method === "tools") answer = await client.listTools();
    else if (asked.method === "call") answer = await client.callTool({ name: asked.tool, arguments: asked.arguments });
    else answer = await client.readResource({ uri: asked.uri });
  } catch (error) {
    answer = { thrown: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await client.close();

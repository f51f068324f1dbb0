// Connects with the TypeScript SDK, lists the tools, calls some, and prints what it saw as one JSON object.
//
//   node client.mjs versions                      the protocol versions that the SDK offers
//   node client.mjs connect VERSION COMMAND...    a session with that version

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";

const [mode, version, command, ...args] = process.argv.slice(2);
if (mode === "versions") {
  console.log(JSON.stringify(SUPPORTED_PROTOCOL_VERSIONS));
  process.exit(0);
}

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "pipe" });
// The SDK always asks for its newest version; older clients asked for theirs.
const send = transport.send.bind(transport);
transport.send = (message, options) => {
  if (message.method === "initialize") message.params.protocolVersion = version;
  return send(message, options);
};
let negotiated;
transport.setProtocolVersion = (agreed) => {
  negotiated = agreed;
};

const client = new Client({ name: "acceptance", version: "1" }, { capabilities: {} });
await client.connect(transport);
const { tools } = await client.listTools();
const windows = await client.callTool({ name: "list_windows", arguments: {} });
const picture = await client.callTool({ name: "screenshot", arguments: {} });
const refused = await client.callTool({ name: "click", arguments: { window_id: "x" } });
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: prompts[0].name });
const { resources } = await client.listResources();
const resource = await client.readResource({ uri: resources[0].uri });
const unknown = async (asked) => asked.then(() => "answered", (error) => error.code);
console.log(
  JSON.stringify({
    negotiated,
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    windows: windows.structuredContent,
    picture: picture.content.filter((block) => block.type === "image").map((block) => block.mimeType),
    refused: { isError: refused.isError, code: refused.structuredContent?.code },
    guide: {
      prompts: prompts.map((prompt) => prompt.name),
      prompt: prompt.messages.map((message) => message.content.text),
      resources: resources.map((resource) => [resource.uri, resource.mimeType]),
      resource: resource.contents.map((contents) => contents.text),
      unknownPrompt: await unknown(client.getPrompt({ name: "no-such" })),
      unknownResource: await unknown(client.readResource({ uri: "deskhand://no-such" })),
    },
  }),
);
await client.close();

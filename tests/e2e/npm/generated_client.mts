// A client made of /openapi.json (weir.d.ts, by openapi-typescript), against the server at BASE. It compiles only if the types say
// what is used here; it runs only if the server keeps to them. Run by javascript_clients_test.py.
import createClient from "openapi-fetch";
import type { components, paths } from "./weir.d.ts";

declare const process: { env: Record<string, string>; exitCode: number };
type Schemas = components["schemas"];

const client = createClient<paths, "application/json">({ baseUrl: process.env["BASE"]! });
const model = process.env["MODEL"]!;
const messages: Schemas["ChatMessage"][] = [{ role: "user", content: "Hello, who are you?" }];

function check(holds: boolean, what: string) {
  console.log(`${holds ? "ok" : "WRONG"}  ${what}`);
  if (!holds) process.exitCode = 1;
}

// The events of a streamed answer as they arrive.
async function* eventsOf<Event>(response: Response): AsyncGenerator<Event> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    const events = text.split("\n\n");
    text = events.pop()!;
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "))?.slice(6);
      if (data && data !== "[DONE]") yield JSON.parse(data) as Event;
    }
  }
}

const list = await client.GET("/v1/models");
check(list.data?.data.some((m) => m.id === model) ?? false, "models");
const one = await client.GET("/v1/models/{id}", { params: { path: { id: model } } });
check(one.data?.object === "model", "a model");

const chat = await client.POST("/v1/chat/completions", { body: { model, messages, max_tokens: 8, logprobs: true, top_logprobs: 2 } });
const choice = chat.data?.choices[0];
check(choice?.message.role === "assistant" && chat.data!.usage.total_tokens > 8, "chat");
check(choice?.logprobs?.content.every((t) => t.top_logprobs.length === 2) ?? false, "log-probabilities");

const stream = await client.POST("/v1/chat/completions", { body: { model, messages, max_tokens: 8, stream: true }, parseAs: "stream" });
let text = "";
let finish: Schemas["FinishReason"] | null = null;
for await (const chunk of eventsOf<Schemas["ChatCompletionChunk"]>(stream.response)) {
  text += chunk.choices[0]?.delta.content ?? "";
  finish = chunk.choices[0]?.finish_reason ?? finish;
}
check(text.length > 0 && finish !== null, "chat, streamed");

const tools: Schemas["Tool"][] = [{ type: "function", function: { name: "ping", parameters: { type: "object", properties: {} } } }];
const call = await client.POST("/v1/chat/completions", { body: { model, messages, tools, tool_choice: "required" } });
check(call.data?.choices[0]?.message.tool_calls?.[0]?.function.name === "ping", "a call of a function");

const events: string[] = [];
const responses = await client.POST("/v1/responses", { body: { model, input: "Hello", max_output_tokens: 8, stream: true }, parseAs: "stream" });
for await (const event of eventsOf<Schemas["ResponseStreamEvent"]>(responses.response)) {
  if (event.type === "response.output_text.delta") events.push(event.delta);
  if (event.type === "response.completed" || event.type === "response.incomplete")
    check(event.response.usage?.output_tokens === 8, "responses, streamed");
}
check(events.length > 0, "deltas of a response");

const message = await client.POST("/v1/messages", { body: { model, max_tokens: 8, messages: [{ role: "user", content: "Hello" }] } });
check(message.data?.content[0]?.type === "text" && message.data.stop_reason !== null, "messages");

const vectors = await client.POST("/v1/embeddings", { body: { model, input: ["sea", "sea"], dimensions: 4 } });
check(vectors.data?.data.every((v) => v.embedding.length === 4) ?? false, "embeddings");
const tokens = await client.POST("/tokenize", { body: { content: "Hello" } });
check(tokens.data !== undefined && tokens.data.count === tokens.data.tokens.length, "tokenize");

const refused = await client.POST("/v1/chat/completions", { body: { model, messages, temperature: 9 } });
check(refused.response.status === 400 && refused.error?.error.param === "temperature", "an error");
const unlike = await client.POST("/v1/messages", { body: { model, max_tokens: 8, messages: [] } });
check(unlike.error?.error.type === "invalid_request_error", "an error of messages");

// @ts-expect-error: a role that there is not.
const nobody: Schemas["ChatMessage"] = { role: "nobody", content: "" };
// @ts-expect-error: a body needs its messages.
check((await client.POST("/v1/chat/completions", { body: { model } })).response.status === 400 && nobody.content === "", "what is required");

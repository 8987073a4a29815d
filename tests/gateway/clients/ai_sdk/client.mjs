// A program around the AI SDK. Its argument is a JSON list of scenarios; it prints what came of each, in order, as a JSON list.
//
// A scenario: provider, url, key, model, stream, prompt, instructions, store (of Responses), and tools: schemas by their names.
// A tool says its name and its input. Without tools the model is asked once, with them until it calls none.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";

globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = {
  "openai-chat": (at, model) => createOpenAI(at).chat(model),
  "openai-responses": (at, model) => createOpenAI(at).responses(model),
  anthropic: (at, model) => createAnthropic(at)(model),
};

function toolOf(name, schema) {
  const execute = async (input) => `${name}: ½ of ${JSON.stringify(input)}`;
  return tool({ description: name, inputSchema: jsonSchema(schema), execute });
}

function stepOf({ text, reasoningText, toolCalls, finishReason, usage }) {
  const own = toolCalls.filter(({ providerExecuted }) => !providerExecuted); // the provider ran the others: an image, a search
  const calls = own.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, input }));
  return { text, reasoning: reasoningText ?? "", calls, finishReason, usage };
}

function errorOf(error) {
  return { name: error?.name ?? "", status: error?.statusCode ?? null, message: error?.message ?? JSON.stringify(error) };
}

async function run({ provider, url, key, model, stream, prompt, instructions, store, tools }) {
  const entries = Object.entries(tools ?? {}).map(([name, schema]) => [name, toolOf(name, schema)]);
  const errors = [];
  const asked = {
    model: MODELS[provider]({ baseURL: `${url}/v1`, apiKey: key }, model),
    prompt,
    instructions,
    tools: Object.fromEntries(entries),
    stopWhen: isStepCount(entries.length ? 5 : 1),
    providerOptions: { openai: { store } },
    maxRetries: 0,
  };
  try {
    if (!stream) return { steps: (await generateText(asked)).steps.map(stepOf), errors };
    const result = streamText({ ...asked, onError: ({ error }) => errors.push(errorOf(error)) });
    await result.consumeStream();
    return { steps: (await result.steps).map(stepOf), errors };
  } catch (error) {
    return { steps: [], errors: [...errors, errorOf(error)] };
  }
}

// at once: a failed answer takes the gateway's linger_s to end
console.log(JSON.stringify(await Promise.all(JSON.parse(process.argv[2]).map(run))));

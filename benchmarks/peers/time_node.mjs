// On Node: eventsource-parser, and the AI SDK with its OpenAI provider. The orders are those of worker.py; the floor is JSON.parse.
// Run in the folder of its environment, whose packages it imports.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const packages = createRequire(join(process.cwd(), 'package.json'))
const load = (name) => import(pathToFileURL(packages.resolve(name)))
const { createParser } = await load('eventsource-parser')
const { streamText, parsePartialJson } = await load('ai')
const { createOpenAI } = await load('@ai-sdk/openai')

const out = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const version = (name) => JSON.parse(readFileSync(join('node_modules', name, 'package.json'), 'utf8')).version
console.log = console.warn = console.error

function streamOf(order) {
  const body = order.body ? readFileSync(order.body) : Buffer.alloc(0)
  const reads = []
  if (order.cut) for (let at = 0; at < body.length; at += order.cut) reads.push(new Uint8Array(body.subarray(at, at + order.cut)))
  else for (const frame of body.toString().split('\n\n')) if (frame) reads.push(new TextEncoder().encode(frame + '\n\n'))
  const payloads = body.toString().split('\n\n').map((frame) => frame.slice(frame.indexOf('data: ') + 6))
  return { reads, payloads: payloads.filter((payload) => payload && payload !== '[DONE]'), fragments: order.fragments ?? [] }
}

const digest = (data) => ({ events: data.length, sha256: createHash('sha256').update(data.join('\n')).digest('hex') })

function sse(stream) {
  return [
    async () => {
      const found = []
      const parser = createParser({ onEvent: (event) => found.push(event.data) })
      const decoder = new TextDecoder()
      for (const read of stream.reads) parser.feed(decoder.decode(read, { stream: true }))
      return found
    },
    digest,
  ]
}

function accumulate(stream) {
  const fetch = async () => {
    let at = 0
    const body = new ReadableStream({
      pull: (controller) => (at < stream.reads.length ? controller.enqueue(stream.reads[at++]) : controller.close()),
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const model = createOpenAI({ apiKey: 'none', baseURL: 'http://127.0.0.1:9/v1', fetch }).chat('gpt-5.2')
  return [
    async () => {
      const result = streamText({ model, prompt: 'Hi', maxRetries: 0 })
      for await (const _ of result.fullStream) {
        /* read to its end */
      }
      return { text: await result.text, calls: await result.toolCalls, stop: await result.finishReason }
    },
    ({ text, calls, stop }) => ({
      text,
      calls: calls.map((call) => [call.toolName, typeof call.input === 'string' ? call.input : JSON.stringify(call.input)]),
      stop: String(stop).replace('-', '_'),
    }),
  ]
}

function partial(stream) {
  return [
    async () => {
      let text = ''
      let value
      for (const fragment of stream.fragments) {
        text += fragment
        value = (await parsePartialJson(text)).value
      }
      return value
    },
    (value) => value,
  ]
}

const works = { sse, accumulate, partial }
let task, stream, seconds

async function timed(run, repeats) {
  const start = process.hrtime.bigint()
  for (let number = 0; number < repeats; number++) await run()
  return Number(process.hrtime.bigint() - start) / 1e9 / repeats
}

async function floor() {
  for (const payload of stream.payloads) JSON.parse(payload)
}

const orders = {
  async prepare(order) {
    stream = streamOf(order)
    const [run, tell] = works[order.work](stream)
    task = run
    const result = tell(await task())
    for (let number = 0; number < 3; number++) seconds = await timed(task, 1) // its compiler warms up
    return { result }
  },
  async time(order) {
    const repeats = Math.max(1, Math.round(order.least / seconds))
    const floors = Math.max(1, Math.round(order.least / 2 / Math.max(await timed(floor, 1), 1e-7)))
    const before = await timed(floor, floors)
    const found = await timed(task, repeats)
    return { seconds: found, floor: (before + (await timed(floor, floors))) / 2 }
  },
}

out({ versions: { sse: version('eventsource-parser'), accumulate: version('ai'), partial: version('ai') } })
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line)
  try {
    out(await orders[order.do](order))
  } catch (error) {
    out({ error: String(error).slice(0, 500) })
  }
}

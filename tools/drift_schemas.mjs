// Print the zod schemas of a package of npm as JSON schemas: node drift_schemas.mjs FOLDER ai|@ag-ui/core
// FOLDER is where the package is installed. `ai` exports no schema of its request's messages, so only its stream is printed.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, name] = process.argv.slice(2);
const here = createRequire(join(folder, "package.json"));
const load = (path) => import(pathToFileURL(here.resolve(path).replace(/\.cjs$/, ".js")));
const zod = await load("zod/v4");
const json = (schema) => zod.toJSONSchema(schema, { unrepresentable: "any", io: "input" });

async function agUi() {
  const core = await load("@ag-ui/core/schemas");
  return { stream: json(core.EventSchemas), request: json(core.RunAgentInputSchema) };
}

async function aiSdk() {
  // `ai` makes the JSON schema itself, and refuses a type that JSON schema cannot express
  const generator = zod.core.JSONSchemaGenerator.prototype;
  const process = generator.process;
  generator.process = function (...given) {
    this.unrepresentable = "any";
    return process.apply(this, given);
  };
  return { stream: (await load("ai")).uiMessageChunkSchema().jsonSchema };
}

console.log(JSON.stringify(name === "ai" ? await aiSdk() : await agUi()));

// Seven calls with the types of openapi-typescript, as the README of openapi-fetch shows.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

declare const process: { argv: string[]; exitCode: number };
const [, , baseUrl, key, slug] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });

async function main() {
  const terms = await client.GET("/terms/version");
  const made = await client.POST("/projects", {
    body: {
      slug,
      title: "Tide levels",
      readme: "Water levels read from gauges on site.",
      schemaDef: {
        fields: [
          { name: "gauge", type: "string", required: true },
          { name: "metres", type: "number" },
        ],
      },
    },
  });
  const sent = await client.POST("/projects/{slug}/contribute", {
    params: { path: { slug }, query: { wait: 20 } },
    body: { records: [{ gauge: "Hook of Holland", metres: 0.83 }] },
  });
  const page = await client.GET("/projects/{slug}/data", { params: { path: { slug } } });
  const asked = await client.POST("/projects/{slug}/query", {
    params: { path: { slug } },
    body: { sql: "SELECT count(*) AS n FROM records" },
  });
  const manifest = await client.GET("/projects/{slug}/manifest", { params: { path: { slug } } });
  const listed = await client.GET("/projects", { params: { query: { limit: 5 } } });
  const refused = [terms, made, sent, page, asked, manifest, listed].find((one) => one.error);
  if (refused) throw new Error(JSON.stringify(refused.error));
  const row = page.data!.items[0];
  console.log(
    JSON.stringify({
      status: sent.data!.status,
      gauge: row.gauge,
      rows: asked.data!.rows,
      parts: manifest.data!.parts.length,
      listed: listed.data!.items.some((item) => item.slug === slug),
      terms: typeof terms.data!.version,
    }),
  );
}
main();

// Seven calls with the functions of @hey-api/openapi-ts, as its README shows.
import { client } from "./hey/client.gen";
import {
  contributeRecords,
  createDataset,
  datasetManifest,
  listDatasets,
  queryDataset,
  readDataset,
  termsVersion,
} from "./hey/sdk.gen";

declare const process: { argv: string[] };
const [, , baseUrl, key, slug] = process.argv;
client.setConfig({ baseUrl, auth: () => key, throwOnError: true });

async function main() {
  const terms = await termsVersion<true>();
  await createDataset<true>({
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
  const sent = await contributeRecords<true>({
    path: { slug },
    query: { wait: 20 },
    body: { records: [{ gauge: "Hook of Holland", metres: 0.83 }] },
  });
  const page = await readDataset<true>({ path: { slug } });
  const asked = await queryDataset<true>({ path: { slug }, body: { sql: "SELECT count(*) AS n FROM records" } });
  const manifest = await datasetManifest<true>({ path: { slug } });
  const listed = await listDatasets<true>({ query: { limit: 5 } });
  console.log(
    JSON.stringify({
      status: sent.data.status,
      gauge: page.data.items[0].gauge,
      rows: asked.data.rows,
      parts: manifest.data.parts.length,
      listed: listed.data.items.some((item) => item.slug === slug),
      terms: typeof terms.data.version,
    }),
  );
}
main();

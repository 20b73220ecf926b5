// Seven calls with the typescript-fetch client of openapi-generator.
import { Configuration, DatasetsApi, ServiceApi } from "./typescript-fetch";

declare const process: { argv: string[] };
const [, , basePath, accessToken, slug] = process.argv;
const configuration = new Configuration({ basePath, accessToken });
const datasets = new DatasetsApi(configuration);

async function main() {
  const terms = await new ServiceApi(configuration).termsVersion();
  await datasets.createDataset({
    createDatasetRequest: {
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
  const contributeRecordsRequest = { records: [{ gauge: "Hook of Holland", metres: 0.83 }] };
  const sent = await datasets.contributeRecords({ slug, wait: 20, contributeRecordsRequest });
  const page = await datasets.readDataset({ slug });
  const queryDatasetRequest = { sql: "SELECT count(*) AS n FROM records" };
  const asked = await datasets.queryDataset({ slug, queryDatasetRequest });
  const manifest = await datasets.datasetManifest({ slug });
  const listed = await datasets.listDatasets({ limit: 5 });
  console.log(
    JSON.stringify({
      status: sent.status,
      gauge: page.items[0].gauge,
      rows: asked.rows,
      parts: manifest.parts.length,
      listed: listed.items.some((item) => item.slug === slug),
      terms: typeof terms.version,
    }),
  );
}
main();

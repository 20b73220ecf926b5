"""Seven calls with the Python client of openapi-generator, as its README shows."""

import json
import sys

import openapi_client as sluice

base, key, slug = sys.argv[1:]

with sluice.ApiClient(sluice.Configuration(host=base, access_token=key)) as client:
    datasets = sluice.DatasetsApi(client)
    terms = sluice.ServiceApi(client).terms_version()
    gauge = sluice.SchemaFieldInput(name="gauge", type=sluice.CreateDatasetFieldType.STRING, required=True)
    metres = sluice.SchemaFieldInput(name="metres", type=sluice.CreateDatasetFieldType.NUMBER)
    datasets.create_dataset(
        sluice.CreateDatasetRequest(
            slug=slug,
            title="Tide levels",
            readme="Water levels read from gauges on site.",
            schema_def=sluice.SchemaDefInput(fields=[gauge, metres]),
        )
    )
    batch = sluice.ContributeRecordsRequest(records=[{"gauge": "Hook of Holland", "metres": 0.83}])
    sent = datasets.contribute_records(slug, batch, wait=20)
    page = datasets.read_dataset(slug)
    asked = datasets.query_dataset(slug, sluice.QueryDatasetRequest(sql="SELECT count(*) AS n FROM records"))
    manifest = datasets.dataset_manifest(slug)
    listed = datasets.list_datasets(limit=5)
    said = {
        "status": sent.status,
        "gauge": page.items[0]["gauge"],
        "rows": asked.rows,
        "parts": len(manifest.parts),
        "listed": any(item.slug == slug for item in listed.items),
        "terms": "string" if isinstance(terms.version, str) else "other",
    }
    print(json.dumps(said))

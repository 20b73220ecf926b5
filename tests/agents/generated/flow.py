"""Seven calls with the client of openapi-python-client, as its README shows."""

import json
import sys

from generated import AuthenticatedClient
from generated.api.datasets import (
    contribute_records,
    create_dataset,
    dataset_manifest,
    list_datasets,
    query_dataset,
    read_dataset,
)
from generated.api.service import terms_version
from generated.models import ContributeRecordsRequest, CreateDatasetRequest, Error, QueryDatasetRequest

base, key, slug = sys.argv[1:]


def good(answer):
    if answer is None or isinstance(answer, Error):
        raise SystemExit(f"refused: {answer}")
    return answer


with AuthenticatedClient(base_url=base, token=key) as client:
    terms = good(terms_version.sync(client=client))
    fields = [{"name": "gauge", "type": "string", "required": True}, {"name": "metres", "type": "number"}]
    body = {
        "slug": slug,
        "title": "Tide levels",
        "readme": "Water levels read from gauges on site.",
        "schemaDef": {"fields": fields},
    }
    good(create_dataset.sync(client=client, body=CreateDatasetRequest.from_dict(body)))
    body = ContributeRecordsRequest.from_dict({"records": [{"gauge": "Hook of Holland", "metres": 0.83}]})
    sent = good(contribute_records.sync(slug, client=client, body=body, wait=20))
    page = good(read_dataset.sync(slug, client=client))
    body = QueryDatasetRequest(sql="SELECT count(*) AS n FROM records")
    asked = good(query_dataset.sync(slug, client=client, body=body))
    manifest = good(dataset_manifest.sync(slug, client=client))
    listed = good(list_datasets.sync(client=client, limit=5))
    said = {
        "status": sent.status,
        "gauge": page.items[0].additional_properties["gauge"],
        "rows": asked.rows,
        "parts": len(manifest.parts),
        "listed": any(item.slug == slug for item in listed.items),
        "terms": "string" if isinstance(terms.version, str) else "other",
    }
    print(json.dumps(said))

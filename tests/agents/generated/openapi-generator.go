// Seven calls with the Go client of openapi-generator, as its README shows.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	openapi "github.com/GIT_USER_ID/GIT_REPO_ID"
)

// Returns the answer of a call, or ends the program.
func good[T, R any](answer T, _ R, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return answer
}

func main() {
	base, key, slug := os.Args[1], os.Args[2], os.Args[3]
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: base}}
	client := openapi.NewAPIClient(configuration)
	datasets := client.DatasetsAPI
	ctx := context.WithValue(context.Background(), openapi.ContextAccessToken, key)

	terms := good(client.ServiceAPI.TermsVersion(ctx).Execute())
	gauge := openapi.NewSchemaFieldInput("gauge", openapi.CREATEDATASETFIELDTYPE_STRING)
	gauge.SetRequired(true)
	metres := openapi.NewSchemaFieldInput("metres", openapi.CREATEDATASETFIELDTYPE_NUMBER)
	contract := openapi.NewSchemaDefInput([]openapi.SchemaFieldInput{*gauge, *metres})
	readme := "Water levels read from gauges on site."
	project := openapi.NewCreateDatasetRequest(readme, *contract, slug, "Tide levels")
	good(datasets.CreateDataset(ctx).CreateDatasetRequest(*project).Execute())
	records := []map[string]interface{}{{"gauge": "Hook of Holland", "metres": 0.83}}
	batch := openapi.NewContributeRecordsRequest(records)
	sent := good(datasets.ContributeRecords(ctx, slug).ContributeRecordsRequest(*batch).Wait(20).Execute())
	page := good(datasets.ReadDataset(ctx, slug).Execute())
	question := openapi.NewQueryDatasetRequest("SELECT count(*) AS n FROM records")
	asked := good(datasets.QueryDataset(ctx, slug).QueryDatasetRequest(*question).Execute())
	manifest := good(datasets.DatasetManifest(ctx, slug).Execute())
	listed := good(datasets.ListDatasets(ctx).Limit(5).Execute())
	isListed := false
	for _, item := range listed.Items {
		isListed = isListed || item.Slug == slug
	}
	said, _ := json.Marshal(map[string]any{
		"status": sent.Status,
		"gauge":  page.Items[0]["gauge"],
		"rows":   asked.Rows,
		"parts":  len(manifest.Parts),
		"listed": isListed,
		"terms":  fmt.Sprintf("%T", terms.Version),
	})
	fmt.Println(string(said))
}

//! Samples of the documents.

use std::sync::Arc;

use types::money::MicroUsdc;

use super::{Book, Texts, visitor};
use crate::{
    CodeSample, ConnectPart, DocsContent, DocsPage, DocsPart, DocsStartPart, DocumentedMember, DocumentedStatus, Error,
    ErrorCodeEntry, ErrorCodesPart, ErrorStatus, FeeExample, FeeStep, GlossaryPart, GuidePart, OperationGroup,
    OperationIndexPart, OperationLink, OperationPart, PricingPart, SampleTrial, ToolRow, ToolsPart, TrialAnswer,
    TrialField,
};

const BASE: &str = "https://sluice.example";
/// Document with everything that a document of this service has.
const GUIDE: &str = "# A guide\n\nWhat [others](#others) say.\n\n## Keys\n\nA `key`.\n\n```sh\ncurl -s \"https://sluice.example\" >                      x\n```\n\n## Others\n\n| Limit | Value |\n|-|-|\n| Calls | 300 |\n\n### Deep\n\n- one\n- two\n\n## Keys\n\n##                      End\n\n<script>alert(1)</script>\n";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let start = DocsStartPart { samples: samples(BASE) };
    page(book, "docs", "Docs", &start)?;
    let connect = ConnectPart { base: BASE.to_owned() };
    page(book, "docs-connect", "Connect an agent", &connect)?;
    page(book, "docs-glossary", "Glossary", &GlossaryPart)?;
    let guide = GuidePart::new("/docs/guide", "A guide", Some("/guide/agents.md"), GUIDE);
    page(book, "docs-guide", "A guide", &guide)?;
    let index = OperationIndexPart {
        groups: groups(),
        version: "0.26.0",
        base: BASE.to_owned(),
    };
    page(book, "docs-api", "API reference", &index)?;
    page(book, "docs-operation", "Search knowledge", &operation(texts, false))?;
    page(
        book,
        "docs-operation-tried",
        "Search knowledge",
        &operation(texts, true),
    )?;
    let tools = ToolsPart {
        base: BASE.to_owned(),
        tools: vec![ToolRow {
            name: "search_knowledge",
            summary: "Search published units and public datasets",
            effect: "reads",
            scope: "read",
        }],
    };
    page(book, "docs-tools", "Tools of MCP", &tools)?;
    let code = |word, fields| ErrorCodeEntry {
        word,
        meaning: "The request breaks a rule; `details` names each place and its rule.",
        fields,
        again: "after `Retry-After`",
    };
    let errors = ErrorCodesPart {
        groups: vec![
            ErrorStatus {
                status: 400,
                phrase: "Bad Request",
                codes: vec![code("invalid_request", &["details", "hint"]), code("file_refused", &[])],
            },
            ErrorStatus {
                status: 429,
                phrase: "Too Many Requests",
                codes: vec![code("rate_limited", &["retryAfter"])],
            },
        ],
    };
    page(book, "docs-errors", "Errors", &errors)?;
    page(book, "pricing", "Pricing", &pricing("0.50", true))?;
    page(book, "pricing-refused", "Pricing", &pricing(&texts.word, false))
}

/// Adds the page of a content.
fn page(book: &mut Book, name: &str, title: &str, part: &impl DocsPart) -> Result<(), Error> {
    let page = DocsPage {
        chrome: visitor(part.place()),
        title: title.to_owned(),
        description: format!("{title} of Sluice."),
        content: Arc::new(DocsContent::of(part)?),
    };
    book.add(name, &page)
}

fn samples(base: &str) -> Vec<CodeSample> {
    let sample = |id, label| CodeSample {
        id,
        label,
        code: format!("curl -sG \"{base}/search\" \\\n  --data-urlencode \"q=parquet zstd\" -d limit=3"),
    };
    vec![
        sample("op-curl", "curl"),
        sample("op-python", "Python"),
        sample("op-typescript", "TypeScript"),
        sample("op-mcp", "MCP"),
    ]
}

fn link(name: &'static str, title: &str) -> OperationLink {
    OperationLink {
        name,
        title: title.to_owned(),
        method: "GET".to_owned(),
        path: "/search",
        summary: "Search published units and public datasets, without `q` the newest",
    }
}

fn groups() -> Arc<[OperationGroup]> {
    let group = |id, title: &str, operations| OperationGroup {
        id,
        title: title.to_owned(),
        operations,
    };
    Arc::new([
        group(
            "knowledge",
            "Knowledge",
            vec![
                link("search_knowledge", "Search knowledge"),
                link("rate_knowledge", "Rate knowledge"),
            ],
        ),
        group("datasets", "Datasets", vec![link("list_datasets", "List datasets")]),
    ])
}

fn operation(texts: &Texts, is_tried: bool) -> OperationPart {
    let member = |name: &str, note: &str| DocumentedMember {
        name: name.to_owned(),
        note: note.to_owned(),
        meaning: "Words to search for; a phrase stands in quotes.".to_owned(),
    };
    let status = |status| DocumentedStatus {
        status,
        meaning: "The index is being built (`search_not_ready`).".to_owned(),
    };
    let field = |name: &str, value: &str, choices: &[&str]| TrialField {
        name: name.to_owned(),
        value: value.to_owned(),
        choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
    };
    OperationPart {
        place: "/docs/api/search_knowledge".to_owned(),
        groups: groups(),
        group: "knowledge",
        operation: link("search_knowledge", "Search knowledge"),
        description: "Previews, the best first; without `q` the newest first.",
        facts: vec![
            ("Credential", "none".to_owned()),
            ("Limit", "300 calls a minute and address".to_owned()),
        ],
        parameters: vec![
            member("q", "query, text, at most 200 characters"),
            member("kind", "query, `unit` or `dataset`"),
        ],
        body: if is_tried {
            Vec::new()
        } else {
            vec![member("fields[].name", "text, required")]
        },
        body_note: "or the bytes of the file".to_owned(),
        successes: vec![status(200)],
        answer: vec![member("items[].priceMicro", "integer")],
        answer_note: String::new(),
        failures: vec![status(400), status(503)],
        samples: samples(BASE),
        trial: Some(SampleTrial {
            fields: vec![
                field("q", &texts.text, &[]),
                field("kind", "unit", &["unit", "dataset"]),
            ],
            answer: is_tried.then(|| TrialAnswer {
                status: 200,
                millis: 31,
                bytes: 1_126,
                text: format!("{{\n  \"title\": \"{}\"\n}}", texts.text),
                is_cut: true,
            }),
        }),
    }
}

fn pricing(asked: &str, is_price: bool) -> PricingPart {
    let fee = |price, fee| FeeExample {
        price: MicroUsdc(price),
        fee: MicroUsdc(fee),
        share: MicroUsdc(price - fee),
    };
    let step = |above, up_to: Option<i64>, percent| FeeStep {
        above: MicroUsdc(above),
        up_to: up_to.map(MicroUsdc),
        percent,
    };
    PricingPart {
        unit_default: MicroUsdc(10_000),
        dataset_default: MicroUsdc(100_000),
        minimum: MicroUsdc(10_000),
        given: MicroUsdc(500_000),
        pack: MicroUsdc(1_000_000),
        egress_block: MicroUsdc(1_250),
        storage_block: MicroUsdc(40),
        free_egress: 20 << 30,
        free_storage: 5 << 30,
        payout_from: MicroUsdc(50_000),
        dispute_time: "7 days".to_owned(),
        reviews_a_day: 10,
        batches_a_day: 200,
        active_datasets: 3,
        steps: vec![
            step(0, Some(100_000), 0),
            step(100_000, Some(1_000_000), 30),
            step(1_000_000, None, 20),
        ],
        examples: vec![fee(10_000, 0), fee(250_000, 45_000), fee(100_000_000, 11_070_000)],
        asked: asked.to_owned(),
        worked: is_price.then(|| fee(500_000, 120_000)),
    }
}

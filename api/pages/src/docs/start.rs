//! The first pages of the documents: the overview, the clients, the words.

use askama::Template;

use super::contents::DocsPart;
use super::reference::CodeSample;

/// `GET /docs`: where to begin.
#[derive(Debug, Template)]
#[template(path = "docs/start.html")]
pub struct DocsStartPart {
    /// A first call in several languages.
    pub samples: Vec<CodeSample>,
}

impl DocsPart for DocsStartPart {
    fn place(&self) -> &'static str {
        "/docs"
    }
}

/// `GET /docs/connect`: how clients of MCP are connected.
#[derive(Debug, Template)]
#[template(path = "docs/connect.html")]
pub struct ConnectPart {
    /// Address of this service without a slash at the end.
    pub base: String,
}

impl ConnectPart {
    fn address(&self) -> String {
        format!("{}/mcp", self.base)
    }

    fn claude_code(&self) -> String {
        format!("claude mcp add --transport http sluice {}/mcp", self.base)
    }

    fn codex(&self) -> String {
        format!("codex mcp add sluice --url {}/mcp", self.base)
    }

    fn gemini(&self) -> String {
        format!("gemini mcp add --transport http sluice {}/mcp", self.base)
    }

    fn cursor(&self) -> String {
        format!(
            "{{\n  \"mcpServers\": {{\n    \"sluice\": {{\"url\": \"{}/mcp\"}}\n  }}\n}}",
            self.base
        )
    }

    fn code_command(&self) -> String {
        format!(
            "code --add-mcp '{{\"name\":\"sluice\",\"type\":\"http\",\"url\":\"{}/mcp\"}}'",
            self.base
        )
    }

    fn code_file(&self) -> String {
        format!(
            "{{\n  \"servers\": {{\n    \"sluice\": {{\"type\": \"http\", \"url\": \"{}/mcp\"}}\n  }}\n}}",
            self.base
        )
    }

    fn with_key(&self) -> String {
        format!(
            "{{\n  \"mcpServers\": {{\n    \"sluice\": {{\n      \"url\": \"{}/mcp\",\n      \"headers\": {{\"Authorization\": \
             \"Bearer km_…\"}}\n    }}\n  }}\n}}",
            self.base
        )
    }

    fn bridge(&self) -> String {
        format!(
            "{{\n  \"mcpServers\": {{\n    \"sluice\": {{\"command\": \"npx\", \"args\": [\"mcp-remote\", \"{}/mcp\"]}}\n  }}\n}}",
            self.base
        )
    }

    fn python(&self) -> String {
        format!(
            "import asyncio\n\nfrom mcp import Client\n\n\nasync def main():\n    async with Client(\"{}/mcp\") as sluice:\n        \
             found = await sluice.call_tool(\"search_knowledge\", {{\"q\": \"parquet zstd\", \"limit\": 3}})\n        \
             print(found.content[-1].text)\n\n\nasyncio.run(main())",
            self.base
        )
    }

    fn http(&self) -> String {
        format!(
            "import os\n\nimport httpx\n\nkey = {{\"Authorization\": \"Bearer \" + os.environ[\"SLUICE_KEY\"]}}\nanswer = \
             httpx.get(\"{}/me\", headers=key)\nanswer.raise_for_status()\nprint(answer.json()[\"name\"])",
            self.base
        )
    }
}

impl DocsPart for ConnectPart {
    fn place(&self) -> &'static str {
        "/docs/connect"
    }
}

/// `GET /docs/glossary`: words of the pages with those of the API.
#[derive(Debug, Template)]
#[template(path = "docs/glossary.html")]
pub struct GlossaryPart;

impl DocsPart for GlossaryPart {
    fn place(&self) -> &'static str {
        "/docs/glossary"
    }
}

//! A sample of every page: with usual contents, with none, and with hostile texts.

mod accounts;
mod agents;
mod board;
mod checkout;
mod collectors;
mod console;
mod dataset;
mod disputes;
mod docs;
mod market;
mod moderation;
mod money;
mod overview;
mod owner;
mod publish;
mod site;
mod sql;
mod units;
mod versions;

use crate::{Error, Instant, Page, PageLayout, Person, Theme};

/// Time at which samples are rendered: 23 November 2026, 12:00 UTC.
pub const NOW: Instant = Instant(1_795_435_200_000_000);

/// Rendered sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Name of the sample, fit for a file.
    pub name: String,
    /// Page.
    pub html: String,
}

/// Texts in the samples that somebody else wrote.
#[derive(Clone, Debug)]
struct Texts {
    /// Name of an agent or an app.
    name: String,
    /// Sentence or more.
    text: String,
    /// Slug or other plain word.
    word: String,
    /// E-mail address.
    email: String,
    /// Name of a gate.
    gate: String,
}

impl Texts {
    fn usual() -> Self {
        Self {
            name: "mooring-3".to_owned(),
            text: "Reads the mooring buoys and contributes to sea-surface-temp.".to_owned(),
            word: "tide-levels".to_owned(),
            email: "ops@harbour-lab.example".to_owned(),
            gate: "screen".to_owned(),
        }
    }

    fn hostile() -> Self {
        let script = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> style=\"x\"";
        Self {
            name: format!("{script}\u{202e}ملاح{}", "x".repeat(500)),
            text: format!("{script} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{202e}{}", "word ".repeat(500)),
            word: format!("{script}{}", "w".repeat(500)),
            email: format!("\"><script>alert(1)</script>{}@example.org", "a".repeat(60)),
            gate: script.to_owned(),
        }
    }
}

/// Returns a text that must stay text.
#[cfg(test)]
pub(crate) fn hostile_text() -> String {
    Texts::hostile().text
}

/// Returns the time some minutes before that of the samples.
const fn ago(minutes: i64) -> Instant {
    Instant(NOW.0 - minutes * 60_000_000)
}

/// Returns the time some minutes after that of the samples.
const fn ahead(minutes: i64) -> Instant {
    ago(-minutes)
}

/// Returns the frame of a page for a visitor.
fn visitor(path: &str) -> PageLayout {
    PageLayout {
        theme: Theme::System,
        person: None,
        form_token: "ZmFrZS10b2tlbg".to_owned(),
        path: path.to_owned(),
        waits: Vec::new(),
        credits: None,
        now: NOW,
        base: "https://sluice.example".to_owned(),
    }
}

/// Returns the frame of a page for a person who is signed in.
fn person(path: &str, texts: &Texts, attention: u32) -> PageLayout {
    PageLayout {
        person: Some(Person {
            email: texts.email.clone(),
            role: None,
        }),
        waits: (0..attention).map(|_matter| "/console/agents".to_owned()).collect(),
        credits: Some(crate::CreditBalance::default()),
        ..visitor(path)
    }
}

/// Samples so far.
struct Book {
    prefix: &'static str,
    samples: Vec<Sample>,
}

impl Book {
    fn add(&mut self, name: &str, page: &dyn Page) -> Result<(), Error> {
        self.samples.push(Sample {
            name: format!("{}{name}", self.prefix),
            html: page.html()?,
        });
        Ok(())
    }
}

/// Returns all samples.
pub fn samples() -> Result<Vec<Sample>, Error> {
    let mut book = Book {
        prefix: "",
        samples: Vec::new(),
    };
    for (prefix, texts) in [("", Texts::usual()), ("hostile-", Texts::hostile())] {
        book.prefix = prefix;
        site::add(&mut book, &texts)?;
        overview::add(&mut book, &texts)?;
        console::add(&mut book, &texts)?;
        money::add(&mut book, &texts)?;
        moderation::add(&mut book, &texts)?;
        owner::add(&mut book, &texts)?;
        market::add(&mut book, &texts)?;
        units::add(&mut book, &texts)?;
        board::add(&mut book, &texts)?;
        checkout::add(&mut book, &texts)?;
        sql::add(&mut book, &texts)?;
        dataset::add(&mut book, &texts)?;
        versions::add(&mut book, &texts)?;
        docs::add(&mut book, &texts)?;
        accounts::add(&mut book, &texts)?;
        disputes::add(&mut book, &texts)?;
    }
    book.prefix = "empty-";
    site::add_empty(&mut book)?;
    overview::add_empty(&mut book)?;
    console::add_empty(&mut book)?;
    moderation::add_empty(&mut book)?;
    money::add_empty(&mut book)?;
    market::add_empty(&mut book)?;
    units::add_empty(&mut book)?;
    board::add_empty(&mut book)?;
    dataset::add_empty(&mut book)?;
    accounts::add_empty(&mut book)?;
    disputes::add_empty(&mut book)?;
    Ok(book.samples)
}

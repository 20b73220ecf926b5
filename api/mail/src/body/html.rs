//! The body of a letter as HTML for mail programs: tables and styles beside each element, since many drop the rest.
//!
//! Invariant: every text goes through [`escaped`], and the result is ASCII.

use std::fmt::Write as _;

use super::{CHOICE, FIXED, LetterBlock, LetterBody, LetterEnding};

/// What programs that keep a style sheet do better: dark colours and small screens.
const STYLES: &str = "\
<style>
:root { color-scheme: light dark; }
a { color: #00607d; }
@media (prefers-color-scheme: dark) {
  .bg { background: #0b151a !important; }
  .card { background: #111c23 !important; border-color: #2a373f !important; }
  .ink, .ink a { color: #e7eef0 !important; }
  .ink2, .ink2 a, .quote { color: #b1bdc1 !important; }
  .quote { border-color: #4b5a62 !important; }
  .line { border-color: #2a373f !important; }
  .foot, .foot a { color: #8f9ca2 !important; }
  a { color: #72cde2 !important; }
  .btn { background: #72cde2 !important; }
  .btn-a { color: #0b1a22 !important; }
  .post { border-color: #b1bdc1 !important; }
  .plate { background: #b1bdc1 !important; }
}
@media (max-width: 480px) {
  .card { padding: 20px 18px !important; }
  .pad { padding: 0 10px !important; }
}
</style>
";
/// Attributes of tables that only place things.
const PLACED: &str = "role=\"presentation\" cellpadding=\"0\" cellspacing=\"0\"";
/// Mark of the service, drawn with borders, since pictures would be loaded.
const MARK: &str = "\
<td class=\"post\" style=\"width:6px;height:18px;border-left:2px solid #404e57;border-right:2px solid #404e57;\
font-size:0;line-height:0;vertical-align:top\">
<div class=\"plate\" style=\"height:8px;background:#404e57\"></div></td>
<td class=\"ink\" style=\"padding-left:9px;font-size:17px;font-weight:700;color:#12202a\">Sluice</td>";
const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";

/// Returns the letter as HTML.
pub(super) fn page(body: &LetterBody, title: &str, home: &str) -> String {
    let title = escaped(title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"supported-color-schemes\" content=\"light dark\">\n\
         <meta name=\"format-detection\" content=\"telephone=no, date=no, address=no, email=no\">\n\
         <title>{title}</title>\n{STYLES}</head>\n\
         <body class=\"bg\" style=\"margin:0;padding:0;background:#f3f6f8;color:#12202a;font-family:{FONT}\">\n"
    );
    if !body.glance.is_empty() {
        let glance = escaped(&body.glance);
        add(
            &mut html,
            format_args!("<div style=\"display:none;max-height:0;overflow:hidden\">{glance}</div>\n"),
        );
    }
    add(
        &mut html,
        format_args!(
            "<main>\n<table {PLACED} width=\"100%\"><tr><td class=\"pad\" align=\"center\" style=\"padding:0 16px\">\n\
             <table {PLACED} width=\"100%\" style=\"max-width:600px\">\n\
             <tr><td style=\"padding:24px 0 14px\"><table {PLACED}><tr>\n{MARK}\n</tr></table></td></tr>\n\
             <tr><td class=\"card\" style=\"background:#ffffff;border:1px solid #d5dde1;border-radius:6px;\
             padding:28px 32px;text-align:left\">\n\
             <h1 class=\"ink\" style=\"margin:0 0 14px;font-size:22px;line-height:28px;font-weight:640;color:#12202a\">\
             {title}</h1>\n"
        ),
    );
    for block in &body.blocks {
        write(block, home, &mut html);
    }
    let (reason, ending) = (escaped(&body.reason), ending(&body.ending));
    add(
        &mut html,
        format_args!(
            "</td></tr>\n<tr><td class=\"foot\" style=\"padding:16px 2px 32px;font-size:13px;line-height:20px;\
             color:#596770;text-align:left\">{reason}{ending}</td></tr>\n\
             </table></td></tr></table>\n</main></body></html>\n"
        ),
    );
    html
}

fn ending(ending: &LetterEnding) -> String {
    match ending {
        LetterEnding::Open => String::new(),
        LetterEnding::Fixed => format!(" {FIXED}"),
        LetterEnding::Choice(address) => {
            let address = escaped(address);
            // The address is shown too: where links are taken out of letters, it is all that is left.
            format!(
                "<br><a href=\"{address}\" style=\"color:#596770\">{CHOICE}</a>:\n\
                 <span style=\"word-break:break-all\">{address}</span>"
            )
        }
    }
}

fn write(block: &LetterBlock, home: &str, html: &mut String) {
    match block {
        LetterBlock::Paragraph(sentences) => {
            let linked = linked(sentences, home);
            let style = "margin:0 0 16px;font-size:16px;line-height:24px";
            add(html, format_args!("<p class=\"ink\" style=\"{style}\">{linked}</p>\n"));
        }
        LetterBlock::Note(sentences) => {
            let linked = linked(sentences, home);
            let style = "margin:0 0 16px;font-size:14px;line-height:21px";
            add(html, format_args!("<p class=\"ink2\" style=\"{style}\">{linked}</p>\n"));
        }
        LetterBlock::Heading(words) => {
            let words = escaped(words);
            let style = "margin:24px 0 8px;font-size:16px;line-height:22px";
            add(html, format_args!("<h2 class=\"ink\" style=\"{style}\">{words}</h2>\n"));
        }
        LetterBlock::Quote(text) => {
            let lines: Vec<String> = text.lines().map(escaped).collect();
            let (lines, style) = (
                lines.join("<br>\n"),
                "margin:0 0 16px;padding:2px 0 2px 14px;border-left:3px solid #b9c6cc;font-size:16px;line-height:24px;\
                 word-break:break-word",
            );
            add(
                html,
                format_args!("<blockquote class=\"quote\" dir=\"auto\" style=\"{style}\">{lines}</blockquote>\n"),
            );
        }
        LetterBlock::Facts(facts) => write_facts(facts, html),
        LetterBlock::Items(items) => {
            let style = "margin:0 0 16px;padding:0 0 0 20px;font-size:16px;line-height:24px";
            add(html, format_args!("<ul class=\"ink\" style=\"{style}\">\n"));
            for item in items {
                let item = linked(item, home);
                add(html, format_args!("<li style=\"margin:0 0 6px\">{item}</li>\n"));
            }
            html.push_str("</ul>\n");
        }
        LetterBlock::Button(words, address) => {
            let (words, address) = (escaped(words), escaped(address));
            add(
                html,
                format_args!(
                    "<table {PLACED} style=\"margin:8px 0 12px\"><tr><td class=\"btn\" \
                     style=\"background:#00607d;border-radius:4px\">\
                     <a class=\"btn-a\" href=\"{address}\" style=\"display:inline-block;padding:12px 22px;\
                     font-size:16px;line-height:20px;font-weight:600;color:#ffffff;text-decoration:none\">{words}</a>\
                     </td></tr></table>\n\
                     <p class=\"ink2\" style=\"margin:0 0 16px;font-size:13px;line-height:20px;word-break:break-all\">\
                     {address}</p>\n"
                ),
            );
        }
    }
}

fn write_facts(facts: &[(String, String)], html: &mut String) {
    let style = "margin:0 0 16px;border-collapse:collapse";
    add(
        html,
        format_args!("<table {PLACED} width=\"100%\" style=\"{style}\">\n"),
    );
    for (name, value) in facts {
        let (name, value) = (escaped(name), escaped(value));
        let cell = "font-size:14px;line-height:20px;vertical-align:top;border-bottom:1px solid #dfe6e9";
        add(
            html,
            format_args!(
                "<tr><td class=\"ink2 line\" style=\"padding:6px 16px 6px 0;{cell};white-space:nowrap\">{name}</td>\n\
                 <td class=\"ink line\" dir=\"auto\" style=\"padding:6px 0;{cell};word-break:break-word\">\
                 {value}</td></tr>\n"
            ),
        );
    }
    html.push_str("</table>\n");
}

/// Returns sentences of the service, in which its own addresses are links.
fn linked(sentences: &str, home: &str) -> String {
    let mut html = String::with_capacity(sentences.len());
    for word in sentences.split_whitespace() {
        if !html.is_empty() {
            html.push(' ');
        }
        let address = word.trim_end_matches(['.', ',', ':', ';', ')']);
        let rest = address.strip_prefix(home);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#'])) {
            let (shown, end) = (escaped(address), escaped(&word[address.len()..]));
            add(&mut html, format_args!("<a href=\"{shown}\">{shown}</a>{end}"));
        } else {
            html.push_str(&escaped(word));
        }
    }
    html
}

/// Returns a text as characters of HTML, for elements and for attributes in double quotes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#x27;"),
            '\n' | '\t' => html.push(' '),
            // A control character has no form in HTML, not even an escaped one.
            control if control.is_control() => html.push_str("&#xfffd;"),
            plain if plain.is_ascii() => html.push(plain),
            other => add(&mut html, format_args!("&#x{:x};", u32::from(other))),
        }
    }
    html
}

fn add(html: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writes to a string cannot fail.
    html.write_fmt(piece).unwrap_or_default();
}

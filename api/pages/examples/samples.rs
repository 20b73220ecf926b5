//! Writes a sample of every page and the assets into a folder: `samples FOLDER`.

use std::path::Path;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = env::args().nth(1).ok_or("usage: samples FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let mut links = std::collections::BTreeSet::new();
    for sample in pages::testing::samples()? {
        let parts = sample.html.split('"').filter(|part| part.starts_with("/assets/"));
        links.extend(parts.map(str::to_owned));
        fs::write(folder.join(format!("{}.html", sample.name)), &sample.html)?;
    }
    let fonts = ["atkinson-next-latin.woff2", "atkinson-next-latin-ext.woff2"];
    let root = links
        .iter()
        .next()
        .and_then(|link| link.rsplit_once('/'))
        .ok_or("no page has assets")?
        .0;
    let fonts: Vec<_> = fonts.iter().map(|name| format!("{root}/{name}")).collect();
    for link in links.iter().chain(&fonts) {
        let asset = pages::asset(link).ok_or_else(|| format!("no asset at {link}"))?;
        let file = folder.join(link.trim_start_matches('/'));
        fs::create_dir_all(file.parent().ok_or("no folder")?)?;
        fs::write(file, asset.bytes)?;
    }
    Ok(())
}

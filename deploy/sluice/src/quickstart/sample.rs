//! The collector of a quickstart, which reads a file of its own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use catalog::storage::create_directory;
use collectors::SAMPLE;

use super::report::{head, item};
use crate::assemble::RunningService;

/// Time for the first run, and the interval at which it is looked for.
const FIRST_RUN_TIMEOUT: Duration = Duration::from_secs(30);
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Writes the source and its definition into the folder `sources` of the data, unless they are there, and returns the
/// path of the definition.
pub(super) fn write(data: &Path) -> anyhow::Result<String> {
    let folder = data.join("sources");
    create_directory(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    for (name, text) in SAMPLE {
        let path = folder.join(name);
        // A file that a person has changed is kept.
        if !path.exists() {
            fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
    }
    Ok(folder.join(SAMPLE[0].0).display().to_string())
}

/// Waits for the first run, and prints what it did.
pub(super) async fn show(running: &RunningService, base: &str) -> anyhow::Result<()> {
    let store = running.store().context("the service has no database")?;
    let collectors = store.collectors();
    let first = async {
        loop {
            let runs = collectors.runs(1).await?;
            for collector in collectors.all().await? {
                let last = runs.get(&collector.seen.name).and_then(|runs| runs.first());
                if let Some(last) = last.filter(|run| run.ended_at.is_some()) {
                    return anyhow::Ok((collector, last.clone()));
                }
            }
            tokio::time::sleep(RUN_POLL_INTERVAL).await;
        }
    };
    head("A collector adds public facts on a schedule, through the same gates:")?;
    let Ok(ran) = tokio::time::timeout(FIRST_RUN_TIMEOUT, first).await else {
        return Ok(item("collector", "its first run is still under way")?);
    };
    let (collector, run) = ran?;
    let outcome = run.outcome.map_or("running", store::RunOutcome::as_str);
    item(
        &collector.seen.name,
        &format!(
            "{outcome}: {} records fetched, {} new; by `{}`, next at {}",
            run.counts.fetched, run.counts.added, collector.seen.schedule, collector.next_at
        ),
    )?;
    item(
        "runs",
        &format!("{base}/collectors, and in the console {base}/console/collectors"),
    )?;
    Ok(())
}

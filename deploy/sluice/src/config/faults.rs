//! What a crash test asks of this process, by the environment: test builds only.

use std::path::PathBuf;

use types::fault::{self, InjectedBug};

use super::Error;

/// The faults of this process.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Whether a second worker with a catalog of its own takes part in every table (`SLUICE_FAULT_RIVAL=1`).
    pub rival: bool,
}

impl Faults {
    /// Reads the environment and arms the process: `SLUICE_FAULT_POINT` names where it kills itself,
    /// `SLUICE_FAULT_NTH` at which passage from 1, `SLUICE_FAULT_AFTER` a file before which none counts,
    /// `SLUICE_FAULT_PLANT` the bug it has, `SLUICE_FAULT_LETHAL` a text that ends it when it is judged.
    pub(super) fn read() -> Result<Self, Error> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let point = variable("SLUICE_FAULT_POINT");
        if !point.is_empty() && !fault::POINTS.contains(&point.as_str()) {
            return Err(Error::Fault(format!("`{point}` is not a crash point")));
        }
        let nth = variable("SLUICE_FAULT_NTH");
        let nth = if nth.is_empty() { Ok(1) } else { nth.parse() }
            .map_err(|error| Error::Fault(format!("SLUICE_FAULT_NTH `{nth}`: {error}")))?;
        let bug_name = variable("SLUICE_FAULT_PLANT");
        let bug = InjectedBug::ALL
            .iter()
            .find(|(name, _)| *name == bug_name)
            .map(|(_, bug)| *bug);
        if bug.is_none() && !bug_name.is_empty() {
            return Err(Error::Fault(format!("`{bug_name}` is not an injected bug")));
        }
        let after = Some(variable("SLUICE_FAULT_AFTER")).filter(|after| !after.is_empty());
        let lethal = variable("SLUICE_FAULT_LETHAL");
        if !point.is_empty() || bug.is_some() || !lethal.is_empty() {
            fault::arm(point, nth, after.map(PathBuf::from), bug, lethal);
        }
        Ok(Self {
            rival: variable("SLUICE_FAULT_RIVAL") == "1",
        })
    }
}

//! Faults that a crash test requests through the environment. Test builds only.

use std::path::PathBuf;

use types::fault::{self, InjectedBug};

use super::Error;

/// Faults that the process has from its start.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// True if a second worker with its own catalog competes for every table (`SLUICE_FAULT_RIVAL=1`).
    pub rival: bool,
}

impl Faults {
    /// Reads the environment and arms the process.
    ///
    /// - `SLUICE_FAULT_POINT`: the crash point at which the process kills itself.
    /// - `SLUICE_FAULT_NTH`: the passage at which it does so, from 1.
    /// - `SLUICE_FAULT_AFTER`: a file; passages count only once it exists.
    /// - `SLUICE_FAULT_PLANT`: the injected bug.
    /// - `SLUICE_FAULT_LETHAL`: a text that kills the process when a record with it is judged.
    pub(super) fn read() -> Result<Self, Error> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let point = variable("SLUICE_FAULT_POINT");
        let lists: [&[&str]; 8] = [
            &fault::CRASH_POINTS,
            &fault::ACCOUNT_POINTS,
            &fault::KNOWLEDGE_POINTS,
            &fault::PAY_POINTS,
            &fault::APPROVAL_POINTS,
            &fault::COLLECTOR_POINTS,
            &fault::DELETION_POINTS,
            &fault::PROFILE_POINTS,
        ];
        let is_listed = |point| lists.iter().any(|list| list.contains(&point));
        if !point.is_empty() && !is_listed(point.as_str()) {
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

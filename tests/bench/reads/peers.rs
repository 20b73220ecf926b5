//! What others take for the same, in processes of their own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// Milliseconds of the clock and of processors.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Cost {
    pub(super) wall: f64,
    pub(super) cpu: f64,
}

impl Cost {
    pub(super) const NONE: Self = Self { wall: 0.0, cpu: 0.0 };

    /// The best of both, each for itself.
    pub(super) fn best(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
        }
    }
}

/// Costs by what was done.
pub(super) type Costs = BTreeMap<String, Cost>;

/// The Python of the peers.
#[derive(Debug)]
pub(super) struct Peers {
    python: String,
}

impl Peers {
    /// The Python that `SLUICE_BENCH_PYTHON` names; without it nobody else is measured.
    pub(super) fn of_environment() -> Option<Self> {
        let python = std::env::var("SLUICE_BENCH_PYTHON").ok()?;
        Some(Self { python })
    }

    /// Runs one of them; none where it is missing or fails, which is said.
    pub(super) fn run(&self, arguments: &[&str]) -> Option<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/reads/peers.py");
        let output = Command::new(&self.python).arg(script).args(arguments).output().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            println!(
                "{arguments:?} failed: {}",
                said.trim().lines().last().unwrap_or_default()
            );
            return None;
        }
        Some(String::from_utf8(output.stdout).unwrap())
    }

    pub(super) fn costs(&self, arguments: &[&str]) -> Costs {
        let printed = self.run(arguments);
        printed.map_or_else(Costs::new, |text| serde_json::from_str(text.trim()).unwrap())
    }
}

/// Keeps the best of each.
pub(super) fn keep(best: &mut Costs, costs: Costs) {
    for (name, cost) in costs {
        best.entry(name)
            .and_modify(|kept| *kept = kept.best(cost))
            .or_insert(cost);
    }
}

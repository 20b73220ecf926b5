//! Folders for the data, state and configuration of the user (XDG Base Directory Specification).
//!
//! Invariant: a relative path in the environment is ignored, as the specification demands.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Returns `$XDG_DATA_HOME`, or else `.local/share` in the home folder. `None` if neither is an absolute path.
pub fn data_home() -> Option<PathBuf> {
    resolve(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"), ".local/share")
}

/// Returns `$XDG_STATE_HOME`, or else `.local/state` in the home folder. `None` if neither is an absolute path.
pub fn state_home() -> Option<PathBuf> {
    resolve(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"), ".local/state")
}

/// Returns `$XDG_CONFIG_HOME`, or else `.config` in the home folder. `None` if neither is an absolute path.
pub fn config_home() -> Option<PathBuf> {
    resolve(env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"), ".config")
}

/// Returns true if the environment has a key for services, `SLUICE_KEY`, and it is this one.
pub fn is_key_of_environment(key: &str) -> bool {
    env::var_os("SLUICE_KEY").is_some_and(|found| found == key)
}

/// Returns true if the terminal has a cursor that signs can move. A person without one gets lines only.
pub fn has_cursor() -> bool {
    env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Returns true if the environment has a key for services, `SLUICE_KEY`.
pub fn has_key_of_environment() -> bool {
    env::var_os("SLUICE_KEY").is_some_and(|found| !found.is_empty())
}

fn resolve(named: Option<OsString>, home: Option<OsString>, default: &str) -> Option<PathBuf> {
    // An empty variable is not absolute either, so it counts as unset.
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    named
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_kept_where_the_specification_says() {
        let resolved = |data: Option<&str>, home: Option<&str>| {
            resolve(data.map(OsString::from), home.map(OsString::from), ".local/share")
        };
        let home = Some(PathBuf::from("/home/ada/.local/share"));
        assert_eq!(resolved(Some("/data"), Some("/home/ada")), Some("/data".into()));
        for unusable in [None, Some(""), Some("data")] {
            assert_eq!(resolved(unusable, Some("/home/ada")), home);
            assert_eq!(resolved(unusable, None), None);
        }
    }
}

//! Rules of `robots.txt` (RFC 9309).
//!
//! Invariant: the longest matching rule decides, and of two as long the one that allows. What no rule matches is
//! allowed.

/// Product token that the rules of a server are looked up by.
const ROBOTS_AGENT: &str = "sluice";

/// Rules of a server for this client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Robots {
    /// Pattern of a path, and true if it allows.
    rules: Vec<(String, bool)>,
}

impl Robots {
    /// Reads the rules of the groups that name this client, or of those for every client.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut own, mut all, mut has_own) = (Vec::new(), Vec::new(), false);
        let (mut is_own, mut is_all, mut in_agents) = (false, false, false);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "user-agent" => {
                    // Lines of agents that follow each other share one group.
                    if !in_agents {
                        (is_own, is_all) = (false, false);
                    }
                    in_agents = true;
                    is_all |= value == "*";
                    let agent = value.to_ascii_lowercase();
                    let token = agent.split(['/', ' ']).next().unwrap_or_default();
                    is_own |= token == ROBOTS_AGENT;
                    has_own |= is_own;
                }
                "allow" | "disallow" => {
                    in_agents = false;
                    // An empty rule matches nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = (value.to_owned(), name == "allow");
                    if is_own {
                        own.push(rule.clone());
                    }
                    if is_all {
                        all.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self {
            // A group that names this client replaces the general one, even with fewer rules (RFC 9309
            // section 2.2.1).
            rules: if has_own { own } else { all },
        }
    }

    /// Returns true if a path, with its query, may be fetched.
    pub(crate) fn allow(&self, path: &str) -> bool {
        let matching = self.rules.iter().filter(|(pattern, _)| matches(pattern, path));
        matching
            // By octets, as RFC 9309 section 2.2.2 counts them; of equal lengths, `true` is the
            // greater.
            .max_by_key(|(pattern, allows)| (pattern.len(), *allows))
            .is_none_or(|(_, allows)| *allows)
    }
}

/// Returns true if a pattern matches the beginning of a path. `*` stands for any text, `$` at the end for the end.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = pattern.strip_suffix('$').map_or((pattern, false), |rest| (rest, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        if is_last && whole {
            return rest.ends_with(part);
        }
        let Some(found) = rest.find(part) else { return false };
        rest = &rest[found + part.len()..];
    }
    !whole || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_this_client_replaces_that_of_all() {
        let text = "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-Agent: Sluice/2 # us\nDisallow: /private\nAllow: /private/open\n";
        let robots = Robots::parse(text);
        assert!(robots.allow("/data.json") && robots.allow("/private/open/1"));
        assert!(!robots.allow("/private/x"));
        let all = Robots::parse("user-agent: *\ndisallow: /api/\nAllow: /api/feed$\ndisallow: /*.zip\ndisallow:\n");
        assert!(all.allow("/api/feed") && all.allow("/feed"));
        assert!(!all.allow("/api/feed2") && !all.allow("/x/y.zip?z"));
        assert!(Robots::parse("").allow("/"));
        assert!(Robots::parse("User-agent: sluicebox\nDisallow: /").allow("/"));
    }

    #[test]
    fn of_two_rules_the_longer_decides() {
        let robots = Robots::parse("User-agent: *\nAllow: /p\nDisallow: /\nDisallow: /p/q\nAllow: /p/q");
        assert!(robots.allow("/page") && robots.allow("/p/q"));
        assert!(!robots.allow("/other"));
    }
}

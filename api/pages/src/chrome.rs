//! Frame of every page: header, navigation, footer.

use crate::time::Instant;

/// Links of the header, in order.
const SITE_LINKS: &[(&str, &str)] = &[
    ("/projects", "Datasets"),
    ("/requests", "Requests"),
    ("/activity", "Activity"),
    ("/find", "Find"),
    ("/guide/agents.md", "For agents"),
    ("/openapi.json", "API"),
    ("/licenses", "Licences"),
];
/// Links of the console, in order.
const CONSOLE_LINKS: &[(&str, &str)] = &[
    ("/console", "Overview"),
    ("/console/agents", "Agents & keys"),
    ("/console/datasets", "Datasets"),
    ("/console/contributions", "Contributions"),
    ("/console/knowledge", "Knowledge"),
    ("/console/money", "Money"),
    ("/console/collectors", "Collectors"),
    ("/console/activity", "Activity"),
    ("/console/apps", "Apps"),
    ("/console/moderation", "Reports"),
    ("/console/settings", "Settings"),
];
/// Links of the footer, in order.
const FOOT_LINKS: &[(&str, &str)] = &[
    ("/guide/agents.md", "Guide for agents"),
    ("/openapi.json", "openapi.json"),
    ("/leaderboard", "Leaderboard"),
    ("/takedowns", "Takedown log"),
    ("/report", "Report an item"),
    ("/licenses", "Licences"),
    ("/terms", "Terms"),
];

/// Colours of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system of the reader.
    #[default]
    System,
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Theme {
    /// Returns the value of the form field and of the cookie.
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Returns the theme of a word, the system's for any other word.
    pub fn of(word: &str) -> Self {
        match word {
            "light" => Self::Light,
            "dark" => Self::Dark,
            // The word comes from a cookie, which anybody can set to anything.
            _ => Self::System,
        }
    }

    /// Returns the theme that the button of the header chooses.
    const fn next(self) -> Self {
        match self {
            // From the system's choice the button leads to dark: without a script, nobody knows what
            // the system chose.
            Self::System => Self::Dark,
            Self::Dark => Self::Light,
            Self::Light => Self::System,
        }
    }
}

/// Person who is signed in.
#[derive(Clone, Debug)]
pub struct Person {
    /// E-mail address of the person.
    pub email: String,
}

/// Frame of a page.
#[derive(Clone, Debug)]
pub struct PageLayout {
    /// Colours that the reader chose.
    pub theme: Theme,
    /// Person who is signed in, if anybody.
    pub person: Option<Person>,
    /// Token that every form sends back as `form_token`; empty where there is none.
    // Bound to the session, and compared by every form operation: another site can make a browser send
    // the cookie, but does not know the token.
    pub form_token: String,
    /// Path and query of the page itself. Pages below `/console` have the rail of the console if a person is signed in.
    pub path: String,
    /// Number of matters that need the person, shown in the rail of the console.
    pub attention: u32,
    /// Time of rendering, from which relative times count.
    pub now: Instant,
    /// Address of this service without a slash at the end, for examples.
    pub base: String,
}

/// Link of a navigation.
pub(crate) struct NavLink {
    pub(crate) href: &'static str,
    pub(crate) label: &'static str,
    pub(crate) here: bool,
    pub(crate) badge: u32,
}

impl PageLayout {
    /// Returns true if the page stands in the console, with the rail beside it.
    pub fn is_console(&self) -> bool {
        // A refusal below `/console` is shown to strangers too, and they get the frame of the public
        // site.
        self.person.is_some() && covers("/console", self.place())
    }

    pub(crate) fn next_theme(&self) -> &'static str {
        self.theme.next().word()
    }

    pub(crate) fn theme_label(&self) -> &'static str {
        match self.theme.next() {
            Theme::System => "Use the colours of the system",
            Theme::Light => "Use light colours",
            Theme::Dark => "Use dark colours",
        }
    }

    pub(crate) fn nav(&self) -> Vec<NavLink> {
        self.links(SITE_LINKS, false)
    }

    pub(crate) fn rail(&self) -> Vec<NavLink> {
        self.links(CONSOLE_LINKS, true)
    }

    pub(crate) fn foot(&self) -> Vec<NavLink> {
        self.links(FOOT_LINKS, false)
    }

    /// Returns the path of the page without its query.
    pub(crate) fn place(&self) -> &str {
        // Links are compared by path alone, because the query of a list says which page of it is shown.
        self.path.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns links; of those that lead to the page or to one above it, the longest is the place of the reader.
    fn links(&self, links: &[(&'static str, &'static str)], is_console: bool) -> Vec<NavLink> {
        // A file becomes one of the datasets, which are the place that the rail shows.
        let place = match self.place() {
            place if covers("/console/publish", place) => "/console/datasets",
            // What waits for a yes, and what was bought, are matters of money.
            place if covers("/console/approvals", place) || covers("/console/receipts", place) => "/console/money",
            place => place,
        };
        let here = links.iter().map(|(href, _)| *href);
        let here = here.filter(|href| covers(href, place));
        // `/console` is above every page of the console. Only the longest match is the place.
        let here = here.max_by_key(|href| href.len());
        let link = |(href, label): &(&'static str, &'static str)| NavLink {
            href,
            label,
            here: here == Some(*href),
            badge: if is_console && *href == "/console" {
                self.attention
            } else {
                0
            },
        };
        links.iter().map(link).collect()
    }
}

/// Returns true if a path is an address or lies below it.
fn covers(address: &str, path: &str) -> bool {
    let rest = path.strip_prefix(address);
    // The slash keeps `/consoles` from counting as a page below `/console`.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

//! Frame of every page: header, navigation, footer, and what its head says of it to others.

mod links;

use types::vocabulary::StaffRole;

use crate::spend::CreditBalance;
use crate::time::Instant;

use self::links::{CONSOLE_LINKS, SITE_LINKS, STAFF_LINKS, about};

pub(crate) use self::links::foot;

/// Address of the console.
const CONSOLE: &str = "/console";

/// Address of the question of an app that wants to act for a person.
const CONSENT: &str = "/oauth/authorize";

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
}

/// Person who is signed in.
#[derive(Clone, Debug)]
pub struct Person {
    /// E-mail address of the person.
    pub email: String,
    /// Role of the person among the staff, whose pages the rail has, too.
    pub role: Option<StaffRole>,
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
    /// Page of each matter that needs the person, which the rail of the console counts.
    pub waits: Vec<String>,
    /// Credits of the person's account, which the header shows outside of the console.
    pub credits: Option<CreditBalance>,
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
    pub(crate) badge: usize,
}

/// Links of the rail below one caption.
pub(crate) struct RailGroup {
    pub(crate) caption: Option<&'static str>,
    pub(crate) links: Vec<NavLink>,
}

/// Choice of colours.
pub(crate) struct ThemeChoice {
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) here: bool,
}

impl PageLayout {
    /// Returns true if the page stands in the console, with the rail beside it.
    pub fn is_console(&self) -> bool {
        // A refusal below `/console` is shown to strangers too, and they get the frame of the public
        // site.
        self.person.is_some() && covers(CONSOLE, self.place())
    }

    /// Returns true if the page asks for a decision about rights, beside which no other way is offered.
    pub(crate) fn hides_navigation(&self) -> bool {
        self.place() == CONSENT
    }

    /// Returns true if search engines shall leave the page out: it shows what one reader asked or owns.
    pub(crate) fn is_unlisted(&self) -> bool {
        self.path.contains('?') || covers(CONSOLE, self.place())
    }

    /// Returns the one address under which the page shall be known.
    pub(crate) fn canonical(&self) -> String {
        format!("{}{}", self.base, self.place())
    }

    /// Returns a sentence about the page, as its place tells it.
    pub(crate) fn about(&self) -> &'static str {
        about(self.place())
    }

    /// Returns the colours of the browser's own bar with the media that each is for; empty for all.
    pub(crate) fn bar_colors(&self) -> Vec<(&'static str, &'static str)> {
        // The surface of the header, so that bar and header are one.
        const DAY: &str = "#ffffff";
        const NIGHT: &str = "#111c23";
        match self.theme {
            Theme::System => vec![
                (DAY, "(prefers-color-scheme: light)"),
                (NIGHT, "(prefers-color-scheme: dark)"),
            ],
            Theme::Light => vec![(DAY, "")],
            Theme::Dark => vec![(NIGHT, "")],
        }
    }

    /// Returns the words that the page was searched for.
    pub(crate) fn searched(&self) -> String {
        let query = self.path.strip_prefix("/find?").unwrap_or_default();
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs
            .find(|(name, _)| name == "q")
            .map_or_else(String::new, |(_, words)| words.into_owned())
    }

    pub(crate) fn themes(&self) -> Vec<ThemeChoice> {
        let themes = [
            (Theme::System, "System"),
            (Theme::Light, "Light"),
            (Theme::Dark, "Dark"),
        ];
        let choice = |(theme, label): (Theme, &'static str)| ThemeChoice {
            word: theme.word(),
            label,
            here: theme == self.theme,
        };
        themes.map(choice).into()
    }

    pub(crate) fn nav(&self) -> Vec<NavLink> {
        let here = match self.place() {
            "/pricing" => Some("/docs"),
            "/leaderboard" | "/takedowns" => Some("/activity"),
            _ => self.here(SITE_LINKS.iter().map(|(href, _)| *href)),
        };
        let link = |(href, label): &(&'static str, &'static str)| NavLink {
            href,
            label,
            here: here == Some(*href),
            badge: 0,
        };
        SITE_LINKS.iter().map(link).collect()
    }

    pub(crate) fn rail(&self) -> Vec<RailGroup> {
        let role = self.person.as_ref().and_then(|person| person.role);
        let staff = role.map(|_role| STAFF_LINKS);
        let is_hidden = |caption: Option<&str>, href: &str| match href {
            // Who decides about reports has them below another caption.
            "/console/moderation" => role.is_some() && caption == Some("Publish"),
            "/console/figures" => role != Some(StaffRole::Administrator),
            _ => false,
        };
        // Staff has the desk before what everybody has.
        let (first, rest) = CONSOLE_LINKS.split_at(1);
        let all: Vec<_> = first.iter().chain(staff).chain(rest).collect();
        let hrefs = || all.iter().flat_map(|(_, links)| links.iter()).map(|(href, _)| *href);
        let here = self.here(hrefs());
        let waiting: Vec<_> = self.waits.iter().filter_map(|path| nearest(hrefs(), path)).collect();
        let waits = |href: &str| waiting.iter().filter(|place| **place == href).count();
        let link = |(href, label): &(&'static str, &'static str)| NavLink {
            href,
            label,
            here: here == Some(*href),
            badge: if *href == CONSOLE {
                self.waits.len()
            } else {
                waits(href)
            },
        };
        let group = |(caption, links): &(Option<&'static str>, &[(&'static str, &'static str)])| RailGroup {
            caption: *caption,
            links: links
                .iter()
                .filter(|(href, _)| !is_hidden(*caption, href))
                .map(link)
                .collect(),
        };
        all.into_iter().map(group).collect()
    }

    /// Returns the name of the place in the console, for where the rail is a menu.
    pub(crate) fn rail_place(&self) -> &'static str {
        let links = self.rail().into_iter().flat_map(|group| group.links);
        let mut here = links.filter(|link| link.here);
        here.next().map_or("Console", |link| link.label)
    }

    /// Returns the path of the page without its query.
    pub(crate) fn place(&self) -> &str {
        place(&self.path)
    }

    /// Returns the longest of those addresses that lead to the page or to one above it.
    fn here(&self, hrefs: impl Iterator<Item = &'static str>) -> Option<&'static str> {
        nearest(hrefs, &self.path)
    }
}

/// Returns a path without its query.
fn place(path: &str) -> &str {
    // Links are compared by path alone, because the query of a list says which page of it is shown.
    path.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the longest of those addresses that lead to a path or to one above it.
fn nearest(hrefs: impl Iterator<Item = &'static str>, path: &str) -> Option<&'static str> {
    let place = match place(path) {
        // Approvals, receipts and disputes belong to the page of money.
        place if lies_below(&["/console/approvals", "/console/receipts"], place) => "/console/money",
        place if lies_below(&["/console/disputes", "/console/sales"], place) => "/console/money",
        place if lies_below(&["/console/reports", "/console/takedowns"], place) => "/console/moderation",
        place if covers("/console/invitations", place) => "/console/operators",
        place if covers("/console/login", place) => "/console/agents",
        place => place,
    };
    // `/console` is above every page of the console. Only the longest match is the place.
    hrefs.filter(|href| covers(href, place)).max_by_key(|href| href.len())
}

fn lies_below(addresses: &[&str], path: &str) -> bool {
    addresses.iter().any(|address| covers(address, path))
}

/// Returns true if a path is an address or lies below it.
fn covers(address: &str, path: &str) -> bool {
    let rest = path.strip_prefix(address);
    // The slash keeps `/consoles` from counting as a page below `/console`.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

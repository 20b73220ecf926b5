//! Links of the frame, and what each place of the site is.
//!
//! Invariant: every address here is one that the service answers.

/// Addresses with their labels.
type LabelledLinks = [(&'static str, &'static str)];

/// Links of the footer below one caption.
pub(crate) struct FootGroup {
    pub(crate) caption: &'static str,
    pub(crate) links: &'static LabelledLinks,
}

/// Links of the header, in order.
pub(super) const SITE_LINKS: &LabelledLinks = &[
    ("/projects", "Datasets"),
    ("/units", "Knowledge"),
    ("/requests", "Requests"),
    ("/activity", "Activity"),
    ("/docs", "Docs"),
];

/// Links of the console below their captions, in order.
pub(super) const CONSOLE_LINKS: &[(Option<&str>, &LabelledLinks)] = &[
    (None, &[("/console", "Overview")]),
    (
        Some("Publish"),
        &[
            ("/console/publish", "Publish a file"),
            ("/console/datasets", "Datasets"),
            ("/console/knowledge", "Knowledge"),
            ("/console/contributions", "Contributions"),
            ("/console/moderation", "Reports"),
        ],
    ),
    (Some("Use"), &[("/console/library", "Library")]),
    (
        Some("Account"),
        &[
            ("/console/money", "Money"),
            ("/console/quota", "Quota"),
            ("/console/agents", "Agents & keys"),
            ("/console/apps", "Apps"),
            ("/console/activity", "Activity"),
            ("/console/settings", "Settings"),
        ],
    ),
];

/// Links of the console for those who run the service.
pub(super) const STAFF_LINKS: &(Option<&str>, &LabelledLinks) = &(
    Some("Service"),
    &[
        ("/console/moderation", "Reports"),
        ("/console/operators", "Accounts"),
        ("/console/figures", "Figures"),
        ("/console/collectors", "Collectors"),
    ],
);

/// Links of the footer, in order.
const FOOT_LINKS: &[FootGroup] = &[
    FootGroup {
        caption: "Market",
        links: &[
            ("/projects", "Datasets"),
            ("/units", "Knowledge"),
            ("/requests", "Requests"),
            ("/collectors", "Collectors"),
            ("/leaderboard", "Leaderboard"),
            ("/activity", "Activity"),
        ],
    },
    FootGroup {
        caption: "Build",
        links: &[
            ("/docs/connect", "Connect an agent"),
            ("/docs", "Docs"),
            ("/docs/api", "API reference"),
            ("/docs/errors", "Error codes"),
            ("/guide/agents.md", "Guide for agents"),
            ("/openapi.json", "openapi.json"),
            ("/llms.txt", "llms.txt"),
            ("/skill.md", "skill.md"),
        ],
    },
    FootGroup {
        caption: "Terms",
        links: &[
            ("/pricing", "Pricing"),
            ("/licenses", "Licences"),
            ("/terms", "Terms of service"),
            ("/docs/glossary", "Glossary"),
            ("/docs/changelog", "Changelog"),
        ],
    },
    FootGroup {
        caption: "Trust",
        links: &[
            ("/report", "Report an item"),
            ("/takedowns", "Takedown log"),
            ("/.well-known/service-keys", "Service keys"),
            ("/activity.atom", "Atom feed"),
        ],
    },
];

/// Sentences about places of the site.
const PLACES: &[(&str, &str)] = &[
    (
        "/activity",
        "What happened on Sluice: rows added to datasets, write-ups published, requests and answers, newest first.",
    ),
    (
        "/leaderboard",
        "Agents by their points for sales, first reads and rows that were added. Points are not money.",
    ),
    (
        "/takedowns",
        "The public log of items that were taken down on Sluice: the reason and the date, without names.",
    ),
    (
        "/report",
        "Report a dataset, a write-up or a text on Sluice to its moderators.",
    ),
    (
        "/licenses",
        "The licences under which datasets and write-ups on Sluice are offered.",
    ),
    ("/terms", "The terms of service of Sluice."),
    (
        "/signup",
        "Make an account on Sluice to let agents buy, sell and publish datasets and write-ups.",
    ),
    ("/signin", "Sign in to Sluice."),
];

/// Returns a sentence about the page at a place.
pub(super) fn about(place: &str) -> &'static str {
    let found = PLACES.iter().find(|(path, _)| *path == place);
    found.map_or(
        "Sluice is a marketplace where agents sell datasets that grow row by row, and reviewed write-ups of what they \
         measured.",
        |(_, about)| about,
    )
}

/// Returns the links of the footer.
pub(crate) const fn foot() -> &'static [FootGroup] {
    FOOT_LINKS
}

//! Page of an item that was public and is not there any more.
//!
//! Invariant: the page says when it ended and how, and nothing of what it was: no title, no words, no reason.

use askama::Template;
use types::Timestamp;

use crate::chrome::{PageLayout, Theme};
use crate::filters;

/// Kind of the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneThing {
    /// Dataset, at `/projects/{slug}`.
    Dataset,
    /// Version of a unit, at `/units/{id}`.
    Unit,
    /// A request on the board.
    Request,
    /// Agent, at `/agents/{name}`.
    Agent,
}

/// End of the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneEnd {
    /// It was taken down.
    TakenDown,
    /// Its account took it back.
    Withdrawn,
    /// Its text was erased.
    Erased,
}

/// Answer with status 404 to a person who opens an item that is gone.
#[derive(Debug, Template)]
#[template(path = "gone.html")]
pub struct GonePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Kind of the item.
    pub thing: GoneThing,
    /// End of the item.
    pub end: GoneEnd,
    /// Time of the end.
    pub at: Timestamp,
    /// Answer for programs, as JSON.
    pub json: String,
}

impl GonePage {
    const fn what(&self) -> &'static str {
        match self.thing {
            GoneThing::Dataset => "dataset",
            GoneThing::Unit => "write-up",
            GoneThing::Request => "request",
            GoneThing::Agent => "agent",
        }
    }

    const fn happened(&self) -> &'static str {
        match self.end {
            GoneEnd::TakenDown => "taken down",
            GoneEnd::Withdrawn => "withdrawn by its account",
            GoneEnd::Erased => "erased",
        }
    }

    /// Returns what that means for who bought it, or met it.
    const fn means(&self) -> &'static str {
        match (self.end, self.thing) {
            (GoneEnd::TakenDown, GoneThing::Dataset | GoneThing::Unit) => {
                "A person decided that, after a report or while one is looked into. It is not sold, and who bought it had a \
                 letter that says if it still reads. It comes back at this address if its owner turns out to be right."
            }
            (GoneEnd::TakenDown, _) => {
                "A person decided that after a report. It comes back at this address if its owner turns out to be right."
            }
            (GoneEnd::Withdrawn, _) => "It is not sold any more. Who bought or read it before keeps it.",
            (GoneEnd::Erased, _) => "Its text is gone for good.",
        }
    }

    /// Returns the list of what there is instead.
    const fn instead(&self) -> (&'static str, &'static str) {
        match self.thing {
            GoneThing::Dataset => ("/projects", "All datasets"),
            GoneThing::Unit => ("/find?kind=unit", "All write-ups"),
            GoneThing::Request => ("/requests", "The board"),
            GoneThing::Agent => ("/leaderboard", "Agents"),
        }
    }
}

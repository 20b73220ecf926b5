//! Messages that a worker has in work at the moment, and waits until there are none.
//!
//! Invariant: whatever runs on behalf of a message has a token until nothing of it runs any more, also what was given
//! up and only goes on to its end.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Counter of messages in work. Cheap to clone: clones count together.
#[derive(Clone, Debug)]
pub struct InWork {
    tokens: TaskTracker,
    hushed: Arc<watch::Sender<bool>>,
}

/// While it lives, something is in work.
#[derive(Debug)]
pub(crate) struct Token {
    _counted: TaskTrackerToken,
}

impl Default for InWork {
    fn default() -> Self {
        Self::new()
    }
}

impl InWork {
    /// Nothing is in work.
    pub fn new() -> Self {
        let tokens = TaskTracker::new();
        // Why: only one that is closed can be waited for, and it still gives tokens.
        tokens.close();
        Self {
            tokens,
            hushed: Arc::default(),
        }
    }

    /// Something is in work.
    pub(crate) fn token(&self) -> Token {
        Token {
            _counted: self.tokens.token(),
        }
    }

    /// A token for what can as well be done later; `None` while it should be.
    pub(crate) fn optional(&self) -> Option<Token> {
        // Why in this order: who hushes looks after that, so one of the two sees the other.
        let token = self.token();
        (!*self.hushed.borrow()).then_some(token)
    }

    /// Returns true while work that can be done later waits.
    pub(crate) fn hush(&self, hushed: bool) {
        self.hushed
            .send_if_modified(|was| std::mem::replace(was, hushed) != hushed);
    }

    /// Waits until what was put off can be done.
    pub(crate) async fn loud(&self) {
        let mut hushed = self.hushed.subscribe();
        // Ignored: the sender lives as long as this.
        let _always = hushed.wait_for(|hushed| !hushed).await;
    }

    /// Waits until what can be done later is to wait.
    pub(crate) async fn hushed(&self) {
        let mut hushed = self.hushed.subscribe();
        // Ignored as above.
        let _always = hushed.wait_for(|hushed| *hushed).await;
    }

    /// Returns true if nothing is in work.
    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Waits until nothing is in work.
    pub(crate) async fn emptied(&self) {
        self.tokens.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_in_work_when_the_last_token_is_gone() {
        let in_work = InWork::new();
        in_work.emptied().await;
        let (one, two) = (in_work.token(), in_work.clone().token());
        drop(one);
        assert!(!in_work.is_empty());
        let waiting = tokio::spawn({
            let in_work = in_work.clone();
            async move { in_work.emptied().await }
        });
        drop(two);
        waiting.await.unwrap();
        assert!(in_work.is_empty());
    }

    #[tokio::test]
    async fn what_can_wait_begins_nothing_while_it_is_quiet() {
        let in_work = InWork::new();
        assert!(in_work.optional().is_some());
        in_work.hush(true);
        assert!(in_work.optional().is_none());
        assert!(in_work.is_empty(), "it leaves nothing behind");
        let waiting = tokio::spawn({
            let in_work = in_work.clone();
            async move { in_work.loud().await }
        });
        in_work.hush(false);
        waiting.await.unwrap();
        assert!(in_work.optional().is_some());
    }
}

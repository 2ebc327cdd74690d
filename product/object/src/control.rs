//! Rules that a test may break, to see that its checks notice.
//!
//! Owns: the list of these rules.
//! Does not own: the rules, which stand in the modules that enforce them.
//! Invariants: outside this crate's tests no rule is broken.

/// A rule whose breach the checks must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedRule {
    /// A COMMIT is answered after its batch is durable.
    AnswerAfterDurable,
    /// A batch names a segment after its PUT was answered.
    NameAfterPut,
    /// A batch names a moved extent after the PUT of its new segment was answered.
    RenameAfterPut,
    /// A move leaves an extent that was overwritten meanwhile.
    RenameSameOnly,
    /// A dead segment is retained for checkpoints that may need it.
    DeleteAfterCheckpoints,
    /// A dead segment is retained for readers that just looked it up.
    DeleteAfterPause,
    /// A sweep of the own epoch removes only segments that were given up.
    SweepGivenUp,
    /// A sweep retains segments of later epochs.
    SweepEarlierEpochs,
    /// A segment is alive while an extent in memory waits to be named in it.
    WaitingIsAlive,
    /// The waiting extents are read before the scan of live bytes.
    WaitingBeforeScan,
    /// A segment that got a further extent during a scan of live bytes is alive.
    SharedIsAlive,
    /// A writer answers only if it was not fenced a short time ago.
    AnswerUnfenced,
    /// An opening waits until no older writer answers.
    SuccessorWaits,
    /// An opening that follows no clean end draws a new verifier.
    NewVerifier,
    /// A cut in several batches has its record until the last.
    CutRecord,
    /// The last batch of a removal takes the record `o`.
    RemoveLast,
    /// Each batch has the body that belongs to its extents.
    BodyInEachBatch,
    /// A scan beside a batch of the same file is repeated.
    ReadAgain,
    /// An opening goes on with begun cuts.
    ResumeCuts,
    /// A clean end writes all data first.
    DrainBeforeClean,
}

/// The rule that a test breaks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken {
    #[cfg(test)]
    pub(crate) rule: Option<CheckedRule>,
}

impl Broken {
    #[cfg(test)]
    pub(crate) fn is(&self, rule: CheckedRule) -> bool {
        self.rule == Some(rule)
    }

    #[cfg(not(test))]
    pub(crate) fn is(&self, _: CheckedRule) -> bool {
        false
    }
}

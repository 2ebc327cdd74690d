//! `afflux snapshot`: makes, lists and removes snapshots of a volume.
//!
//! Owns: the words.
//! Does not own: snapshots (`afflux_object_store`).
//! Invariants: none beyond its types.

use afflux_report::failure::Outcome;
use afflux_report::output;
use clap::Args;
use serde_json::json;

use super::{CommandTarget, call};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux snapshot s3://bucket/home before-upgrade\n  \
    afflux snapshot s3://bucket/home\n  afflux serve s3://bucket/home --snapshot before-upgrade\n  \
    afflux snapshot s3://bucket/home before-upgrade --remove\n\nA snapshot costs nothing but the space of later \
    changes. Of a volume that is being served, it has everything up to a moment within the last minute or so; \
    stop the server before, to have everything.")]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    target: CommandTarget,
    /// The snapshot to make; without a name, the snapshots are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Remove the snapshot with this name
    #[arg(long, requires = "name")]
    remove: bool,
    /// One JSON object a snapshot, one a line
    #[arg(long)]
    json: bool,
}

impl SnapshotArgs {
    pub(crate) fn run(&self) -> Outcome {
        let url = output::shown(&self.target.url);
        match &self.name {
            Some(name) if self.remove => {
                call(async { self.target.open().await?.remove_snapshot(name).await })?;
                self.say("removed", name, &format!("The snapshot {name} of {url} was removed."));
            }
            Some(name) => {
                call(async { self.target.open().await?.make_snapshot(name).await })?;
                self.say("made", name, &format!("The snapshot {name} of {url} was made."));
            }
            None => {
                for snapshot in call(async { self.target.open().await?.snapshots().await })? {
                    match self.json {
                        true => output::say(json!({ "snapshot": snapshot.name, "made": snapshot.made })),
                        false => output::say(format_args!("{}  {}", output::shown(&snapshot.name), snapshot.made)),
                    }
                }
            }
        }
        Ok(())
    }

    fn say(&self, what: &str, name: &str, words: &str) {
        match self.json {
            true => output::say(json!({ "snapshot": name, "is": what })),
            false => output::say(words),
        }
    }
}

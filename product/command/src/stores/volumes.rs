//! `afflux volumes`: the volumes in a bucket.
//!
//! Owns: the lines.
//! Does not own: the search (`afflux_object_store`).
//! Invariants: a line is an address that `afflux serve` takes.

use afflux_object_store::Store;
use afflux_report::failure::Outcome;
use afflux_report::output;
use clap::Args;
use serde_json::json;

use super::{CommandPlace, call};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux volumes s3://bucket\n  afflux volumes s3://bucket/team --json\n\n\
    Lists the volumes at the address and below, one address a line.")]
pub(crate) struct Volumes {
    #[command(flatten)]
    place: CommandPlace,
    /// One JSON object a volume, one a line
    #[arg(long)]
    json: bool,
}

impl Volumes {
    pub(crate) fn run(&self) -> Outcome {
        for volume in call(Store::volumes(&self.place.url, &self.place.options()))? {
            match self.json {
                true => output::say(json!({ "volume": volume })),
                false => output::say(output::shown(volume)),
            }
        }
        Ok(())
    }
}

//! Commands about volumes in object stores.
//!
//! Owns: their common arguments, the opening of a store for them and for a server, `afflux volumes`.
//! Does not own: the other commands (`check`, `snapshot`), the store and its waits (`afflux_object_store`).
//! Invariants: none of them serves, and only a snapshot writes anything to the store.

mod check;
mod snapshot;

use afflux_object_store::{Options, RequestWaits, Store, StoreError, wait};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};
use clap::Args;
use serde_json::json;

pub(crate) use self::check::Check;
pub(crate) use self::snapshot::SnapshotArgs;

/// The place that a command is about.
#[derive(Debug, Args)]
pub(crate) struct CommandTarget {
    /// s3://BUCKET/PREFIX, gs://…, az://… or file:///DIR
    #[arg(value_name = "STORE")]
    url: String,
    /// Address of an S3 store of one's own, such as http://store:9000
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

impl CommandTarget {
    /// Opens the store of a volume that is there.
    async fn open(&self) -> Result<Store, StoreError> {
        Store::open_to_read(&self.url, &options(self.endpoint.as_ref())).await
    }
}

/// The way to a store. Requests that wait are told of on standard error.
pub(crate) fn options(endpoint: Option<&String>) -> Options {
    Options { endpoint: endpoint.cloned(), told: Some(tell_waits), ..Options::default() }
}

fn tell_waits(url: &str, waits: &RequestWaits) {
    let why = output::bracketed(waits.why.as_ref());
    let requests = units::plural(waits.requests, "request");
    let age = units::latency(waits.oldest_ns);
    output::remark(format_args!("{}: {requests} without an answer, the oldest for {age}{why}", output::shown(url)));
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux volumes s3://bucket\n  afflux volumes s3://bucket/team --json\n\n\
    Lists the volumes at the address and below, one address a line.")]
pub(crate) struct Volumes {
    #[command(flatten)]
    target: CommandTarget,
    /// One JSON object a volume, one a line
    #[arg(long)]
    json: bool,
}

impl Volumes {
    /// Prints addresses that `afflux serve` takes.
    pub(crate) fn run(&self) -> Outcome {
        for volume in call(Store::volumes(&self.target.url, &options(self.target.endpoint.as_ref())))? {
            match self.json {
                true => output::say(json!({ "volume": volume })),
                false => output::say(output::shown(volume)),
            }
        }
        Ok(())
    }
}

/// Waits for a call of the store. Its error is the user's.
fn call<T>(call: impl Future<Output = Result<T, StoreError>>) -> Outcome<T> {
    wait(call).and_then(|result| result).map_err(|error| failure(&error))
}

/// The user's error. A wrong address or setting is a wrong use. A directory that cannot be opened is none.
pub(crate) fn failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Settings { url, .. } if url.starts_with("file:") => Failure::failed(output::shown(error)),
        StoreError::Address { .. } | StoreError::Settings { .. } => Failure::wrong_use(output::shown(error)),
        error => Failure::failed(output::shown(error)),
    }
}

//! Commands about volumes in object stores.
//!
//! Owns: their common arguments, the opening of a store for them.
//! Does not own: the single commands, the store (`afflux_object_store`).
//! Invariants: none of them serves, and only a snapshot writes anything to the store.

mod check;
mod snapshot;
mod volumes;

use afflux_object_store::{Options, Store, StoreError, wait};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use clap::Args;

use crate::store_waits;

pub(crate) use self::check::Check;
pub(crate) use self::snapshot::SnapshotArgs;
pub(crate) use self::volumes::Volumes;

/// The place that a command is about.
#[derive(Debug, Args)]
pub(crate) struct CommandPlace {
    /// s3://BUCKET/PREFIX, gs://…, az://… or file:///DIR
    #[arg(value_name = "STORE")]
    url: String,
    /// Address of an S3 store of one's own, such as http://store:9000
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

impl CommandPlace {
    fn options(&self) -> Options {
        Options { endpoint: self.endpoint.clone(), told: Some(store_waits::tell), ..Options::default() }
    }

    /// Opens the store of a volume that is there.
    async fn open(&self) -> Result<Store, StoreError> {
        Store::open_to_read(&self.url, &self.options()).await
    }
}

/// Waits for a call of the store. Its error is the user's.
fn call<T>(call: impl Future<Output = Result<T, StoreError>>) -> Outcome<T> {
    wait(call).and_then(|result| result).map_err(|error| match error {
        StoreError::Address { .. } | StoreError::Settings { .. } => Failure::wrong_use(output::shown(error)),
        error => Failure::failed(output::shown(error)),
    })
}

//! Snapshots of a volume.
//!
//! Owns: their making, listing and removal: each is a named checkpoint of the records without an end.
//! Does not own: the rule that retains the segments of a snapshot (`afflux_object`), reading one (`records::view`).
//! Invariants: a name is given once.

use std::sync::Arc;

use object_store::path::Path;
use slatedb::Checkpoint;
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::CheckpointOptions;

use crate::error::StoreError;
use crate::failure::of_records;
use crate::site::{Rooted, Site};

const NAME_BYTES_MAX: usize = 64;

/// A snapshot of a volume, as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Name that the user gave to the snapshot.
    pub name: String,
    /// When it was made, for people.
    pub made: String,
}

impl Snapshot {
    /// Reads a name.
    fn named(url: &str, name: &str) -> Result<(), StoreError> {
        check_snapshot_name(name).map_err(|why| StoreError::Settings { url: url.to_owned(), why })
    }
}

/// Refuses a text that no snapshot may have as its name.
///
/// # Errors
/// With the letters that a name may have.
pub fn check_snapshot_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(format!("'{name}' is no name of a snapshot: take 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, '-', '_', '.'"))
}

/// The checkpoint of a name.
pub(crate) fn find(url: &str, name: &str, there: Vec<Checkpoint>) -> Result<Checkpoint, StoreError> {
    let mut names = Vec::new();
    for checkpoint in there {
        match checkpoint.name.clone() {
            Some(its) if its == name => return Ok(checkpoint),
            its => names.extend(its),
        }
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let why = format!("there is no snapshot '{name}'; there are: {names}");
    Err(StoreError::Settings { url: url.to_owned(), why })
}

/// The volume's records, for changes of its checkpoints.
pub(crate) fn admin((folder, store): &(Path, Rooted)) -> Admin {
    AdminBuilder::new(folder.clone(), Arc::clone(store)).build()
}

pub(crate) async fn make(site: &Site, name: &str) -> Result<(), StoreError> {
    Snapshot::named(&site.url, name)?;
    if list(site).await?.iter().any(|snapshot| snapshot.name == name) {
        let why = format!("there is a snapshot '{name}'; choose another name, or remove that one first");
        return Err(StoreError::Settings { url: site.url.clone(), why });
    }
    let options = CheckpointOptions { name: Some(name.to_owned()), ..CheckpointOptions::default() };
    run(site, |admin| async move { admin.create_detached_checkpoint(&options).await.map(drop) }).await
}

pub(crate) async fn list(site: &Site) -> Result<Vec<Snapshot>, StoreError> {
    let mut there = run(site, |admin| async move { admin.list_checkpoints(None).await }).await?;
    there.sort_by_key(|checkpoint| checkpoint.create_time);
    let named = |checkpoint: Checkpoint| {
        let made = checkpoint.create_time.format("%F %T UTC").to_string();
        Some(Snapshot { name: checkpoint.name?, made })
    };
    Ok(there.into_iter().filter_map(named).collect())
}

pub(crate) async fn remove(site: &Site, name: &str) -> Result<(), StoreError> {
    let there = run(site, |admin| async move { admin.list_checkpoints(None).await }).await?;
    let id = find(&site.url, name, there)?.id;
    run(site, move |admin| async move { admin.delete_checkpoint(id).await }).await
}

/// Runs a call of the database's keeper on the store's threads.
async fn run<T: Send + 'static, F>(site: &Site, call: impl FnOnce(Admin) -> F + Send + 'static) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, slatedb::Error>> + Send + 'static,
{
    let admin = admin(&site.root());
    let called = site.threads.run(async move { call(admin).await }).await;
    let called = called.map_err(|_| StoreError::Threads { why: "they ended".to_owned() })?;
    called.map_err(|error| of_records(&site.url, &site.address, &error))
}

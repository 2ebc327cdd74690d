//! Commands about volumes in object stores: `afflux volumes`, `afflux check`, `afflux snapshot`.
//!
//! Owns: their common arguments and words, the verdict of a check, the opening of a store for them and for a server.
//! Does not own: the check (`afflux_object`), the store, its waits and its snapshots (`afflux_object_store`).
//! Invariants: none of them serves, and only a snapshot writes anything to the store. Success of a check means that
//! every name leads to its object, and that every byte of every file can be read.

use std::collections::{BTreeMap, BTreeSet};

use afflux_object::{CheckReport, ObjectVolumeError, VolumeUsage, check, paths, usage};
use afflux_object_store::{Options, RequestWaits, Store, StoreError, StoredObjects, ViewState, wait};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};
use clap::Args;
use serde_json::{Value, json};

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

/// The options of a connection to a store. Requests that wait are reported on standard error.
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
    afflux volumes s3://bucket --sizes\n\nLists the volumes at the address and below, one address a line. With --sizes \
    each line has the bytes of files in segments, what is stored for them and for names, and the garbage that a server \
    will remove.")]
pub(crate) struct Volumes {
    #[command(flatten)]
    target: CommandTarget,
    /// How much each volume stores
    #[arg(long)]
    sizes: bool,
    /// One JSON object a volume, one a line
    #[arg(long)]
    json: bool,
}

/// How much a volume stores.
struct Sizes {
    usage: VolumeUsage,
    stored: StoredObjects,
}

impl Sizes {
    fn text(&self) -> String {
        let Self { usage, stored } = self;
        let (live, garbage) = (units::data(usage.live_bytes), units::data(usage.garbage_bytes));
        let form = if usage.is_compressed { "compressed" } else { "not compressed" };
        let objects = units::plural(stored.objects, "object");
        format!("  {live} of files, {} in {objects} ({form}), {garbage} garbage", units::data(stored.bytes))
    }
}

impl Volumes {
    /// Prints addresses that `afflux serve` takes.
    pub(crate) fn run(&self) -> Outcome {
        for volume in call(Store::volumes(&self.target.url, &options(self.target.endpoint.as_ref())))? {
            let sizes = if self.sizes { Some(self.sizes_of(&volume)?) } else { None };
            match (self.json, sizes) {
                (true, None) => output::say(json!({ "volume": volume })),
                (true, Some(Sizes { usage, stored })) => output::say(json!({
                    "volume": volume,
                    "bytes": usage.live_bytes,
                    "garbage_bytes": usage.garbage_bytes,
                    "segments": usage.segments,
                    "compressed": usage.is_compressed,
                    "stored_bytes": stored.bytes,
                    "objects": stored.objects,
                })),
                (false, sizes) => {
                    let sizes = sizes.map_or_else(String::new, |sizes| sizes.text());
                    output::say(format_args!("{}{sizes}", output::shown(volume)));
                }
            }
        }
        Ok(())
    }

    fn sizes_of(&self, volume: &str) -> Outcome<Sizes> {
        let found = call(async {
            let store = Store::open_to_read(volume, &options(self.target.endpoint.as_ref())).await?;
            let view = store.view(&ViewState::Fixed).await?;
            Ok((usage(&view).await, store.stored().await?))
        })?;
        let failed = |error| Failure::failed(format!("{}: {}", output::shown(volume), output::shown(error)));
        Ok(Sizes { usage: found.0.map_err(failed)?, stored: found.1 })
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

/// The number of each volume's root.
const ROOT: u64 = 1;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux check s3://bucket/home\n  afflux check s3://bucket/home --json | jq \
    .damaged\n\nReads all data, names and attributes once, as of its start. Exits with 1 if anything is damaged, and names \
    the files and their bytes; all other bytes can be read. While a server writes the volume, a check of more than ten minutes may \
    miss segments that the server has removed meanwhile: check again.")]
pub(crate) struct Check {
    #[command(flatten)]
    target: CommandTarget,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// The object that a record's key names.
fn object_of(key: &[u8]) -> Option<u64> {
    key.get(1..).and_then(|rest| rest.first_chunk()).map(|ino| u64::from_be_bytes(*ino))
}

/// A record's key, in letters.
fn shown_key(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// The result with the paths of damaged files.
struct Checked {
    report: CheckReport,
    paths: BTreeMap<u64, Vec<u8>>,
}

impl Check {
    pub(crate) fn run(&self) -> Outcome {
        let checked = call(async {
            let store = self.target.open().await?;
            let view = store.view(&ViewState::Fixed).await?;
            let (objects, clock) = (store.objects(), store.clock());
            Ok(async {
                let report = check(&objects, &view, &clock).await?;
                let ranges = report.damaged.values().flat_map(|(_, ranges)| ranges);
                let faults = report.faults.iter().map(|(ino, _)| *ino).chain(report.misfits.iter().copied());
                let malformed = report.malformed.keys().filter_map(|key| object_of(key));
                let files: BTreeSet<u64> = ranges.map(|range| range.ino).chain(faults).chain(malformed).collect();
                let paths = paths(&view, &files).await?;
                Ok::<_, ObjectVolumeError>(Checked { report, paths })
            }
            .await)
        })?;
        let url = output::shown(&self.target.url);
        let checked = checked.map_err(|error| Failure::failed(format!("{url}: {}", output::shown(error))))?;
        output::say(if self.json { checked.json().to_string() } else { checked.text() });
        if checked.report.is_sound() {
            return Ok(());
        }
        if !checked.report.is_damaged() {
            return Err(Failure::failed(format!(
                "{url} could not be read whole; check it again once the store gives all"
            )));
        }
        Err(Failure::failed(format!("{url} is damaged; restore the files that are named, or remove them")))
    }
}

impl Checked {
    fn path(&self, ino: u64) -> String {
        match self.paths.get(&ino) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None if ino == ROOT => "/".to_owned(),
            None => format!("an object without a name (number {ino})"),
        }
    }

    fn text(&self) -> String {
        let CheckReport { damaged, unread, orphans, miscounted, misfits, faults, malformed, .. } = &self.report;
        let (segments, extents) = (units::count(self.report.segments), units::count(self.report.extents));
        let (inodes, names) = (units::count(self.report.inodes), units::count(self.report.names));
        let mut lines =
            vec![format!("{segments} segments, {extents} extents, {inodes} inodes and {names} names were read.")];
        if !orphans.is_empty() {
            let orphans = units::count(orphans.len() as u64);
            lines.push(format!("{orphans} segments belong to no file; a server removes them within a day."));
        }
        for (segment, (error, ranges)) in damaged {
            lines.push(format!("damaged: {}: {}", segment.name(), output::shown(error)));
            for range in ranges {
                let path = output::shown(self.path(range.ino));
                lines.push(format!("  {path}: bytes {} to {} cannot be read", range.start, range.end));
            }
        }
        let unread =
            unread.iter().map(|(segment, why)| format!("not read: {}: {}", segment.name(), output::shown(why)));
        lines.extend(unread);
        let miscounted = miscounted.iter().map(|(segment, (counted, found))| {
            format!("miscounted: {}: {found} live bytes, and its record says {counted}", segment.name())
        });
        lines.extend(miscounted);
        let misfits = misfits
            .iter()
            .map(|ino| format!("damaged: {}: its size does not fit to its bytes", output::shown(self.path(*ino))));
        lines.extend(misfits);
        let faults = faults.iter().map(|(ino, fault)| format!("damaged: {}: {fault}", output::shown(self.path(*ino))));
        lines.extend(faults);
        let malformed = malformed.iter().map(|(key, error)| match object_of(key) {
            Some(ino) => format!("damaged: {}: the record {}: {error}", output::shown(self.path(ino)), shown_key(key)),
            None => format!("damaged: the record {}: {error}", shown_key(key)),
        });
        lines.extend(malformed);
        lines.extend(self.report.miscounted_objects.map(|(counted, found)| {
            format!("miscounted: the volume counts {counted} files and directories, and {found} have names")
        }));
        lines.join("\n")
    }

    fn json(&self) -> Value {
        let report = &self.report;
        let damaged = report.damaged.iter().map(|(segment, (error, ranges))| {
            let ranges = ranges
                .iter()
                .map(|range| json!({ "file": self.path(range.ino), "start": range.start, "end": range.end }));
            json!({ "segment": segment.name(), "why": error.to_string(), "bytes": ranges.collect::<Vec<_>>() })
        });
        let unread = report.unread.iter().map(|(segment, why)| json!({ "segment": segment.name(), "why": why }));
        let miscounted = report.miscounted.iter().map(|(segment, (counted, found))| {
            json!({ "segment": segment.name(), "counted_bytes": counted, "live_bytes": found })
        });
        let faults =
            report.faults.iter().map(|(ino, fault)| json!({ "file": self.path(*ino), "why": fault.to_string() }));
        let malformed = report.malformed.iter().map(|(key, error)| {
            let file = object_of(key).map(|ino| self.path(ino));
            json!({ "record": shown_key(key), "file": file, "why": error.to_string() })
        });
        let miscounted_objects =
            report.miscounted_objects.map(|(counted, found)| json!({ "counted": counted, "found": found }));
        json!({
            "sound": report.is_sound(),
            "segments": report.segments,
            "extents": report.extents,
            "inodes": report.inodes,
            "names": report.names,
            "orphans": report.orphans.len(),
            "damaged": damaged.collect::<Vec<_>>(),
            "unread": unread.collect::<Vec<_>>(),
            "miscounted": miscounted.collect::<Vec<_>>(),
            "misfits": report.misfits.iter().map(|ino| self.path(*ino)).collect::<Vec<_>>(),
            "faults": faults.collect::<Vec<_>>(),
            "malformed": malformed.collect::<Vec<_>>(),
            "miscounted_objects": miscounted_objects,
        })
    }
}

//! Built-in workloads, as a user writes them: `readers:count=1000,block=512`.
//!
//! Owns: the form on the command line, its keys with ranges and defaults.
//! Does not own: the behaviour of the workloads (the simulator); job files.
//! Invariants: every parsed workload can be run; every error names the key, the value and the allowed values.

#[cfg(test)]
mod tests;

use std::path::Path;

use afflux_engine::settings::did_you_mean;
use afflux_simulator::LinkOptions;
use afflux_workloads::nfs_client::NfsClientOptions;
use afflux_workloads::{NfsStream, Readers, Workload};

use afflux_report::failure::{Failure, Outcome};
use afflux_report::{quantity, units};

/// The keys of each workload.
const READERS_KEYS: &str = "directory, count, size, block and over";
const NFS_CLIENT_KEYS: &str = "directory, size, record, window, in-flight, link, delay and loss";

/// Most bytes of a file, and of one call.
const SIZE_BYTES_MAX: u64 = 1 << 44;
const CALL_BYTES_MAX: u64 = 1 << 20;

/// The names of the workloads.
pub(super) const NAMES: [&str; 2] = ["readers", "nfs-client"];

/// The workload of this name, if there is one. A file of the same name still counts as a job file.
pub(super) fn parse(text: &str) -> Option<Outcome<Workload>> {
    let (name, keys) = text.split_once(':').unwrap_or((text, ""));
    if Path::new(text).exists() {
        return None;
    }
    let keys = Keys { text, keys };
    match name {
        "readers" => Some(readers(&keys)),
        "nfs-client" => Some(nfs_client(&keys)),
        _ => None,
    }
}

struct Keys<'a> {
    text: &'a str,
    keys: &'a str,
}

impl Keys<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        Failure::wrong_use(format!("'{}': {what}", self.text))
    }

    /// Calls `take` with each key and its value; `take` returns whether it knows the key.
    fn each(&self, known: &str, mut take: impl FnMut(&str, &str) -> Outcome<bool>) -> Outcome {
        let mut seen: Vec<&str> = Vec::new();
        for part in self.keys.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(self.wrong(format!("'{part}' is not KEY=VALUE; the keys are {known}")));
            };
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(self.wrong(format!("{key} is there twice")));
            }
            seen.push(key);
            if !take(key, value)? {
                let near = did_you_mean(key, known.split([',', ' ']).filter(|word| !word.is_empty()));
                return Err(self.wrong(format!("there is no key '{key}'{near}; the keys are {known}")));
            }
        }
        Ok(())
    }

    fn bytes(&self, key: &str, value: &str, max: u64) -> Outcome<u64> {
        let range = format!("1 byte to {}", units::memory(max));
        match quantity::bytes(value) {
            Ok(bytes) if (1..=max).contains(&bytes) => Ok(bytes),
            Ok(_) => Err(self.wrong(format!("{key}: '{value}' is out of range ({range})"))),
            Err(why) => Err(self.wrong(format!("{key}: '{value}' is {why} ({range})"))),
        }
    }

    fn count(&self, key: &str, value: &str, max: u64) -> Outcome<u64> {
        let count = value.parse::<u64>().ok().filter(|count| (1..=max).contains(count));
        count.ok_or_else(|| self.wrong(format!("{key}: '{value}' is not a number from 1 to {}", units::count(max))))
    }
}

fn readers(keys: &Keys<'_>) -> Outcome<Workload> {
    let mut readers = Readers {
        name: "readers".to_owned(),
        directory: String::new(),
        count: 1000,
        block_bytes: 512,
        file_bytes: 1 << 20,
        start_over_ns: 0,
    };
    keys.each(READERS_KEYS, |key, value| {
        match key {
            "directory" => value.clone_into(&mut readers.directory),
            "count" => readers.count = keys.count(key, value, 100_000)?,
            "size" => readers.file_bytes = keys.bytes(key, value, SIZE_BYTES_MAX)?,
            "block" => readers.block_bytes = keys.bytes(key, value, CALL_BYTES_MAX)?,
            "over" if value == "0" => readers.start_over_ns = 0,
            "over" => {
                let ns = quantity::nanoseconds(value);
                readers.start_over_ns = ns.map_err(|why| keys.wrong(format!("{key}: '{value}' is {why}")))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if readers.block_bytes > readers.file_bytes {
        return Err(keys.wrong("block: it is more than size, so that nothing would be read"));
    }
    Ok(Workload::Readers(readers))
}

fn nfs_client(keys: &Keys<'_>) -> Outcome<Workload> {
    let mut client = NfsClientOptions::default();
    let mut directory = String::new();
    let mut link = Vec::new();
    keys.each(NFS_CLIENT_KEYS, |key, value| {
        match key {
            "directory" => value.clone_into(&mut directory),
            "size" => client.file_bytes = keys.bytes(key, value, SIZE_BYTES_MAX)?,
            "record" => client.record_bytes = keys.bytes(key, value, CALL_BYTES_MAX)? as u32,
            "window" => client.dirty_limit_bytes = keys.bytes(key, value, SIZE_BYTES_MAX)?,
            "in-flight" => client.in_flight = keys.count(key, value, 65_536)? as u32,
            "link" => link.push(format!("rate={value}")),
            "delay" | "loss" => link.push(format!("{key}={value}")),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let link = LinkOptions::parse(&link.join(",")).map_err(|error| keys.wrong(error))?;
    Ok(Workload::NfsClient(NfsStream { name: "nfs-client".to_owned(), directory, client, link }))
}

//! The files behind a mount: a directory, or a volume in a store.
//!
//! Owns: its address, the arguments and the environment with which commands reach it.
//! Does not own: the store's programs (`gateway`).
//! Invariants: every command reaches the same volume.

use std::path::Path;
use std::process::Command;

use super::gateway::Bucket;

#[derive(Clone)]
pub(super) struct Volume {
    /// A directory's path, or a URL.
    pub(super) address: String,
    bucket: Option<Bucket>,
}

impl Volume {
    pub(super) fn directory(path: &Path) -> Self {
        Self { address: path.display().to_string(), bucket: None }
    }

    pub(super) fn file_store(path: &Path) -> Self {
        Self { address: format!("file://{}", path.display()), bucket: None }
    }

    pub(super) fn in_bucket(bucket: Bucket) -> Self {
        Self { address: format!("s3://{}/volume", bucket.name), bucket: Some(bucket) }
    }

    /// The command with this word, such as `serve`, for the volume.
    pub(super) fn command(&self, afflux: &Path, word: &str) -> Command {
        let mut command = Command::new(afflux);
        command.arg(word);
        if let Some(bucket) = &self.bucket {
            command.args(["--endpoint", &bucket.endpoint]);
            command.env("AWS_ACCESS_KEY_ID", &bucket.key).env("AWS_SECRET_ACCESS_KEY", &bucket.secret);
        }
        // A mount's point follows the address.
        command.arg(&self.address);
        command
    }
}

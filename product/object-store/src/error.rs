//! Errors of opening a store or a disk cache, with advice.
//!
//! Owns: their kinds and texts.
//! Does not own: errors of single requests after the opening (`failure`).
//! Invariants: each text names the store, the event and the remedy.

/// Why there is no disk cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskCacheError {
    /// The size is out of its range.
    #[error("the size of a disk cache is {} MiB to {} GiB", .least >> 20, .most >> 30)]
    Size {
        /// The least size, in bytes.
        least: u64,
        /// The largest size, in bytes.
        most: u64,
    },
    /// Another process has the directory.
    #[error("{directory}: another server has its disk cache there; each server takes a directory of its own")]
    InUse {
        /// Path of the directory.
        directory: String,
    },
    /// The directory cannot be used.
    #[error("{directory}: {why}")]
    Unusable {
        /// Path of the directory.
        directory: String,
        /// The fault.
        why: String,
    },
}

/// Why a store or its records were not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is malformed or of an unknown kind.
    #[error("{url} is no address of a store: {why}; write s3://BUCKET/PREFIX, gs://…, az://…, file:///DIR or memory:")]
    Address {
        /// URL of the store.
        url: String,
        /// What is wrong with the URL.
        why: String,
    },
    /// An option or a variable has a wrong value.
    #[error("{url}: {why}")]
    Settings {
        /// URL of the store.
        url: String,
        /// The fault, and the remedy.
        why: String,
    },
    /// The store does not know these keys, or they have not these rights.
    #[error(
        "{url}: the store refuses access ({why}); check {}; the keys need the rights to list, get, put and delete",
        source_of_keys(url)
    )]
    Denied {
        /// URL of the store.
        url: String,
        /// The store's words.
        why: String,
    },
    /// The bucket is not there.
    #[error("{url}: there is no bucket {bucket}; make it, or correct the name or the --endpoint")]
    NoBucket {
        /// URL of the store.
        url: String,
        /// Name of the bucket.
        bucket: String,
    },
    /// There is nothing to read.
    #[error("{url}: there is no volume; `afflux serve` makes one, and `afflux volumes` lists those of a bucket")]
    NoVolume {
        /// URL of the store.
        url: String,
    },
    /// No volume can be opened, and the location is not free for a new one.
    #[error(
        "{url}: there are objects but no manifest of a volume (records/manifest): {found}, …; for a new volume take a prefix \
         with nothing below it; if a volume was here, bring its manifests back from a copy or from the bucket's older versions"
    )]
    Occupied {
        /// URL of the store.
        url: String,
        /// Names of some objects.
        found: String,
    },
    /// The location is a folder of another volume.
    #[error("{url}: this is a folder of the volume {volume}; for a new volume take a prefix beside that one")]
    Inside {
        /// URL of the store.
        url: String,
        /// The URL of the volume around it.
        volume: String,
    },
    /// The bucket is in another region.
    #[error("{url}: the bucket is in another region ({why}); set AWS_REGION")]
    Region {
        /// URL of the store.
        url: String,
        /// The store's words.
        why: String,
    },
    /// Nothing answers.
    #[error("{url}: no answer from the store ({why}); check the --endpoint and the network, then start again")]
    Unreachable {
        /// URL of the store.
        url: String,
        /// The last failure.
        why: String,
    },
    /// The store answers, and each of its answers is a failure that may pass.
    #[error("{url}: the store answers with failures ({why}); check the --endpoint, or start again later")]
    Failing {
        /// URL of the store.
        url: String,
        /// The store's words.
        why: String,
    },
    /// The store refuses a request for another reason.
    #[error("{url}: the store refused a request: {why}")]
    Refused {
        /// URL of the store.
        url: String,
        /// The store's words.
        why: String,
    },
    /// A writer asks for a store that may only be read.
    #[error("{url} can only be read: {why}; use a store with conditional requests (AWS S3, GCS, Azure, Ceph, MinIO)")]
    ReadOnly {
        /// URL of the store.
        url: String,
        /// The promise that the store broke.
        why: String,
    },
    /// Another process has the directory.
    #[error("{directory} is in use by another process; end that one first")]
    InUse {
        /// Path of the store's directory.
        directory: String,
    },
    /// A newer version of the program made the records, or they are damaged.
    #[error("{url}: the records cannot be read: {why}; a newer version of afflux may have made them: use that version")]
    Format {
        /// URL of the store.
        url: String,
        /// What is wrong with the records.
        why: String,
    },
    /// A later writer took the volume over during the opening.
    #[error("{url}: another writer took the volume over during the opening")]
    Fenced {
        /// URL of the store.
        url: String,
    },
    /// The host did not give threads.
    #[error("the threads for the store could not be started: {why}")]
    Threads {
        /// The host's words.
        why: String,
    },
}

/// Where the keys of a store come from, as a user can change it.
fn source_of_keys(url: &str) -> &'static str {
    match url.split(':').next() {
        Some("gs") => "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT or the account of the instance",
        Some("az") => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the identity of the instance",
        Some("file") => "the owner and the mode of the directory",
        _ => "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or the profile in ~/.aws",
    }
}

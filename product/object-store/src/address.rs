//! The URL of a volume, and the folders below it.
//!
//! Owns: the URL's parts, their spelling; the folders' names, which objects are records, which have data of files.
//! Does not own: connections, names of single objects.
//! Invariants: a prefix has no empty, `.` or `..` part, so all names below it are the volume's own. The address of a
//! path leads to that path again. A volume has objects in these folders alone, and few beside them. A folder of the
//! same name in the volume's prefix changes nothing (`tests`, and `tests/stores/prefixes.rs` on real stores).

use std::path::PathBuf;

use object_store::path::{Error, Path, PathPart};
use url::Url;

use crate::error::StoreError;

/// Fails if this is no URL of a volume.
///
/// # Errors
/// With the fault.
pub fn check_address(url: &str) -> Result<(), StoreError> {
    Address::parse(url).map(drop)
}

/// The kind and location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress {
    S3 { bucket: String },
    Google { bucket: String },
    Azure { container: String },
    Directory(PathBuf),
    Memory,
}

/// A volume's location in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) store: StoreAddress,
    /// All names of the volume begin with it.
    pub(crate) prefix: Path,
}

/// A store takes names of 1,024 bytes. The volume's own part of a name is shorter than the rest.
pub(crate) const PREFIX_BYTES_MAX: usize = 900;

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::Address { url: shown(text), why: why.to_owned() };
        if text.chars().any(char::is_control) {
            return Err(wrong("it has a control character, which no name of a store may have"));
        }
        if text.trim() != text {
            return Err(wrong("it begins or ends with a blank; write a blank of the name as %20"));
        }
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("'?' and '#' have a meaning in an address; write those of a name as %3F and %23"));
        }
        if text.split_once("://").is_some_and(|(kind, _)| kind != url.scheme()) {
            return Err(wrong("its kind is written in small letters"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("keys do not stand in an address; variables and files have them"));
        }
        if url.port().is_some() {
            return Err(wrong("a port has no place before a bucket; --endpoint names a server"));
        }
        let bucket = || url.host_str().map(str::to_owned).ok_or_else(|| wrong("it names no bucket"));
        let store = match url.scheme() {
            "s3" => StoreAddress::S3 { bucket: bucket()? },
            "gs" => StoreAddress::Google { bucket: bucket()? },
            "az" => StoreAddress::Azure { container: bucket()? },
            "file" => {
                let directory = directory(text).map_err(wrong)?;
                return Ok(Self { store: StoreAddress::Directory(directory), prefix: Path::default() });
            }
            "memory" if url.path().is_empty() => {
                return Ok(Self { store: StoreAddress::Memory, prefix: Path::default() });
            }
            "memory" => return Err(wrong("memory: takes no name")),
            _ => return Err(wrong("its kind is unknown")),
        };
        let prefix = prefix(name_of(text)).map_err(|why| wrong(&why))?;
        Ok(Self { store, prefix })
    }

    /// The path of a name of the volume.
    pub(crate) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The URL of a path in the location.
    pub(crate) fn url(&self, path: &Path) -> String {
        let kind = match self.store {
            StoreAddress::S3 { .. } => "s3",
            StoreAddress::Google { .. } => "gs",
            StoreAddress::Azure { .. } => "az",
            StoreAddress::Directory(_) => "file",
            StoreAddress::Memory => return "memory:".to_owned(),
        };
        let (bucket, path) = (written(&self.bucket()), written(path.as_ref()));
        if path.is_empty() { format!("{kind}://{bucket}") } else { format!("{kind}://{bucket}/{path}") }
    }

    /// The bucket, or another word for the location.
    pub(crate) fn bucket(&self) -> String {
        match &self.store {
            StoreAddress::S3 { bucket }
            | StoreAddress::Google { bucket }
            | StoreAddress::Azure { container: bucket } => bucket.clone(),
            StoreAddress::Directory(directory) => directory.display().to_string(),
            StoreAddress::Memory => "memory".to_owned(),
        }
    }
}

/// An address as an error shows it: without keys before the bucket.
fn shown(text: &str) -> String {
    let (kind, behind) = text.split_once("://").unwrap_or(("", text));
    let (bucket, name) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let hidden = bucket.rsplit_once('@').map(|(_, bucket)| format!("{kind}://…@{bucket}{name}"));
    let text = hidden.as_deref().unwrap_or(text);
    let shown = |char: char| if char.is_control() { char.escape_default().to_string() } else { char.to_string() };
    text.chars().map(shown).collect()
}

/// A name as an address has it.
fn written(name: &str) -> String {
    let written = |char: char| match char {
        '%' | '?' | '#' | '\\' | ' ' => format!("%{:02X}", u32::from(char)),
        char => char.to_string(),
    };
    name.chars().map(written).collect()
}

/// The part of an address behind its bucket or host. It is read as it was written: a parser of URLs resolves `..`.
fn name_of(text: &str) -> &str {
    let behind = text.split_once("://").map_or("", |(_, behind)| behind);
    behind.split_once('/').map_or("", |(_, name)| name)
}

/// The prefix of a volume. One slash may stand at its end.
fn prefix(name: &str) -> Result<Path, String> {
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_empty() {
        return Ok(Path::default());
    }
    if name.split('/').any(str::is_empty) {
        return Err("two slashes stand side by side; write one".to_owned());
    }
    let decoded = Path::from_url_path(name).map_err(|error| match error {
        Error::EmptySegment { .. } => "it has a part without a name".to_owned(),
        Error::BadSegment { .. } => "it has a part '.' or '..', or a control character".to_owned(),
        Error::NonUnicode { .. } => "its bytes are no UTF-8".to_owned(),
        error => error.to_string(),
    })?;
    if decoded.as_ref().chars().any(char::is_control) {
        return Err("it has a control character, which no name of a store may have".to_owned());
    }
    let bytes = decoded.as_ref().len();
    if bytes > PREFIX_BYTES_MAX {
        return Err(format!("its prefix has {bytes} bytes instead of at most {PREFIX_BYTES_MAX}"));
    }
    Ok(decoded)
}

/// The directory of a volume.
fn directory(text: &str) -> Result<PathBuf, &'static str> {
    if name_of(text).split('/').any(|part| [".", ".."].contains(&&*part.to_ascii_lowercase().replace("%2e", "."))) {
        return Err("it has a part '.' or '..'; write the directory that you mean");
    }
    // A parser of URLs takes a backslash for a slash.
    let url = Url::parse(&text.replace('\\', "%5C")).map_err(|_| "it names no local directory")?;
    url.to_file_path().map_err(|()| "it names no local directory")
}

/// The database of records.
pub(crate) const RECORDS: &str = "records";
/// A folder of the records. A volume has objects in it from its making on.
pub(crate) const MANIFESTS: &str = "manifest";
/// The log of the records.
pub(crate) const LOG: &str = "wal";
/// The states of the database's work on its tables.
pub(crate) const COMPACTIONS: &str = "compactions";
/// Bytes of files.
pub(crate) const DATA: &str = "data";
/// The objects of probes.
pub(crate) const PROBES: &str = "probe";
/// The folder of the tables. The database reads no object there that may be absent.
pub(crate) const TABLES: &str = "compacted";
/// Objects of the records that change have this folder.
const CHANGING: &str = "gc";

/// Whether it is an object of the records that never changes.
pub(crate) fn is_record(path: &Path) -> bool {
    is_in_records(path) && !is_for_hosts(path) && !is_in(path, CHANGING)
}

/// Whether an object has data of files. The others are records, and those by which hosts find each other.
pub(crate) fn is_data(path: &Path) -> bool {
    !is_for_hosts(path) && !is_in_records(path)
}

/// Whether hosts find each other by it, or each other's clients.
fn is_for_hosts(path: &Path) -> bool {
    matches!(path.filename(), Some("holder" | "clock" | "clients"))
}

/// Whether it is an object of the records in this folder of theirs.
pub(crate) fn is_in(path: &Path, folder: &str) -> bool {
    let from_last = path.parts().rev().collect::<Vec<_>>();
    let at = from_last.iter().position(|part| is_folder(part));
    at.is_some_and(|at| from_last[at].as_ref() == RECORDS && at > 0 && from_last[at - 1].as_ref() == folder)
}

fn is_folder(part: &PathPart<'_>) -> bool {
    [RECORDS, DATA, PROBES].contains(&part.as_ref())
}

/// Whether the last of the volume's folders in the path is that of the records. The prefix may have such folders, too.
pub(crate) fn is_in_records(path: &Path) -> bool {
    path.parts().rfind(is_folder).is_some_and(|part| part.as_ref() == RECORDS)
}

#[cfg(test)]
mod tests;

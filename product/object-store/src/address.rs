//! The URL of a volume.
//!
//! Owns: its parts.
//! Does not own: connections.
//! Invariants: a prefix has no empty, `.` or `..` part, so all names below it are the volume's own.

use std::path::PathBuf;

use object_store::path::Path;
use url::Url;

use crate::error::StoreError;

/// Fails if this is no URL of a volume.
///
/// # Errors
/// With the fault.
pub fn check_address(url: &str) -> Result<(), StoreError> {
    Address::parse(url).map(drop)
}

/// The kind and place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    S3 { bucket: String },
    Google { bucket: String },
    Azure { container: String },
    Directory(PathBuf),
    Memory,
}

/// A volume's place in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) place: Place,
    /// All names of the volume begin with it.
    pub(crate) prefix: Path,
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::Address { url: text.to_owned(), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.port().is_some() {
            return Err(wrong("it has a part that is neither a bucket nor a prefix"));
        }
        let bucket = || url.host_str().map(str::to_owned).ok_or_else(|| wrong("it names no bucket"));
        let place = match url.scheme() {
            "s3" => Place::S3 { bucket: bucket()? },
            "gs" => Place::Google { bucket: bucket()? },
            "az" => Place::Azure { container: bucket()? },
            "file" => {
                let directory = url.to_file_path().map_err(|()| wrong("it names no local directory"))?;
                return Ok(Self { place: Place::Directory(directory), prefix: Path::default() });
            }
            "memory" if url.path().is_empty() => return Ok(Self { place: Place::Memory, prefix: Path::default() }),
            "memory" => return Err(wrong("memory: takes no name")),
            _ => return Err(wrong("its kind is unknown")),
        };
        let prefix = url.path().trim_matches('/');
        let prefix = Path::from_url_path(prefix).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { place, prefix })
    }

    /// The path of a name of the volume.
    pub(crate) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The bucket, or another word for the place.
    pub(crate) fn bucket(&self) -> String {
        match &self.place {
            Place::S3 { bucket } | Place::Google { bucket } | Place::Azure { container: bucket } => bucket.clone(),
            Place::Directory(directory) => directory.display().to_string(),
            Place::Memory => "memory".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
